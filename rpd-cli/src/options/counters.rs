//! Counters as options and job files give them: words, names, groups.

use rpd_core::options::CounterRequest;

/// Marks a group whose names are spread over as few passes as possible.
const AUTO: &str = "auto:";

/// Separators of names besides blanks.
const SEPARATORS: &str = "!@#$%&(),*+-./;<>?{}^`~|";

/// Counters that are collected in one pass.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CounterGroup {
    /// In alphabetical order, each once.
    pub(crate) counters: Vec<CounterRequest>,
    /// To be spread over as few passes as possible.
    pub(crate) auto: bool,
}

/// Reads the words of a group.
///
/// # Errors
/// One line, when what is left between the separators cannot be the name of a counter, or when nothing is to be spread.
pub(crate) fn group(words: &[String]) -> Result<CounterGroup, String> {
    let mut auto = false;
    let words: Vec<&str> = words
        .iter()
        .map(|word| match word.trim_start().strip_prefix(AUTO) {
            Some(rest) => {
                auto = true;
                rest
            }
            None => word,
        })
        .collect();
    let line = words.join(" ");
    let line = line.split('#').next().unwrap_or_default();
    let mut tokens: Vec<&str> = line
        .split(|letter: char| letter.is_whitespace() || SEPARATORS.contains(letter))
        .filter(|token| token.contains(|letter: char| letter.is_alphanumeric() || letter == '_'))
        .collect();
    tokens.sort_unstable();
    tokens.dedup();
    let counters = tokens
        .into_iter()
        .map(request)
        .collect::<Result<Vec<_>, String>>()?;
    if auto && counters.is_empty() {
        return Err("auto: names no counter; write auto:NAME,NAME,...".to_owned());
    }
    Ok(CounterGroup { counters, auto })
}

fn request(token: &str) -> Result<CounterRequest, String> {
    let (name, qualifier) = match token.split_once(':') {
        Some((name, qualifier)) => (name, Some(qualifier)),
        None => (token, None),
    };
    if name.contains('[') {
        return Err(format!(
            "'{token}': instances of a counter cannot be selected; json has the values of all"
        ));
    }
    let letters = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if name.is_empty() || !name.chars().all(letters) {
        return Err(format!("'{token}' is not the name of a counter"));
    }
    let device = match qualifier {
        None => None,
        Some(text) => {
            let digits = text
                .strip_prefix("device=")
                .filter(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
                .ok_or_else(|| {
                    format!("'{token}': what may follow the name is :device=N, N a number of a GPU")
                })?;
            // No machine has that many: as any other number without a GPU it matches none.
            Some(digits.parse().unwrap_or(u32::MAX))
        }
    };
    Ok(CounterRequest {
        name: name.to_owned(),
        device,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let group = group(&words)?;
        let names: Vec<String> = group.counters.iter().map(ToString::to_string).collect();
        Ok(format!(
            "{}{}",
            if group.auto { AUTO } else { "" },
            names.join(" ")
        ))
    }

    #[test]
    fn counter_words_become_sorted_names() {
        for (words, expected) in [
            (&["SQ_WAVES", "GRBM_COUNT"][..], "GRBM_COUNT SQ_WAVES"),
            (&["SQ_WAVES,GRBM_COUNT"], "GRBM_COUNT SQ_WAVES"),
            // A counter that is named twice is counted once, and a comment is ignored: command-line-105.
            (&["B", "A", "A", "#", "C"], "A B"),
            (&["B", "A#x", "C"], "A B"),
            (&["A B", " C;D "], "A B C D"),
            (&["\\", "--", ","], ""),
            (
                &["A:device=1", "A:device=0", "A"],
                "A A:device=0 A:device=1",
            ),
            // A counter of a GPU that is not there is accepted: command-line-104.
            (&["SQ_CYCLES:device=16384"], "SQ_CYCLES:device=16384"),
            (&["A:device=99999999999"], "A:device=4294967295"),
            (&["auto:B,A", "C"], "auto:A B C"),
            (&["auto:", "B"], "auto:B"),
            (&[], ""),
        ] {
            assert_eq!(shown(words).as_deref(), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn words_that_name_no_counter_are_refused() {
        for (word, fragment) in [
            ("A:device=x", "'A:device=x'"),
            ("A:device=", ":device=N"),
            ("A:instance=3", ":device=N"),
            ("TCC_HIT[3]", "json has the values of all"),
            ("A=B", "'A=B' is not the name of a counter"),
            ("'A'", "is not the name of a counter"),
            (":device=3", "is not the name of a counter"),
            ("auto:,", "auto: names no counter"),
        ] {
            let message = shown(&[word]).expect_err(word);
            assert!(message.contains(fragment), "{word}: {message}");
        }
    }
}

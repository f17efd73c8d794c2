//! Iterations that are counted, and stretches of time that are recorded.

use rpd_core::options::{CollectionPeriod, IterationRange};

/// The first launch of each kernel.
pub(crate) const FIRST: IterationRange = IterationRange { first: 1, last: 1 };

/// Reads ranges: numbers and `A-B`, among any brackets, commas and blanks. One that runs backwards holds nothing and is
/// kept, since no range at all would be all iterations.
///
/// # Errors
/// One line that names what is neither.
pub(crate) fn iterations(words: &[String]) -> Result<Vec<IterationRange>, String> {
    words
        .iter()
        .flat_map(|word| {
            word.split(|letter: char| "[](){},".contains(letter) || letter.is_whitespace())
        })
        .filter(|token| !token.is_empty())
        .map(|token| {
            let number = |text: &str| {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                digits.then(|| text.parse::<u64>().ok()).flatten()
            };
            let (first, last) = token.split_once('-').unwrap_or((token, token));
            match (number(first), number(last)) {
                (Some(first), Some(last)) => Ok(IterationRange { first, last }),
                _ => Err(format!(
                    "'{token}' is neither a number nor a range such as 3-5"
                )),
            }
        })
        .collect()
}

/// Reads `DELAY:DURATION:REPEAT`, the first two in `unit`.
///
/// # Errors
/// One line with the reason why it is refused.
pub(crate) fn period(word: &str, unit: &str) -> Result<CollectionPeriod, String> {
    let fields: Vec<&str> = word.split(':').map(str::trim).collect();
    let [delay, duration, repeat] = fields[..] else {
        return Err(format!("'{word}' is not DELAY:DURATION:REPEAT"));
    };
    let time = |text: &str, what: &str| {
        nanoseconds(text, unit).ok_or_else(|| format!("'{word}': {what} '{text}' is not a time"))
    };
    let period = CollectionPeriod {
        delay: time(delay, "delay")?,
        duration: time(duration, "duration")?,
        repeat: repeat.parse().map_err(|_| {
            format!("'{word}': repeat '{repeat}' is not a whole number from 0 (0 is endless)")
        })?,
    };
    if period.delay == 0 && period.duration == 0 && period.repeat == 0 {
        return Err(format!(
            "'{word}' is an endless number of rounds that take no time"
        ));
    }
    Ok(period)
}

/// A time from 0 in a unit, cut to whole nanoseconds.
fn nanoseconds(text: &str, unit: &str) -> Option<u64> {
    let factor: u64 = match unit {
        "hour" => 3_600_000_000_000,
        "min" => 60_000_000_000,
        "sec" => 1_000_000_000,
        "msec" => 1_000_000,
        "usec" => 1_000,
        "nsec" => 1,
        _ => return None,
    };
    // Whole numbers exactly, others with the precision of a double.
    if let Ok(whole) = text.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value: f64 = text.parse().ok()?;
    let product = value * factor as f64;
    // No clock reaches 2^63 ns.
    (product.is_finite() && (0.0..9.2e18).contains(&product)).then_some(product as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let text = |range: &IterationRange| match range.first == range.last {
            true => range.first.to_string(),
            false => format!("{}-{}", range.first, range.last),
        };
        let texts: Vec<String> = iterations(&words)?.iter().map(text).collect();
        Ok(texts.join(" "))
    }

    #[test]
    fn ranges() {
        for (case, words, expected) in [
            ("command-line-273", &["[1, 3, 5, [8-12]]"][..], "1 3 5 8-12"),
            ("command-line-274", &["[11-14], [4-5]"], "11-14 4-5"),
            ("command-line-274", &["[11-14]", "[4-5]"], "11-14 4-5"),
            ("command-line-275", &["[[3-6], 1, 13]"], "3-6 1 13"),
            ("command-line-276", &["[5-3]"], "5-3"),
            ("unnumbered", &["5"], "5"),
            ("unnumbered", &["[]"], ""),
        ] {
            assert_eq!(shown(words).as_deref(), Ok(expected), "{case}");
        }
        for word in ["a", "1-2-3", "-1", "1-", "+1", "99999999999999999999"] {
            let message = shown(&[word]).expect_err(word);
            assert!(
                message.contains(&format!("'{word}'")),
                "command-line-277: {message}"
            );
        }
    }

    #[test]
    fn periods() {
        let got = |word: &str, unit: &str| {
            let period = period(word, unit)?;
            Ok::<_, String>((period.delay, period.duration, period.repeat))
        };
        assert_eq!(
            got("0:1:1", "sec"),
            Ok((0, 1_000_000_000, 1)),
            "command-line-283"
        );
        assert_eq!(
            got("0.5:0.5:0", "sec"),
            Ok((500_000_000, 500_000_000, 0)),
            "command-line-283"
        );
        assert_eq!(
            got("1:2:3", "hour"),
            Ok((3_600_000_000_000, 7_200_000_000_000, 3))
        );
        assert_eq!(
            got("1.5:2:3", "min"),
            Ok((90_000_000_000, 120_000_000_000, 3))
        );
        assert_eq!(got("7:1e3:1", "msec"), Ok((7_000_000, 1_000_000_000, 1)));
        assert_eq!(got("1.9999:1:1", "usec"), Ok((1999, 1000, 1)));
        assert_eq!(
            got("1.9:9007199254740993:1", "nsec"),
            Ok((1, 9_007_199_254_740_993, 1))
        );
        for word in [
            "1:1",
            "1:1:1:1",
            "",
            "a:1:1",
            "1:b:1",
            "1:1:c",
            "1:1:1.5",
            "-1:1:1",
            "1:-1:1",
            "1:1:-1",
            "nan:1:1",
            "inf:1:1",
            "1e300:1:1",
            "::",
            "0:0:0",
        ] {
            assert!(got(word, "sec").is_err(), "{word}");
        }
    }
}

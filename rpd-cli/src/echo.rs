//! Text of `--echo`, which is printed in place of running the program.

use rpd_core::compat::Difference;
use rpd_core::options::Options;

/// A line for each pass: its resolved options, or the command as the original prints it.
pub(crate) fn lines<'a>(passes: impl Iterator<Item = &'a Options>) -> serde_json::Result<String> {
    let mut text = String::new();
    for options in passes {
        if options.compat.has(Difference::Echo) {
            let words: Vec<String> = options.command.iter().map(|word| quoted(word)).collect();
            text += &format!("command: [{}]", words.join(", "));
        } else {
            text += &serde_json::to_string(options)?;
        }
        text.push('\n');
    }
    Ok(text)
}

/// `word` as Python writes it.
fn quoted(word: &str) -> String {
    let quote = if word.contains('\'') && !word.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut text = String::from(quote);
    for character in word.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\\' => text.push_str("\\\\"),
            _ if character == quote => text.extend(['\\', quote]),
            _ if character.is_ascii_control() => {
                text.push_str(&format!("\\x{:02x}", u32::from(character)));
            }
            _ => text.push(character),
        }
    }
    text.push(quote);
    text
}

#[cfg(test)]
mod tests {
    use rpd_core::compat::Compat;

    use super::*;

    #[test]
    fn echo_prints_the_command_as_a_list_in_rocprofv3_mode() {
        let words = ["/bin/app", "it's", "a\"b'c", "x y\n\u{1}\\", "\u{e9}"];
        let options = Options {
            compat: Compat::Rocprofv3,
            command: words.map(str::to_owned).to_vec(),
            ..Options::default()
        };
        assert_eq!(
            lines([&options, &options].into_iter()).expect("text"),
            "command: ['/bin/app', \"it's\", 'a\"b\\'c', 'x y\\n\\x01\\\\', '\u{e9}']\n".repeat(2)
        );
        let own = lines([&Options::default()].into_iter()).expect("text");
        assert!(own.starts_with('{') && own.ends_with("}\n"), "{own}");
    }
}

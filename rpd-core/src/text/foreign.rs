//! Text from elsewhere (options, files, names of programs and kernels, markers) in lines that people read.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text as it may stand in a line on a terminal: control characters, line breaks and characters that change the
/// direction or the place of others are written as `\n`, `\t`, `\r` or `\u{NN}`. Everything else is left alone, so that the
/// result is to be looked at and not to be read back.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            other if is_dangerous(other) => {
                // Writing to a string does not fail.
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(other));
            }
            other => safe.push(other),
        }
    }
    Cow::Owned(safe)
}

/// As [`shown`], of a text with line breaks of its own: they and tabulators stay. For tables and documents whose parts
/// went through [`shown`] one by one, as a second check.
pub fn shown_lines(text: &str) -> Cow<'_, str> {
    let foreign = |character: char| is_dangerous(character) && !matches!(character, '\n' | '\t');
    if !text.chars().any(foreign) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for part in text.split_inclusive(['\n', '\t']) {
        let end = part.len() - usize::from(part.ends_with(['\n', '\t']));
        safe.push_str(&shown(&part[..end]));
        safe.push_str(&part[end..]);
    }
    Cow::Owned(safe)
}

fn is_dangerous(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            // Marks, embeddings, overrides and isolates of writing direction; line and paragraph separators; characters
            // of no width; tags.
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_writes_control_characters_as_escapes() {
        for (text, expected) in [
            ("na\u{ef}ve \\n \u{65e5}", "na\u{ef}ve \\n \u{65e5}"),
            ("x\nrpd: forged", "x\\nrpd: forged"),
            ("\x1b[2J\x07\x7f", "\\u{1b}[2J\\u{7}\\u{7f}"),
            ("\u{9b}31m\t\r", "\\u{9b}31m\\t\\r"),
            (
                "a\u{202e}b\u{2066}c\u{2028}",
                "a\\u{202e}b\\u{2066}c\\u{2028}",
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn shown_lines_keeps_tabs_and_line_ends() {
        assert_eq!(shown_lines("a\tb\nc\x1b\n"), "a\tb\nc\\u{1b}\n");
        assert_eq!(shown_lines("a\r\nb"), "a\\r\nb");
        assert_eq!(shown_lines("plain\n"), "plain\n");
    }
}

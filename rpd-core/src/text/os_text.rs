//! Arguments, paths and values of variables as text, without loss.
//!
//! On Linux these are bytes, nearly always UTF-8 but not necessarily. rpd keeps them as escaped text: the text itself,
//! where a byte that is not part of valid UTF-8 is written `\xNN` (two lower-case hexadecimal digits), and a backslash that
//! the reader would take for the start of such an escape is written `\x5c`. Other backslashes stay as they are, so that
//! nearly every text is its own escaped form. Escaped text is what JSON files and databases hold; [`unescape`] gives the
//! bytes back, which is what programs are started with and files are named by.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// The escaped form of an argument, path or value from the operating system.
pub fn escape(text: &OsStr) -> String {
    escape_bytes(text.as_bytes())
}

/// Escapes any bytes as [`escape`] does.
pub fn escape_bytes(bytes: &[u8]) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        escaped.push_str(&escape_str(chunk.valid()));
        for byte in chunk.invalid() {
            // Writing to a string does not fail.
            let _ = write!(escaped, "\\x{byte:02x}");
        }
    }
    escaped
}

/// The escaped form of valid UTF-8, as [`escape`] makes it: only a backslash in front of `xNN` is written as an escape.
pub fn escape_str(text: &str) -> Cow<'_, str> {
    if !text
        .match_indices('\\')
        .any(|(at, _)| escaped_byte(&text.as_bytes()[at..]).is_some())
    {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 3);
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        escaped.push_str(&rest[..at]);
        escaped.push_str(match escaped_byte(&rest.as_bytes()[at..]) {
            Some(_) => "\\x5c",
            None => "\\",
        });
        rest = &rest[at + 1..];
    }
    escaped.push_str(rest);
    Cow::Owned(escaped)
}

/// The bytes that an escaped text stands for.
pub fn unescape(escaped: &str) -> OsString {
    let mut rest = escaped.as_bytes();
    let mut bytes = Vec::with_capacity(rest.len());
    while let Some(&first) = rest.first() {
        let (byte, used) = match escaped_byte(rest) {
            Some(byte) => (byte, 4),
            None => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[used..];
    }
    OsString::from_vec(bytes)
}

/// The path that an escaped text stands for; see [`unescape`].
pub fn unescape_path(escaped: &str) -> PathBuf {
    PathBuf::from(unescape(escaped))
}

/// An escaped text to which another is going to be appended: a backslash near its end must not become the start of an
/// escape with what follows.
pub(crate) fn sealed(escaped: &str) -> Cow<'_, str> {
    let bytes = escaped.as_bytes();
    let open = (1..=3.min(bytes.len())).find(|length| {
        let end = &bytes[bytes.len() - length..];
        end[0] == b'\\'
            && end.get(1).is_none_or(|byte| *byte == b'x')
            && end.get(2).is_none_or(u8::is_ascii_hexdigit)
    });
    match open {
        Some(length) => {
            let at = escaped.len() - length;
            Cow::Owned(format!("{}\\x5c{}", &escaped[..at], &escaped[at + 1..]))
        }
        None => Cow::Borrowed(escaped),
    }
}

/// The byte that an escape at the start of `bytes` stands for.
fn escaped_byte(bytes: &[u8]) -> Option<u8> {
    let digits = bytes.strip_prefix(b"\\x")?.get(..2)?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(digits[0])? * 16 + digit(digits[1])?).ok()
}

/// For `#[serde(with)]`: a path in its escaped form.
pub(crate) mod path {
    use std::path::{Path, PathBuf};

    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::escape(path.as_os_str()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        String::deserialize(from).map(|text| super::unescape_path(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(bytes: &[u8]) -> String {
        let escaped = escape_bytes(bytes);
        assert_eq!(unescape(&escaped).as_bytes(), bytes, "{escaped}");
        escaped
    }

    #[test]
    fn escape_bytes_escapes_few_bytes_and_is_reversible() {
        for (bytes, escaped) in [
            (&b"plain/text"[..], "plain/text"),
            ("na\u{ef}ve".as_bytes(), "na\u{ef}ve"),
            (b"a\xffb", "a\\xffb"),
            (b"\xc3", "\\xc3"),
            (br"\d+\s\\", r"\d+\s\\"),
            (br"\x41", r"\x5cx41"),
            (br"\\x41", r"\\x5cx41"),
            (br"\x4", r"\x4"),
            (br"\x5cx41", r"\x5cx5cx41"),
            (b"\\\xff", r"\\xff"),
            (b"\\x\xff", r"\x\xff"),
            (b"\\x4\xff", r"\x4\xff"),
            (b"line\nbreak", "line\nbreak"),
        ] {
            assert_eq!(there_and_back(bytes), escaped);
        }
    }

    /// All texts of up to five of the characters that matter.
    #[test]
    fn unescape_restores_every_short_text() {
        let alphabet = b"\\x5c\xff";
        let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
        for _ in 0..5 {
            let longer: Vec<Vec<u8>> = texts
                .iter()
                .flat_map(|text| alphabet.iter().map(|byte| [&text[..], &[*byte]].concat()))
                .collect();
            texts.extend(longer);
        }
        for text in &texts {
            there_and_back(text);
        }
    }

    #[test]
    fn sealed_texts_joined_to_others_make_no_new_escapes() {
        for (first, second) in [
            (&b"\\"[..], &b"x41"[..]),
            (b"\\x", b"41"),
            (b"\\x4", b"1"),
            (b"\xff", b"41"),
            (b"\\x5c", b"x41"),
            (b"a\\\\", b"x41"),
        ] {
            let (one, two) = (escape_bytes(first), escape_bytes(second));
            let joined = format!("{}{two}", sealed(&one));
            assert_eq!(unescape(&joined).as_bytes(), [first, second].concat());
        }
    }
}

//! Types of unquoted scalars by the rules of YAML 1.1, which rocprofv3 follows.

/// Whether the text is a null value of YAML.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// A number to base 60, such as `10:30:00`, which YAML 1.1 reads as 37800 although a time of day is meant.
pub(super) fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (unsigned, fraction) = match unsigned.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (unsigned, None),
    };
    let mut parts = unsigned.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'_')
    };
    let starts = match fraction {
        Some(_) => first.starts_with(|letter: char| letter.is_ascii_digit()),
        // A whole number does not begin with 0.
        None => first.starts_with(|letter: char| matches!(letter, '1'..='9')),
    };
    let sixtieth = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [ten, one] => matches!(ten, b'0'..=b'5') && one.is_ascii_digit(),
        _ => false,
    };
    starts
        && digits(first)
        && unsigned.contains(':')
        && parts.all(sixtieth)
        && fraction.is_none_or(digits)
}

/// A whole number: decimal, `0x` hexadecimal, `0b` binary or, after a plain `0`, octal; `_` may group digits.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if !unsigned.starts_with(|letter: char| letter.is_ascii_digit()) {
        return None;
    }
    let digits: String = unsigned.chars().filter(|letter| *letter != '_').collect();
    let (digits, radix) = if let Some(digits) = digits.strip_prefix("0x") {
        (digits, 16)
    } else if let Some(digits) = digits.strip_prefix("0b") {
        (digits, 2)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (&digits[1..], 8)
    } else {
        (digits.as_str(), 10)
    };
    // A second sign would be read by the parser.
    if !digits.starts_with(|letter: char| letter.is_ascii_alphanumeric()) {
        return None;
    }
    let value = i128::from_str_radix(digits, radix).ok()?;
    i64::try_from(if negative { -value } else { value }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_by_the_rules_of_yaml() {
        for (text, value) in [
            ("5", Some(5)),
            ("-5", Some(-5)),
            ("+5", Some(5)),
            ("0x11", Some(17)),
            ("-0x11", Some(-17)),
            ("0b101", Some(5)),
            ("017", Some(15)),
            ("0", Some(0)),
            ("1_000", Some(1000)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("08", None),
            ("0x", None),
            ("0x-1", None),
            ("--1", None),
            ("_1", None),
            ("1.5", None),
            ("1e3", None),
            ("true", None),
            ("", None),
        ] {
            assert_eq!(integer(text), value, "{text}");
        }
    }

    #[test]
    fn numbers_to_base_60_are_recognized() {
        for text in [
            "10:10:1",
            "1:1",
            "-1:30",
            "190:20:30.15",
            "0:20.5",
            "1_0:59",
        ] {
            assert!(is_base_60(text), "{text}");
        }
        for text in [
            "0:1:1",
            "0.5:0.5:0",
            "10",
            "10:60",
            "10:100",
            "a:1",
            ":1",
            "1:",
            "1.5",
            "",
            "x",
            "1:1:1 s",
            "SQ_CYCLES:device=1",
        ] {
            assert!(!is_base_60(text), "{text}");
        }
    }
}

//! JSON texts whose keys keep the order in which they are given.

use std::fmt::Write as _;

/// An object in the making.
pub(crate) struct Object(String);

impl Object {
    pub(crate) fn new() -> Object {
        Object(String::from("{"))
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        quote(&mut self.0, key);
        self.0.push(':');
    }

    pub(crate) fn number(mut self, key: &str, value: impl std::fmt::Display) -> Self {
        self.key(key);
        // Writing to a `String` cannot fail.
        let _ = write!(self.0, "{value}");
        self
    }

    pub(crate) fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        quote(&mut self.0, value);
        self
    }

    /// A value that is JSON already.
    pub(crate) fn json(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.0.push_str(value);
        self
    }

    /// An array of values that are JSON already.
    pub(crate) fn array(self, key: &str, values: impl IntoIterator<Item = String>) -> Self {
        let values: Vec<String> = values.into_iter().collect();
        self.json(key, &format!("[{}]", values.join(",")))
    }

    /// The text without its end, for a caller that appends to it.
    pub(crate) fn open(self) -> String {
        self.0
    }

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    escape(text, |piece| out.push_str(piece));
    out.push('"');
}

/// Appends `text` as a JSON string to bytes.
#[inline]
pub(crate) fn quote_bytes(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escape_bytes(out, text);
    out.push(b'"');
}

/// Appends `text` as it stands between the quotes of a JSON string.
#[inline]
pub(crate) fn escape_bytes(out: &mut Vec<u8>, text: &str) {
    escape(text, |piece| out.extend_from_slice(piece.as_bytes()));
}

/// Hands out `text` in pieces that may stand in a JSON string.
#[inline]
fn escape(text: &str, mut emit: impl FnMut(&str)) {
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        // Only ASCII is escaped, so all cuts are between characters.
        emit(&text[plain..at]);
        plain = at + 1;
        match byte {
            b'"' => emit("\\\""),
            b'\\' => emit("\\\\"),
            b'\n' => emit("\\n"),
            b'\r' => emit("\\r"),
            b'\t' => emit("\\t"),
            control => emit(&format!("\\u{control:04x}")),
        }
    }
    emit(&text[plain..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_object_keeps_the_order_of_its_keys() {
        let text = Object::new()
            .number("z", -1)
            .text("a\"", "\u{1}\n\\é")
            .json("o", &Object::new().end())
            .array("l", ["1".to_owned(), "2".to_owned()])
            .end();
        assert_eq!(text, r#"{"z":-1,"a\"":"\u0001\n\\é","o":{},"l":[1,2]}"#);
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }
}

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

    pub(crate) fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn quote(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if (control as u32) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_json_in_the_order_given() {
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

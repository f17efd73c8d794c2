//! JSON documents. `serde_json` checks the syntax; then a reader builds the tree, with lines and columns, from the valid text.

use std::sync::Arc;

use serde::de::IgnoredAny;

use super::super::node::{Content, DEEPEST, Key, Node};
use super::wrong;
use crate::failure::Failure;

/// Parses a JSON document into a tree.
pub(super) fn parse(source: &str, file: &Arc<str>) -> Result<Node, Failure> {
    serde_json::from_str::<IgnoredAny>(source).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        wrong(
            file,
            line.max(1),
            column,
            text.strip_suffix(&place).unwrap_or(&text),
        )
    })?;
    let mut reader = Reader {
        source,
        at: 0,
        line: 1,
        known: 0,
        column: 1,
        depth: 0,
    };
    reader.value().ok_or_else(|| {
        // The two errors that `serde_json` does not report.
        let message = match reader.depth {
            depth if depth > DEEPEST => "lists and mappings are nested too deeply",
            _ => "a string has an escape that is not a character",
        };
        wrong(file, reader.line, reader.column(), message)
    })
}

/// A reader of a valid JSON text. Its methods return `None` for the errors that `serde_json` does not report.
struct Reader<'a> {
    source: &'a str,
    at: usize,
    line: usize,
    /// Offset in the line whose column is known, so that a document of one long line is read in linear time.
    known: usize,
    /// Column of that place, from 1.
    column: usize,
    /// Number of open brackets.
    depth: usize,
}

impl<'a> Reader<'a> {
    /// The next byte that is not blank.
    fn next(&mut self) -> Option<u8> {
        loop {
            let byte = *self.source.as_bytes().get(self.at)?;
            match byte {
                b'\n' => {
                    self.line += 1;
                    (self.known, self.column) = (self.at + 1, 1);
                }
                b' ' | b'\t' | b'\r' => {}
                byte => return Some(byte),
            }
            self.at += 1;
        }
    }

    /// Column of the next byte, in characters.
    fn column(&mut self) -> usize {
        self.column += self.source[self.known..self.at].chars().count();
        self.known = self.at;
        self.column
    }

    fn value(&mut self) -> Option<Node> {
        let byte = self.next()?;
        let (line, column) = (self.line, self.column());
        let content = match byte {
            b'{' => {
                let mut entries = Vec::new();
                self.items(b'}', |reader| {
                    reader.next()?;
                    let (line, column) = (reader.line, reader.column());
                    let text = reader.string()?;
                    reader.next()?;
                    reader.at += 1;
                    let key = Key { text, line, column };
                    entries.push((key, reader.value()?));
                    Some(())
                })?;
                Content::Map(entries)
            }
            b'[' => {
                let mut items = Vec::new();
                self.items(b']', |reader| {
                    items.push(reader.value()?);
                    Some(())
                })?;
                Content::List(items)
            }
            b'"' => Content::Scalar {
                text: self.string()?,
                plain: false,
            },
            _ => {
                let rest = &self.source[self.at..];
                let end = rest
                    .find(|letter: char| ",]}".contains(letter) || letter.is_ascii_whitespace())
                    .unwrap_or(rest.len());
                self.at += end;
                Content::Scalar {
                    text: rest[..end].to_owned(),
                    plain: true,
                }
            }
        };
        Some(Node {
            line,
            column,
            content,
        })
    }

    /// Reads the comma-separated items between a bracket and its partner.
    fn items(
        &mut self,
        close: u8,
        mut item: impl FnMut(&mut Reader<'a>) -> Option<()>,
    ) -> Option<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        self.at += 1;
        while self.next()? != close {
            item(self)?;
            if self.next()? == b',' {
                self.at += 1;
            }
        }
        self.at += 1;
        self.depth -= 1;
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        let begin = self.at;
        let bytes = self.source.as_bytes();
        self.at += 1;
        while bytes.get(self.at)? != &b'"' {
            self.at += if bytes[self.at] == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
        let quoted = &self.source[begin..self.at];
        if quoted.contains('\\') {
            serde_json::from_str(quoted).ok()
        } else {
            Some(quoted[1..quoted.len() - 1].to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_nodes_have_their_places_and_texts() {
        let source = "{\n  \"ä\": [1, \"b\\n\"],  \"c\": {}\n}";
        let root = parse(source, &Arc::from("f.json")).expect("good");
        let Content::Map(entries) = &root.content else {
            panic!("a mapping");
        };
        let places: Vec<_> = entries
            .iter()
            .map(|(key, value)| (key.text.as_str(), key.line, key.column, value.column))
            .collect();
        assert_eq!(places, [("ä", 2, 3, 8), ("c", 2, 21, 26)]);
        let Content::List(items) = &entries[0].1.content else {
            panic!("a list");
        };
        assert_eq!(items[1].scalar(), Some("b\n"));
        assert_eq!((items[0].column, items[1].column), (9, 12));
        let failure = parse("[\n\"\\ud800\"]", &Arc::from("f.json")).expect_err("half a pair");
        assert!(failure.message.starts_with("f.json:2:"), "{failure}");
    }

    #[test]
    fn json_deeper_than_the_limit_is_refused() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let file = Arc::from("f.json");
        assert!(parse(&nested(DEEPEST), &file).is_ok());
        for depth in [DEEPEST + 1, 200_000] {
            let failure = parse(&nested(depth), &file).expect_err("very deep");
            let place = format!("f.json:1:{}: ", DEEPEST + 1);
            assert!(failure.message.starts_with(&place), "{failure}");
            assert!(failure.message.ends_with("too deeply"), "{failure}");
        }
    }
}

//! A document as a tree whose nodes have their line and column.

use super::scalar;

/// Largest depth of a document. A job file needs five.
pub(super) const DEEPEST: usize = 64;

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) text: String,
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in characters, from 1.
    pub(super) column: usize,
}

impl Key {
    /// The name of the option: dashes are equivalent to underscores.
    pub(super) fn normal(&self) -> String {
        self.text.replace('-', "_")
    }
}

/// The content of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// The text as written, without quotes; its type follows from its key.
    Scalar {
        text: String,
        /// Whether it had no quotes, so that it may be a number, a truth value or null.
        plain: bool,
    },
    List(Vec<Node>),
    /// A map: keys and values in the order of the document.
    Map(Vec<(Key, Node)>),
}

/// A value in a document, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in characters, from 1.
    pub(super) column: usize,
    pub(crate) content: Content,
}

impl Node {
    /// The text, if this is a scalar.
    pub(crate) fn scalar(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// The only word: the text, or that of a list of one.
    ///
    /// # Errors
    /// There is none or more than one, or YAML does not read the text as it is meant; the rest of a message that
    /// begins with the key.
    pub(crate) fn word(&self) -> Result<&str, String> {
        match &self.content {
            Content::Scalar { text, plain } => {
                if *plain && scalar::is_base_60(text) {
                    return Err(format!(
                        "YAML reads {text} without quotes as a number to base 60; write \"{text}\""
                    ));
                }
                Ok(text)
            }
            Content::List(items) => match items.as_slice() {
                [item] if item.scalar().is_some() => item.word(),
                _ => Err("expected one value".to_owned()),
            },
            Content::Map(_) => Err("expected one value, not a mapping".to_owned()),
        }
    }

    /// The words of a list; a single word is a list of one.
    ///
    /// # Errors
    /// An item is no word; the rest of a message that begins with the key.
    pub(crate) fn words(&self) -> Result<Vec<String>, String> {
        match &self.content {
            Content::List(items) => items
                .iter()
                .map(|item| match item.content {
                    Content::Scalar { .. } => Ok(item.word()?.to_owned()),
                    Content::List(_) | Content::Map(_) => {
                        Err("expected a list of words".to_owned())
                    }
                })
                .collect(),
            Content::Scalar { .. } => Ok(vec![self.word()?.to_owned()]),
            Content::Map(_) => Err("expected a list of words, not a mapping".to_owned()),
        }
    }

    /// Whether the node is a null value.
    pub(crate) fn is_null(&self) -> bool {
        match &self.content {
            Content::Scalar { text, plain: true } => scalar::is_null(text),
            _ => false,
        }
    }

    /// Number of nodes, this one included.
    pub(super) fn size(&self) -> usize {
        1 + match &self.content {
            Content::Scalar { .. } => 0,
            Content::List(items) => items.iter().map(Node::size).sum(),
            Content::Map(entries) => entries.iter().map(|(_, value)| value.size()).sum::<usize>(),
        }
    }
}

//! A document as a tree whose nodes have their line and column.

/// Largest depth of a document. A job file needs five.
pub(super) const DEEPEST: usize = 64;

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
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
pub(super) enum Content {
    /// The text as written, without quotes; its type follows from its key.
    Scalar {
        text: String,
        /// Whether the document has the text without quotes, so that it may be a number, a truth value or null.
        plain: bool,
    },
    List(Vec<Node>),
    /// A map: keys and values in the order of the document.
    Map(Vec<(Key, Node)>),
}

/// A value in a document, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in characters, from 1.
    pub(super) column: usize,
    pub(super) content: Content,
}

impl Node {
    /// The text, if this is a scalar.
    pub(super) fn scalar(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether the node is a null value.
    pub(super) fn is_null(&self) -> bool {
        match &self.content {
            Content::Scalar { text, plain: true } => super::scalar::is_null(text),
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

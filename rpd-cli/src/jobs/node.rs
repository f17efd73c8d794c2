//! A document as a tree whose nodes have their line and column.

/// Depth at which a document is given up. A job file needs five.
pub(super) const DEEPEST: usize = 64;

/// A key of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
    /// From 1.
    pub(super) column: usize,
}

impl Key {
    /// The name of an option that is meant: dashes are as good as underscores.
    pub(super) fn normal(&self) -> String {
        self.text.replace('-', "_")
    }
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// The text as written, without quotes. What it means is for its key to say.
    Scalar {
        text: String,
        /// It had no quotes, so that it may be a number, a truth value or nothing.
        plain: bool,
    },
    List(Vec<Node>),
    /// In the order of the document.
    Map(Vec<(Key, Node)>),
}

/// A value in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// From 1.
    pub(super) line: usize,
    /// From 1.
    pub(super) column: usize,
    pub(super) content: Content,
}

impl Node {
    /// The text of a scalar.
    pub(super) fn scalar(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Nothing is said here.
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

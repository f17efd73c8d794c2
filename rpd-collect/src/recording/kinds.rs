//! Kinds and operations by name and number, as records refer to them.

use rpd_spool::format::{Name, tag};

use super::{header, meta};

/// A kind and its operations.
pub(crate) struct KindNames {
    /// Number of the kind in records.
    pub(crate) number: u32,
    /// Name of the kind.
    pub(crate) name: String,
    /// Number and name of each operation.
    pub(crate) operations: Vec<(i32, String)>,
}

impl KindNames {
    /// The number of the operation `name`.
    pub(crate) fn operation(&self, name: &str) -> Option<i32> {
        self.operations
            .iter()
            .find(|(_, found)| found == name)
            .map(|(number, _)| *number)
    }
}

/// Writes the names of kinds and operations of a space ([`rpd_spool::format::space`]) to the meta stream.
pub(crate) fn record(space: u32, kinds: &[KindNames]) {
    for kind in kinds {
        write(tag::KIND_NAME, space, kind.number, u32::MAX, &kind.name);
        for (operation, name) in &kind.operations {
            let operation = operation.cast_unsigned();
            write(tag::OPERATION_NAME, space, kind.number, operation, name);
        }
    }
}

fn write(tag: u16, space: u32, kind: u32, operation: u32, text: &str) {
    let name = Name {
        header: header(0, 0),
        space,
        kind,
        operation,
        text_len: text.len() as u32,
    };
    meta::write(tag, 0, &name, text.as_bytes());
}

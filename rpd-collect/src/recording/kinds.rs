//! Kinds and operations by name and number, as records refer to them.

use std::borrow::Cow;

use rpd_spool::format::Name;
use rpd_spool::record::RecordKind;

use super::meta;

/// A kind and its operations.
pub(crate) struct KindNames {
    /// Number of the kind in records.
    pub(crate) number: u32,
    /// Name of the kind.
    pub(crate) name: Cow<'static, str>,
    /// Number and name of each operation.
    pub(crate) operations: Vec<(i32, Cow<'static, str>)>,
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

/// Writes the names of kinds and operations of a space ([`rpd_spool::format::space`]) to the meta stream. There are some
/// two thousand operations, and this is at the start of the program: those with consecutive numbers are one record.
pub(crate) fn record(space: u32, kinds: &[KindNames]) {
    let mut text = Vec::new();
    for kind in kinds {
        let name = kind.name.as_bytes();
        write(RecordKind::KindName, space, kind.number, u32::MAX, name);
        let runs =
            (kind.operations).chunk_by(|(left, _), (right, _)| left.checked_add(1) == Some(*right));
        for run in runs {
            text.clear();
            for (_, name) in run {
                text.extend_from_slice(name.as_bytes());
                text.push(0);
            }
            text.pop();
            let first = run[0].0.cast_unsigned();
            write(RecordKind::OperationName, space, kind.number, first, &text);
        }
    }
}

fn write(record: RecordKind, space: u32, kind: u32, operation: u32, text: &[u8]) {
    let name = Name {
        header: record.head(text.len()),
        space,
        kind,
        operation,
        text_len: text.len() as u32,
    };
    meta::write(&name, text);
}

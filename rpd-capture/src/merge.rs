//! The records of all threads of a process, in the order of the replay.

use rpd_spool::capture::{
    CaptureCall, CaptureCode, CaptureMarker, Group, Operation, Role, operation,
};
use rpd_spool::reader::{ProcessSpool, Records};
use rpd_spool::record::{CapturePart, RecordKind, RecordRole};

/// The place of a call in the order of the replay. Calls that add work take the place at which they began; those that wait
/// or make something, the one at which they returned.
pub(crate) fn place(operation: &Operation, entry: u64, exit: u64) -> u64 {
    let name = operation.name();
    let waits = name.contains("Synchronize") || name.contains("Query");
    let blocks = operation.group == Group::Transfer
        && name.starts_with("hipMemcpy")
        && !name.contains("Async");
    let makes = operation.arguments().iter().any(|argument| {
        matches!(
            argument.role,
            Role::HandleOut(_) | Role::AddressOut | Role::StructOut(_) | Role::TextureReference
        )
    });
    if waits || blocks || makes {
        exit
    } else {
        entry
    }
}

/// Records of captures of all streams of a process, merged.
pub(crate) struct Merge<'a> {
    sources: Vec<Source<'a>>,
    clean: bool,
}

/// End of a process's recording.
pub(crate) struct ProcessEnd {
    /// Every record is there, and recording ended in good order.
    pub(crate) clean: bool,
    /// Damage and losses, as texts.
    pub(crate) notes: Vec<String>,
}

impl<'a> Merge<'a> {
    pub(crate) fn new(spool: &'a ProcessSpool) -> Merge<'a> {
        let mut clean = false;
        let mut sources: Vec<Source<'_>> = spool
            .streams
            .iter()
            .map(|stream| Source {
                records: stream.records(),
                tid: stream.tid,
                next: None,
            })
            .collect();
        for source in &mut sources {
            source.advance(&mut clean);
        }
        Merge { sources, clean }
    }

    /// The next record and its thread.
    pub(crate) fn next(&mut self) -> Option<(u32, Vec<u8>)> {
        let source = self
            .sources
            .iter_mut()
            .filter(|source| source.next.is_some())
            .min_by_key(|source| source.next.as_ref().map(|(place, _)| *place))?;
        let (_, bytes) = source.next.take()?;
        source.advance(&mut self.clean);
        Some((source.tid, bytes))
    }

    /// Ends the merge, and tells whether it is complete. To be called after the last record.
    pub(crate) fn end(self) -> ProcessEnd {
        let mut dropped = 0;
        let mut notes = Vec::new();
        for source in self.sources {
            dropped += source.records.dropped();
            notes.extend(source.records.into_damage().iter().map(ToString::to_string));
        }
        if dropped > 0 {
            notes.push(format!("{dropped} records could not be stored"));
        }
        ProcessEnd {
            clean: self.clean && dropped == 0,
            notes,
        }
    }
}

/// A stream of records and the record that comes next.
struct Source<'a> {
    records: Records<'a>,
    tid: u32,
    next: Option<(u64, Vec<u8>)>,
}

impl Source<'_> {
    fn advance(&mut self, clean: &mut bool) {
        self.next = None;
        while let Some(record) = self.records.next() {
            let kind = RecordKind::from_tag(record.header.tag);
            *clean |= kind == Some(RecordKind::End);
            let Some(RecordRole::Capture(part)) = kind.map(RecordKind::role) else {
                continue;
            };
            let place = match part {
                CapturePart::Call => record.parse::<CaptureCall>().map(|(call, _)| {
                    let found = operation(call.operation);
                    found.map_or(call.entry, |found| place(found, call.entry, call.exit))
                }),
                CapturePart::Code => record.parse::<CaptureCode>().map(|(code, _)| code.entry),
                CapturePart::Marker => {
                    let parsed = record.parse::<CaptureMarker>();
                    parsed.map(|(marker, _)| marker.entry)
                }
            };
            if let Some(place) = place {
                let mut bytes = self.next.take().map(|(_, bytes)| bytes).unwrap_or_default();
                bytes.clear();
                bytes.extend_from_slice(record.bytes);
                self.next = Some((place, bytes));
                return;
            }
        }
    }
}

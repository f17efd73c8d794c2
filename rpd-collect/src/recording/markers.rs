//! ROCTx marks, ranges and names of resources.

use rpd_spool::format::{NamedResource, RangeBegin, RangeEnd, call_flag};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{OpenRecord, now, record_len};
use zerocopy::IntoBytes;

use super::call::Call;
use super::text::capped;
use super::{meta, stacks, thread};

/// Bytes kept of a message.
const LONGEST: usize = 64 << 10;

/// The message of a mark or range.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message<'a> {
    /// `None` where the program passed a null pointer.
    pub(crate) text: Option<&'a [u8]>,
    /// Whether the text was longer than the kept part.
    truncated: bool,
    /// What else is known of the mark or range: texts as [`call_flag::ARGUMENT_TEXTS`] has them.
    details: &'a [u8],
}

impl<'a> Message<'a> {
    /// The message at `text`.
    ///
    /// # Safety
    ///
    /// `text` is null or points to a NUL-terminated string that lives as long as the result.
    pub(crate) unsafe fn read(text: *const std::ffi::c_char) -> Message<'a> {
        // SAFETY: as this function demands.
        let found = unsafe { capped(text, LONGEST) };
        Message {
            text: found.map(|(text, _)| text),
            truncated: found.is_some_and(|(_, truncated)| truncated),
            details: &[],
        }
    }

    /// The message with this text.
    pub(crate) fn from_text(text: &'a [u8]) -> Message<'a> {
        Message {
            text: Some(&text[..text.len().min(LONGEST)]),
            truncated: text.len() > LONGEST,
            details: &[],
        }
    }

    /// The message with what else is known: texts as [`call_flag::ARGUMENT_TEXTS`] has them.
    pub(crate) fn with_details(self, details: &'a [u8]) -> Message<'a> {
        Message { details, ..self }
    }

    fn flags(&self) -> u32 {
        let details = match self.details {
            [] => 0,
            _ => call_flag::ARGUMENT_TEXTS,
        };
        details
            | match (self.text, self.truncated) {
                (None, _) => call_flag::MESSAGE | call_flag::NULL_MESSAGE,
                (Some(_), false) => call_flag::MESSAGE,
                (Some(_), true) => call_flag::MESSAGE | call_flag::TRUNCATED,
            }
    }

    /// Bytes of the message in a record's tail.
    fn len(&self) -> usize {
        4 + self.text.map_or(0, <[u8]>::len) + self.details.len()
    }

    /// Writes the tail: the length (`u32::MAX` for a null pointer), the text, and the details.
    fn fill(&self, tail: &mut [u8]) {
        let count = self.text.map_or(u32::MAX, |text| text.len() as u32);
        let text = self.text.unwrap_or_default();
        tail[..4].copy_from_slice(&count.to_le_bytes());
        tail[4..][..text.len()].copy_from_slice(text);
        tail[4 + text.len()..][..self.details.len()].copy_from_slice(self.details);
    }
}

/// Records a mark: a point in time with a message.
pub(crate) fn mark(call: &Call, message: Message<'_>) {
    call.instant(message.flags(), message.len(), |tail| message.fill(tail));
}

/// Begins a range of the calling thread; [`super::call::end`] ends it.
pub(crate) fn begin_thread_range(call: &Call, message: Message<'_>) -> OpenRecord {
    call.begin(message.flags(), message.len(), |tail| message.fill(tail))
}

/// Begins a range that any thread may end.
pub(crate) fn begin_process_range(call: &Call, message: Message<'_>) {
    const HEAD: usize = size_of::<RangeBegin>();
    let stack = stacks::of_event(call.has_stack, u64::MAX);
    let tail = stacks::room(stack) + message.len();
    let len = record_len(HEAD, tail);
    let begin = RangeBegin {
        header: RecordKind::RangeBegin.head(tail).with_aux(call.kind),
        operation: call.operation,
        flags: message.flags() | stacks::flag(stack),
        start: now(),
        correlation: call.correlation,
        ancestor: call.ancestor,
    };
    thread::append(len, |bytes| {
        bytes[..HEAD].copy_from_slice(begin.as_bytes());
        message.fill(stacks::put(stack, &mut bytes[HEAD..]));
    });
}

/// Ends the range with this correlation id at `time`.
pub(crate) fn end_process_range(correlation: u64, time: u64) {
    thread::write(&RangeEnd {
        header: RecordKind::RangeEnd.head(0),
        correlation,
        end: time,
    });
}

/// Kinds of named resources; the values are those of the record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Resource {
    /// A thread of the operating system: the calling one.
    OsThread = 1,
    /// A HIP device, by its number.
    HipDevice = 2,
    /// A HIP stream, by its address.
    HipStream = 3,
    /// An HSA agent, by its handle.
    HsaAgent = 4,
    /// A stream, by its number in records.
    Stream = 5,
}

/// Records the name that the program gives to a resource. Nothing for a null pointer.
pub(crate) fn name_resource(resource: Resource, id: u64, name: Message<'_>) {
    let Some(name) = name.text else { return };
    let named = NamedResource {
        header: RecordKind::ResourceName
            .head(name.len())
            .with_aux(resource as u16),
        resource: id,
        time: now(),
        name_len: name.len() as u32,
        tid: thread::id(),
    };
    meta::write(&named, name);
}

//! Begin and end of a recorded call: of a runtime's function, or of a marker range, which is recorded as a call.
//!
//! A call is written when it begins, with end 0, and completed in place when it returns. Every call that is recorded
//! passes through [`Call::begin`] on the calling thread, and through [`end`] if it returns: what a service needs
//! about each call is collected there.

use rpd_spool::format::{CallRecord, StackRef, call_flag};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{OpenRecord, now, record_len};
use zerocopy::FromBytes;

use super::{stacks, thread};

const HEAD: usize = size_of::<CallRecord>();

/// Facts about a call at its begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    /// Number of its kind in the names that the process recorded.
    pub(crate) kind: u16,
    /// Number of its operation within the kind.
    pub(crate) operation: u32,
    /// Correlation id of the call.
    pub(crate) correlation: u64,
    /// Correlation id of the call that the call was made in; 0 for none.
    pub(crate) ancestor: u64,
    /// Whether the call's stack is recorded.
    pub(crate) has_stack: bool,
}

impl Call {
    /// Writes the record of a call that begins now. Its tail has `tail` bytes, which `fill` writes; `flags` say what they
    /// are ([`rpd_spool::format::call_flag`]). The empty record when it could not be stored.
    #[inline]
    pub(crate) fn begin(
        &self,
        flags: u32,
        tail: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> OpenRecord {
        let record = thread::with(|thread| {
            let stack = stacks::at_begin(thread, self.has_stack);
            let len = record_len(HEAD, stacks::room(stack) + tail);
            thread.records.append_open(len, |bytes| {
                self.write(bytes, flags, stack, fill);
            })
        })
        .unwrap_or_default();
        if record == OpenRecord::default() {
            thread::lost();
        }
        record
    }

    /// Writes a call without duration, which is complete at once.
    pub(crate) fn instant(&self, flags: u32, tail: usize, fill: impl FnOnce(&mut [u8])) {
        let stack = stacks::of_event(self.has_stack, 0);
        let len = record_len(HEAD, stacks::room(stack) + tail);
        thread::append(len, |bytes| {
            self.write(bytes, flags, stack, fill);
            if let Ok((call, _)) = CallRecord::mut_from_prefix(bytes) {
                call.end = call.start;
            }
        });
    }

    #[inline]
    fn write(
        &self,
        bytes: &mut [u8],
        flags: u32,
        stack: Option<StackRef>,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let (head, tail) = bytes.split_at_mut(HEAD);
        fill(stacks::put(stack, tail));
        // After the tail, so that our work is not measured as part of the call.
        let start = now();
        // In place: copying a struct that was just built on the stack waits for its own stores.
        if let Ok(call) = CallRecord::mut_from_bytes(head) {
            *call = CallRecord {
                header: RecordKind::Call.head(tail.len()).with_aux(self.kind),
                operation: self.operation,
                flags: flags | stacks::flag(stack),
                start,
                end: 0,
                correlation: self.correlation,
                ancestor: self.ancestor,
                retval: 0,
            };
        }
    }
}

/// Completes the record of a call that returned `retval` (its first eight bytes) at `returned`. Nothing when its start
/// could not be stored.
#[inline]
pub(crate) fn end(record: OpenRecord, retval: u64, returned: u64) {
    if record != OpenRecord::default() {
        thread::with(|thread| {
            stacks::at_end(thread, record, returned);
            thread.records.close(record, retval, returned);
        });
    }
}

/// Ends the record of a call with results: `results` go into the room for them, which is `offset` bytes behind the begin of
/// the call's arguments. Nothing is stored in a record without such room.
pub(super) fn end_with(
    record: OpenRecord,
    retval: u64,
    returned: u64,
    offset: usize,
    results: &[u8],
) {
    if record == OpenRecord::default() {
        return;
    }
    thread::with(|thread| {
        let call = thread.records.open_call(record);
        if let Some(call) = call.filter(|call| call.flags & call_flag::RESULTS != 0) {
            let stack = match call.flags & call_flag::STACK {
                0 => 0,
                _ => size_of::<StackRef>(),
            };
            thread.records.fill(record, HEAD + stack + offset, results);
        }
        stacks::at_end(thread, record, returned);
        thread.records.close(record, retval, returned);
    });
}

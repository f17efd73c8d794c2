//! Values that streams wait for in host-visible memory, and which the host writes: a replay writes them when the program had waited
//! for the stream.

use rpd_spool::capture::structs::{
    MEMORY_OPERATION, address_of_operation, bytes_of_value, waits_for_value,
};
use rpd_spool::capture::{Items, call_flag, data_use, item, number};

use super::Begun;
use super::order::covers;
use super::ranges::Range;
use super::state::{CaptureState, STATE};

/// Waits that are under way, and the addresses of values that streams write: for these a replay waits as the program did.
#[derive(Default)]
pub(super) struct Values {
    /// Waits: stream, number of the work, and place of the value.
    waits: Vec<(u64, u64, Range)>,
    written: Vec<u64>,
}

/// An operation on a value: where it is, and whether it waits.
type Operation = (Range, bool);

fn operations(begun: &Begun, arguments: &[u8]) -> Vec<Operation> {
    use number as n;
    let one = |size: u64, waits: bool| {
        let address = begun.argument(arguments, "ptr");
        vec![(Range::flat(address, size), waits)]
    };
    match begun.number {
        n::hipStreamWaitValue32 => one(4, true),
        n::hipStreamWaitValue64 => one(8, true),
        n::hipStreamWriteValue32 => one(4, false),
        n::hipStreamWriteValue64 => one(8, false),
        n::hipStreamBatchMemOp => {
            let mut items = Items(begun.items.bytes());
            let list = items.find(|item| item.kind == item::IN);
            let list = list.map_or(&[][..], |item| item.payload);
            let operations = list.chunks_exact(MEMORY_OPERATION);
            operations
                .filter_map(|operation| {
                    let at = address_of_operation(operation)?;
                    let address = operation.get(at..at + 8)?.try_into().ok()?;
                    let range = Range::flat(u64::from_le_bytes(address), bytes_of_value(operation));
                    Some((range, waits_for_value(operation)))
                })
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The call was made: where it adds operations on values, these are under way.
pub(super) fn end(begun: &Begun, arguments: &[u8]) {
    let found = operations(begun, arguments);
    if found.is_empty() || begun.flags & call_flag::IN_STREAM_CAPTURE != 0 {
        return;
    }
    let stream = begun.stream(arguments);
    STATE.with(|state| {
        let work = state.order.enqueue(stream);
        for (range, waits) in found {
            if !state.is_visible(range.address) {
                continue;
            }
            if waits {
                state.values.waits.push((stream, work, range))
            } else if !state.values.written.contains(&range.address) {
                state.values.written.push(range.address)
            }
        }
    });
}

impl CaptureState {
    /// The values for which work of streams has waited that is complete, and which the host has written. To be called before it is
    /// forgotten what launches use.
    pub(super) fn values_of_host(&mut self, covered: &[(u64, u64)]) -> Vec<Range> {
        let waits = &mut self.values.waits;
        let done = waits.extract_if(.., |(stream, work, _)| covers(covered, *stream, *work));
        let mut done: Vec<Range> = done.map(|(.., range)| range).collect();
        done.retain(|range| {
            let by_stream = self.values.written.contains(&range.address);
            let memory = self.memory_at(range.address);
            let by_kernel = memory.is_some_and(|(_, memory)| memory.used_by.is_some());
            !by_stream && !by_kernel
        });
        done
    }
}

/// Takes values that the host has written.
pub(super) fn take(begun: &mut Begun, values: Vec<Range>) {
    for range in values {
        begun.items.add_data(&range, data_use::UPDATE, 0, false);
    }
}

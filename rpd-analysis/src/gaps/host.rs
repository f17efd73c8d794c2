//! What threads did while a GPU waited for them.

use std::collections::VecDeque;
use std::iter::Peekable;

use super::HostCall;
use crate::classes::{Calls, Doing};
use crate::records::{Call, Each, Records};

/// Calls of each thread that may lie in gaps to come. They are read as far as gaps go.
pub(super) struct HostCalls<'a> {
    calls: Peekable<Each<'a, Call>>,
    doing: Vec<Doing>,
    of_thread: Vec<VecDeque<Call>>,
    /// Time before which calls were given up.
    forgotten: u64,
}

impl<'a> HostCalls<'a> {
    pub(super) fn new(records: &'a dyn Records) -> HostCalls<'a> {
        HostCalls {
            calls: records.calls().peekable(),
            doing: Calls::default().of_all(&records.facts().names),
            of_thread: vec![VecDeque::new(); records.facts().threads.len()],
            forgotten: 0,
        }
    }

    /// Reads the calls that begin before an instant.
    pub(super) fn advance(&mut self, to: u64) {
        while let Some(call) = self.calls.next_if(|call| call.start < to) {
            if call.end <= self.forgotten {
                continue;
            }
            if let Some(calls) = self.of_thread.get_mut(call.thread as usize) {
                calls.push_back(call);
            }
        }
    }

    /// Gives up calls that end before an instant.
    pub(super) fn forget(&mut self, before: u64) {
        if before <= self.forgotten {
            return;
        }
        self.forgotten = before;
        for calls in &mut self.of_thread {
            while calls.front().is_some_and(|call| call.end <= before) {
                calls.pop_front();
            }
        }
    }

    /// Adds times of a thread to `parts` by what it did, and returns the call that takes most of them.
    pub(super) fn split(
        &self,
        thread: u32,
        times: &[(u64, u64)],
        parts: &mut [u64; 6],
    ) -> Option<HostCall> {
        let calls = self.of_thread.get(thread as usize);
        let mut longest: Option<HostCall> = None;
        for (from, to) in times {
            let mut at = *from;
            let first = calls.map_or(0, |calls| calls.partition_point(|call| call.end <= *from));
            let calls = calls.into_iter().flat_map(|calls| calls.range(first..));
            for call in calls.take_while(|call| call.start < *to) {
                let (start, end) = (call.start.max(at), call.end.min(*to));
                if end <= start {
                    continue;
                }
                parts[Doing::Program as usize] += start - at;
                let doing = self.doing.get(call.name as usize).copied();
                parts[doing.unwrap_or(Doing::Api) as usize] += end - start;
                at = end;
                if longest.is_none_or(|longest| end - start > longest.length) {
                    longest = Some(HostCall {
                        length: end - start,
                        name: call.name,
                        call: call.id,
                    });
                }
            }
            parts[Doing::Program as usize] += to - at;
        }
        longest
    }
}

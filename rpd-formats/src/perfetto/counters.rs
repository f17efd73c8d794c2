//! Counter tracks: bytes on their way to agents, allocated on them, and used as scratch memory.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};

use rpd_core::ids::{AgentHandle, Nanoseconds};
use rpd_core::session::{MemoryAction, Session};

use super::proto::{field, nested, uint};
use super::trace::Trace;
use super::tracks::Tracks;
use crate::WriteError;

/// Value `TYPE_COUNTER`.
pub(super) const COUNTER: u64 = 4;
/// Distance of the zeros at both ends of a track, ns.
pub(super) const MARGIN: u64 = 5000;
/// Distance of the points around a copy, ns.
pub(super) const AROUND: u64 = 1000;

/// Writes all counter tracks.
pub(super) fn write(
    trace: &mut Trace,
    tracks: &mut Tracks,
    session: &Session,
) -> Result<(), WriteError> {
    copies(trace, tracks, session)?;
    allocations(trace, tracks, session)?;
    scratch(trace, tracks, session)
}

/// A track and its last point.
struct Points {
    track: u64,
    last: Option<u64>,
    /// Bytes that a value of 1 stands for.
    unit: u64,
}

impl Points {
    /// Describes a track that starts with 0 before `first`.
    fn new(
        trace: &mut Trace,
        tracks: &mut Tracks,
        what: &str,
        agent: AgentHandle,
        first: u64,
    ) -> Points {
        let mut points = Points {
            track: tracks.counter(trace, what, agent),
            last: None,
            unit: tracks.bytes_of_one(),
        };
        points.add(trace, first.saturating_sub(MARGIN), 0);
        points
    }

    /// A point, unless the track has one at that time or later.
    fn add(&mut self, trace: &mut Trace, time: u64, bytes: u64) {
        if self.last.is_some_and(|last| last >= time) {
            return;
        }
        self.last = Some(time);
        let (track, unit) = (self.track, self.unit);
        trace.packet(time, |out| {
            nested(out, field::packet::TRACK_EVENT, |out| {
                uint(out, field::event::TYPE, COUNTER);
                uint(out, field::event::TRACK, track);
                uint(out, field::event::COUNTER, bytes / unit);
            });
        });
    }
}

/// First start and last end.
pub(super) fn extent(span: Option<(Nanoseconds, Nanoseconds)>) -> (u64, u64) {
    let (first, last) = span.unwrap_or_default();
    (first.0, last.0)
}

/// Copies to one agent: memory is that of the copies that run at one time.
struct Traffic {
    points: Points,
    /// Times of points to come.
    times: BinaryHeap<Reverse<u64>>,
    /// Copies that have not started at the last point: start, end, bytes.
    waiting: VecDeque<(u64, u64, u64)>,
    /// End and bytes of the copies that have started and not ended.
    running: BinaryHeap<Reverse<(u64, u64)>>,
    sum: u64,
}

impl Traffic {
    /// Writes the points up to `limit`.
    fn advance(&mut self, trace: &mut Trace, limit: u64) {
        while let Some(&Reverse(time)) = self.times.peek()
            && time <= limit
        {
            self.times.pop();
            while let Some(&(start, end, bytes)) = self.waiting.front()
                && start <= time
            {
                self.waiting.pop_front();
                self.running.push(Reverse((end, bytes)));
                self.sum = self.sum.saturating_add(bytes);
            }
            while let Some(&Reverse((end, bytes))) = self.running.peek()
                && end < time
            {
                self.running.pop();
                self.sum = self.sum.saturating_sub(bytes);
            }
            self.points.add(trace, time, self.sum);
        }
    }
}

fn copies(trace: &mut Trace, tracks: &mut Tracks, session: &Session) -> Result<(), WriteError> {
    let table = &session.copies;
    let (first, last) = extent(table.span());
    let mut agents: BTreeMap<AgentHandle, Traffic> = BTreeMap::new();
    for index in table.indices() {
        let (start, end) = (table.start[index].0, table.end[index].0);
        let agent = table.dst_agent[index];
        let traffic = agents.entry(agent).or_insert_with(|| Traffic {
            points: Points::new(trace, tracks, "COPY BYTES to", agent, first),
            times: BinaryHeap::new(),
            waiting: VecDeque::new(),
            running: BinaryHeap::new(),
            sum: 0,
        });
        let before = start.saturating_sub(AROUND);
        traffic.advance(trace, before);
        traffic.waiting.push_back((start, end, table.bytes[index]));
        let middle = start + end.saturating_sub(start) / 2;
        for time in [before, start, middle, end, end.saturating_add(AROUND)] {
            traffic.times.push(Reverse(time));
        }
        trace.flush_if_full()?;
    }
    for traffic in agents.values_mut() {
        traffic.advance(trace, u64::MAX);
        let after = last.saturating_add(MARGIN);
        traffic.points.add(trace, after, 0);
        trace.flush_if_full()?;
    }
    Ok(())
}

/// A value that operations set.
struct Level {
    points: Points,
    bytes: u64,
    /// End of the last operation, where its value is repeated.
    end: Option<u64>,
}

impl Level {
    fn set(&mut self, trace: &mut Trace, start: u64, end: u64, bytes: u64) {
        self.repeat(trace, start);
        self.bytes = bytes;
        self.points.add(trace, start, bytes);
        self.end = Some(end);
    }

    /// The point at the end of the last operation, unless another has begun by then.
    fn repeat(&mut self, trace: &mut Trace, next: u64) {
        if let Some(end) = self.end.take()
            && end < next
        {
            self.points.add(trace, end, self.bytes);
        }
    }
}

/// Ends the tracks of `levels` with 0.
fn finish(
    trace: &mut Trace,
    levels: BTreeMap<AgentHandle, Level>,
    last: u64,
) -> Result<(), WriteError> {
    for mut level in levels.into_values() {
        level.repeat(trace, u64::MAX);
        level.points.add(trace, last.saturating_add(MARGIN), 0);
        trace.flush_if_full()?;
    }
    Ok(())
}

fn allocations(
    trace: &mut Trace,
    tracks: &mut Tracks,
    session: &Session,
) -> Result<(), WriteError> {
    let table = &session.allocations;
    let (first, last) = extent(table.span());
    let mut levels: BTreeMap<AgentHandle, Level> = BTreeMap::new();
    // Live allocations by address.
    let mut alive: HashMap<u64, (AgentHandle, u64)> = HashMap::new();
    for index in table.indices() {
        let address = table.address[index];
        let class = session.operations[table.operation[index]].class;
        let is_free = class.memory_action() == Some(MemoryAction::Free);
        let (agent, size) = if is_free {
            // A free names no agent; one of memory allocated before the recording has no agent that could be looked up.
            match alive.remove(&address) {
                Some(found) => found,
                None => continue,
            }
        } else {
            let new = (table.agent[index], table.bytes[index]);
            alive.insert(address, new);
            new
        };
        let level = levels.entry(agent).or_insert_with(|| Level {
            points: Points::new(trace, tracks, "ALLOCATE BYTES on", agent, first),
            bytes: 0,
            end: None,
        });
        let bytes = if is_free {
            level.bytes.saturating_sub(size)
        } else {
            level.bytes.saturating_add(size)
        };
        level.set(trace, table.start[index].0, table.end[index].0, bytes);
        trace.flush_if_full()?;
    }
    finish(trace, levels, last)
}

fn scratch(trace: &mut Trace, tracks: &mut Tracks, session: &Session) -> Result<(), WriteError> {
    let table = &session.scratch;
    let (first, last) = extent(table.span());
    let mut levels: BTreeMap<AgentHandle, Level> = BTreeMap::new();
    for index in table.indices() {
        let agent = table.agent[index];
        let level = levels.entry(agent).or_insert_with(|| Level {
            points: Points::new(trace, tracks, "SCRATCH MEMORY on", agent, first),
            bytes: 0,
            end: None,
        });
        let class = session.operations[table.operation[index]].class;
        let bytes = match class.memory_action() {
            Some(MemoryAction::Allocate) => table.bytes[index],
            Some(MemoryAction::Free) => 0,
            // Memory that the runtime reclaims later is still in use.
            Some(MemoryAction::Reclaim) | None => level.bytes,
        };
        level.set(trace, table.start[index].0, table.end[index].0, bytes);
        trace.flush_if_full()?;
    }
    finish(trace, levels, last)
}

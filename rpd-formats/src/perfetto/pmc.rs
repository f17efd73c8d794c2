//! Tracks of hardware counters: a value while a dispatch runs, 0 around it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rpd_core::ids::AgentHandle;
use rpd_core::session::Session;

use super::counters::{AROUND, COUNTER, MARGIN, extent};
use super::proto::{double, field, nested, uint};
use super::trace::Trace;
use super::tracks::Tracks;
use crate::WriteError;

/// A point to come: time, order in which it was made, bits of the value.
type Point = (u64, u64, u64);

/// A track, and its points that are not written yet. Where two points have the same time the first that was made
/// counts.
struct CounterTrack {
    track: u64,
    last: Option<u64>,
    made: u64,
    points: BinaryHeap<Reverse<Point>>,
}

impl CounterTrack {
    fn add(&mut self, time: u64, value: f64) {
        self.made += 1;
        self.points
            .push(Reverse((time, self.made, value.to_bits())));
    }

    /// Writes the points up to `limit`.
    fn advance(&mut self, trace: &mut Trace, limit: u64) {
        while let Some(&Reverse((time, _, bits))) = self.points.peek()
            && time <= limit
        {
            self.points.pop();
            if self.last.is_none_or(|last| last < time) {
                self.last = Some(time);
                write_point(trace, self.track, time, f64::from_bits(bits));
            }
        }
    }
}

/// Writes a point. Whole numbers are as the original has them, cut off. Below 1, where nothing would be left of a
/// ratio, it is the value itself.
pub(super) fn write_point(trace: &mut Trace, track: u64, time: u64, value: f64) {
    trace.packet(time, |out| {
        nested(out, field::packet::TRACK_EVENT, |out| {
            uint(out, field::event::TYPE, COUNTER);
            uint(out, field::event::TRACK, track);
            if value.abs() < 1.0 && value != 0.0 {
                double(out, field::event::DOUBLE_COUNTER, value);
            } else {
                let whole = value as i64;
                uint(out, field::event::COUNTER, whole.cast_unsigned());
            }
        });
    });
}

/// Writes a track for each counter and agent.
pub(super) fn write(
    trace: &mut Trace,
    tracks: &mut Tracks,
    session: &Session,
) -> Result<(), WriteError> {
    let counted = &session.counted;
    let table = &counted.dispatches;
    let (first, last) = extent(table.span());
    let mut curves: BTreeMap<(AgentHandle, u32), CounterTrack> = BTreeMap::new();
    for index in counted.indices() {
        let (start, end) = (table.start[index].0, table.end[index].0);
        let before = start.saturating_sub(AROUND);
        let middle = start + end.saturating_sub(start) / 2;
        for (counter, value) in counted.sums(index) {
            let agent = table.agent[index];
            let curve = curves.entry((agent, counter)).or_insert_with(|| {
                let counter = session.counters.get(counter as usize);
                let name = counter.map_or("", |counter| &counter.name);
                let mut curve = CounterTrack {
                    track: tracks.hardware_counter(trace, agent, name),
                    last: None,
                    made: 0,
                    points: BinaryHeap::new(),
                };
                curve.add(first.saturating_sub(MARGIN), 0.0);
                curve
            });
            // No later dispatch has points before that.
            curve.advance(trace, before);
            curve.add(before, 0.0);
            curve.add(start, value);
            curve.add(middle, value);
            curve.add(end, 0.0);
            curve.add(end.saturating_add(AROUND), 0.0);
        }
        trace.flush_if_full()?;
    }
    for curve in curves.values_mut() {
        curve.add(last.saturating_add(MARGIN), 0.0);
        curve.advance(trace, u64::MAX);
        trace.flush_if_full()?;
    }
    Ok(())
}

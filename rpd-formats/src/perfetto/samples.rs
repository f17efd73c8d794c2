//! Tracks of PC samples: how many were taken of each GPU in a stretch of time and, for stochastic samples, what share of
//! them issued an instruction and how many waves were active.

use std::collections::{BTreeMap, HashMap};

use rpd_core::ids::{AgentHandle, CodeObjectId};
use rpd_core::session::Session;
use rpd_core::spool::format::sample_flag;

use super::counters::extent;
use super::pmc::write_point;
use super::trace::Trace;
use super::tracks::Tracks;
use crate::WriteError;

/// Points of a track: about as many as a viewer can show.
const POINTS: u64 = 4000;
/// The shortest stretch, ns.
const SHORTEST: u64 = 1000;

/// Sums of a stretch.
#[derive(Default, Clone, Copy)]
struct IntervalSums {
    samples: u64,
    stochastic: u64,
    issued: u64,
    waves: u64,
}

/// The tracks of one GPU.
struct Curves {
    tracks: [u64; 3],
    /// Number of the open stretch.
    number: u64,
    open: IntervalSums,
}

impl Curves {
    fn write(&self, trace: &mut Trace, time: u64) {
        let [samples, issued, waves] = self.tracks;
        write_point(trace, samples, time, self.open.samples as f64);
        if self.open.stochastic > 0 {
            let share = self.open.issued as f64 * 100.0 / self.open.stochastic as f64;
            write_point(trace, issued, time, share);
            let mean = self.open.waves as f64 / self.open.stochastic as f64;
            write_point(trace, waves, time, mean);
        }
    }
}

/// Writes the tracks of every GPU with samples.
pub(super) fn write(
    trace: &mut Trace,
    tracks: &mut Tracks,
    session: &Session,
) -> Result<(), WriteError> {
    let table = &session.samples;
    let (first, last) = extent(table.span());
    // The number of points is limited, because the viewer reads all of them at once.
    let length = ((last - first) / POINTS).max(SHORTEST);
    let objects: HashMap<CodeObjectId, AgentHandle> = session
        .code_objects
        .iter()
        .map(|object| (object.id, object.agent))
        .collect();
    let only = session.sampling.first().map(|sampling| sampling.agent);
    let mut curves: BTreeMap<AgentHandle, Curves> = BTreeMap::new();
    for index in table.indices() {
        // Code that no object holds, such as copies of the runtime, counts for the GPU if there is one only.
        let agent = objects.get(&table.object[index]).copied().or(only);
        let number = (table.start[index].0 - first) / length;
        let curve = curves
            .entry(agent.unwrap_or_default())
            .or_insert_with_key(|agent| {
                let mut track = |name| tracks.hardware_counter(trace, *agent, name);
                Curves {
                    tracks: [
                        track("PC samples"),
                        track("PC samples issued %"),
                        track("PC samples active waves"),
                    ],
                    number,
                    open: IntervalSums::default(),
                }
            });
        // Samples are in the order of time, so that an interval is complete when the next one begins.
        if curve.number != number {
            curve.write(trace, first + curve.number * length);
            if curve.number + 1 < number {
                // 0 between the two points.
                write_point(
                    trace,
                    curve.tracks[0],
                    first + (curve.number + 1) * length,
                    0.0,
                );
            }
            curve.number = number;
            curve.open = IntervalSums::default();
        }
        let flags = table.flags[index];
        curve.open.samples += 1;
        if flags & sample_flag::STOCHASTIC != 0 {
            curve.open.stochastic += 1;
            curve.open.issued += u64::from(flags & sample_flag::ISSUED != 0);
            curve.open.waves += u64::from(table.waves[index]);
        }
        trace.flush_if_full()?;
    }
    // The curves end at 0: the viewer draws the last value to the end of the trace otherwise.
    for curve in curves.values() {
        curve.write(trace, first + curve.number * length);
        let end = first + (curve.number + 1) * length;
        write_point(trace, curve.tracks[0], end, 0.0);
    }
    Ok(())
}

//! Counter values, PC samples and thread traces of a dispatch, derived from the instructions that the interpreter
//! executed.
//!
//! [`Model`] observes a dispatch: it assigns workgroups to compute units, passes every access through the caches
//! (`hierarchy`, `second_level`) and LDS (`lds`), and computes the durations of waves (`timing`). The results are [`Counts`]: a value
//! for each event of each instance of a block (`catalogue`), or none where the simulator does not compute it. The
//! rules and figures are in `docs/simulator-counters.md`.
//!
//! PC samples and traces need to know what each wave did at which time. A [`Recorder`] records what some waves
//! executed, a [`Timeline`] has the times at which a compute unit issued it, and a [`Sampler`] looks that up at
//! points in time.

mod activity;
mod cache;
mod catalogue;
mod compute_unit;
mod counting_recorder;
mod counts;
mod hierarchy;
#[cfg(test)]
mod histogram_tests;
pub(crate) mod lds;
mod model;
mod numbering;
mod pages;
mod record;
mod sample;
#[cfg(test)]
mod sample_tests;
mod second_level;
mod sqtt;
#[cfg(test)]
mod sqtt_tests;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
mod timeline;
mod timing;

pub use catalogue::determined_events;
pub use counting_recorder::CountingRecorder;
pub use counts::Counts;
pub use model::Model;
pub use numbering::{accumulates, determined};
pub use pages::{MemoryOf, Owner, PageMemory};
pub use record::{Record, Recorder, Selection};
pub use sample::{Method, Sample, Sampler};
pub use sqtt::{Trace, TraceCounter, TraceCounters, TraceSettings, TracedDispatch, TracedObject};
pub use timeline::{Issued, Pipe, QUAD, Reason, Timeline, WaveTimeline};

//! Hardware counters of a dispatch, derived from the waves and instructions that the interpreter executed.
//!
//! [`Model`] watches a dispatch: it deals workgroups to compute units, follows every access through the caches
//! (`hierarchy`) and LDS (`lds`), and times waves (`timing`). What comes out are [`Counts`]: a value for
//! each event of each block's instances (`catalogue`), or none where this simulator does not determine it. The rules and
//! figures are in `docs/simulator.md`.
//!
//! Samples and traces need what each wave did at which time: a [`Recorder`] records what a part of the waves executed,
//! [`Timeline`] is when a compute unit issued it, and [`Sampler`] looks at that at points in time.

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
pub use record::{Record, Recorder, Selection};
pub use sample::{Method, Sample, Sampler};
pub use sqtt::{Trace, TraceCounter, TraceCounters, TraceSettings, TracedDispatch, TracedObject};
pub use timeline::{Issued, Pipe, QUAD, Reason, Timeline, WaveTimeline};

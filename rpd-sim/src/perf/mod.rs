//! Hardware counters of a dispatch, derived from the waves and instructions that the interpreter executed.
//!
//! A counted dispatch yields [`Counts`]: a value for each event of each block's instances, or none where this
//! simulator cannot tell. What a value means and which rules it follows is in `docs/simulator.md`.

mod catalogue;
mod counts;

pub(crate) use catalogue::{accumulates, determined, determined_events};
pub(crate) use counts::Counts;

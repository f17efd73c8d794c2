//! Hardware counters of a dispatch, derived from the waves and instructions that the interpreter executed.
//!
//! [`Model`] watches a dispatch: it deals workgroups to compute units, follows every access through the caches
//! (`hierarchy`) and LDS (`lds`), and times waves (`timing`). What comes out are [`Counts`]: a value for
//! each event of each block's instances (`catalogue`), or none where this simulator does not determine it. The rules and
//! figures are in `docs/simulator.md`.

mod cache;
mod catalogue;
mod counts;
mod hierarchy;
mod lds;
mod model;
mod pages;
mod tally;
#[cfg(test)]
pub(crate) mod tests;
mod timing;

pub use catalogue::{accumulates, determined, determined_events};
pub use counts::Counts;
pub use model::Model;

//! The collector that rpd injects into the target.
//!
//! It is told what to record by two environment variables ([`rpd_spool::SPOOL_VARIABLE`],
//! [`rpd_spool::COLLECT_VARIABLE`]), asks the provider for it, and writes what the provider delivers into the spool.
//! It prints nothing, changes nothing in the target and survives everything the target does to itself.
//!
//! Layers, each of which uses only those above it:
//!
//! | module | subject |
//! |---|---|
//! | `recording` | what is written and when: process, threads, meta stream, notes, sums, pause and resume |
//! | `lifecycle` | the collector in the target's process: signals |
//! | `kokkos` | the Kokkos tools interface |
//! | `sdk` | the provider of the rocprofiler-sdk ABI: registration and services |

mod kokkos;
mod lifecycle;
mod recording;
mod sdk;

pub use sdk::entry::{rocprofiler_configure, rpd_collect_end, rpd_collect_note};

//! The collector that rpd injects into the target.
//!
//! Two environment variables hold where and what to record ([`rpd_spool::SPOOL_VARIABLE`], [`rpd_spool::COLLECT_VARIABLE`]; in a
//! process that rpd attached itself to, [`rpd_spool::ATTACHED_SPOOL_VARIABLE`] and [`rpd_spool::ATTACHED_COLLECT_VARIABLE`]).
//! The collector configures the provider accordingly, and writes what the provider delivers into the spool. It prints
//! nothing and does not change the behaviour of the target, also when that forks, is killed or ends abnormally.
//!
//! Layers; each uses only those below it:
//!
//! | module | subject |
//! |---|---|
//! | `entry` | the functions that `librpd_register.so` calls |
//! | `sdk` | a provider: what knows the ABI of rocprofiler-sdk |
//! | `direct` | a provider: wraps the functions of the runtimes itself |
//! | `cuda` | a provider: what knows CUPTI and NVTX |
//! | `agent` | the record of an agent, which all write |
//! | `names` | kinds and operations under the SDK's numbers, for providers without it |
//! | `captured`, `code_bytes` | captures: wrappers in the tables that both have, and the code objects of both |
//! | `kokkos` | the Kokkos tools interface |
//! | `rpd_tracer` | the C functions of RPD's tracer |
//! | `roctx` | the ROCTx library, to which both pass marks and ranges |
//! | `python` | what the Python package `rpd` calls |
//! | `lifecycle` | the collector in the target's process: load, exit, fork, signals |
//! | `tables` | the dispatch tables of runtimes, and their functions |
//! | `recording` | what is recorded, and where it goes |

#![deny(clippy::disallowed_methods)]

mod agent;
mod captured;
mod code_bytes;
mod cuda;
mod direct;
mod entry;
mod kokkos;
mod lifecycle;
mod names;
mod python;
mod recording;
mod roctx;
mod rpd_tracer;
mod sdk;
mod tables;

pub use cuda::entry::InitializeInjection;
pub use cuda::nvtx::InitializeInjectionNvtx2;
pub use entry::{
    rpd_collect_end, rpd_collect_flush, rpd_collect_note, rpd_collect_ran_without,
    rpd_collect_set_api_table, rpd_collect_takes,
};
pub use rpd_tracer::{rpd_mark, rpd_rangePop, rpd_rangePush, rpdflush, rpdstart, rpdstop};
pub use sdk::attachment::rocprofiler_configure_attach;
pub use sdk::entry::rocprofiler_configure;

//! The collector that rpd injects into the target.
//!
//! It is told what to record by two environment variables ([`rpd_spool::SPOOL_VARIABLE`],
//! [`rpd_spool::COLLECT_VARIABLE`]), asks the provider for it, and writes what the provider delivers into the spool.
//! It prints nothing, changes nothing in the target and survives everything the target does to itself.
//!
//! | module | subject |
//! |---|---|
//! | `process` | the process as the spool knows it: directory, meta stream, fork |
//! | `meta` | records of the meta stream |
//! | `totals` | sums that are kept up to date in place, also by forked children |
//! | `thread` | streams of threads, and what a thread has open |
//! | `guard` | nothing unwinds into foreign code |
//! | `register` | how the provider finds, starts and ends us |
//! | `recording` | when it is on: pause and resume, selected regions, collection periods |
//! | `signals` | signals that end the target while work is under way |
//! | `forked_end` | the end of a forked child whose provider waits for a thread it does not have |
//! | `names` | kinds and operations by name |
//! | `api` | calls of HIP, HSA, RCCL, rocDecode, rocJPEG |
//! | `arguments` | where the arguments of calls are |
//! | `marker` | ROCTx marks, ranges, names, pause and resume |
//! | `rename` | ranges that rename kernels |
//! | `stream` | HIP streams, and the ids that tie device work to them |
//! | `dispatch`, `memory` | kernels; copies, allocations, scratch |
//! | `counters` | hardware counters of kernels: the service and its values |
//! | `counter_config` | which counters are collected on which GPU, groups in turn |
//! | `counter_facts` | what counters are, and which value is which |
//! | `kernel_selection` | which dispatches are counted |
//! | `code_object`, `runtime`, `agents` | facts that records refer to |
//! | `kokkos` | the Kokkos tools interface |

mod agents;
mod api;
mod arguments;
mod code_object;
mod counter_config;
mod counter_facts;
mod counters;
mod dispatch;
mod forked_end;
mod guard;
mod kernel_selection;
mod kokkos;
mod marker;
mod memory;
mod meta;
mod names;
mod process;
mod read;
mod recording;
mod register;
mod rename;
mod runtime;
mod signals;
mod stream;
mod thread;
mod totals;

pub use register::{rocprofiler_configure, rpd_collect_end, rpd_collect_note};

//! The provider of the rocprofiler-sdk ABI. Nothing outside this directory uses that ABI.
//!
//! Another provider would be a directory beside this one that writes through [`crate::recording`].
//!
//! | module | subject |
//! |---|---|
//! | `entry` | how the provider finds, starts and ends the collector |
//! | `services` | table of the services: what each does at set-up, beginning and end |
//! | `contexts` | contexts that pause and resume start and stop |
//! | `api` | calls of HIP, HSA, RCCL, rocDecode, rocJPEG |
//! | `marker`, `rename` | ROCTx: marks, ranges, names, pause and resume; ranges that rename kernels |
//! | `stream` | HIP streams, and the ids that tie device work to them |
//! | `dispatch`, `memory` | kernels; copies, allocations, scratch memory |
//! | `graphs`, `hip_events` | executable graphs and their launches; HIP events on the device |
//! | `kfd` | events of the kernel driver |
//! | `buffers` | buffers of the provider, which graphs and the driver's events come through |
//! | `counters` | hardware counters of kernels |
//! | `pc_sampling` | program counters of waves |
//! | `thread_trace` | streams of shader engines: the instructions of waves |
//! | `capture_markers` | captures: markers that name a part of the run |
//! | `intercept` | captures: the runtimes' dispatch tables |
//! | `access_trace` | captures: recordings of memory accesses that the provider makes |
//! | `kernel_check` | the provider's search for errors of kernels |
//! | `code_object`, `runtime`, `agents` | facts that records refer to |
//! | `forked_end` | the end of a forked child whose provider waits for a thread that it does not have |
//! | `setup`, `trace`, `query` | configuration of services; their records; queries that answer through a callback |
//! | `names` | kinds and operations by name |
//! | `provider`, `payload` | functions and structs of the ABI |

mod access_trace;
mod agents;
mod api;
pub(crate) mod attachment;
mod buffers;
mod capture_markers;
mod code_object;
mod contexts;
mod counters;
mod dispatch;
pub(crate) mod entry;
mod forked_end;
mod graphs;
mod hip_events;
mod intercept;
mod kernel_check;
mod kfd;
mod marker;
mod memory;
mod names;
mod payload;
mod pc_sampling;
mod provider;
mod query;
mod rename;
mod runtime;
mod runtime_end;
mod services;
mod setup;
mod stream;
mod thread_trace;
mod trace;

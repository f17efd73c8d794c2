//! The provider that wraps the functions of the runtimes itself.
//!
//! `librpd_register.so` passes it the dispatch tables that it would pass to an SDK, which is not loaded. It puts functions
//! of its own into their slots: wrappers that record calls ([`wrappers`]), and below them, for HSA and ROCTx, hooks that
//! record what the calls do. Records are the same as those of the SDK's events, with the same kinds and numbers.
//!
//! | module | subject |
//! |---|---|
//! | `entry` | when this provider is used, its configuration, its end |
//! | `tables` | what goes into which slots of a runtime's tables |
//! | `wrappers`, `calls` | calls: a wrapper for each function, and what wrappers do |
//! | `hooks` | functions of ours below the wrappers |
//! | `markers` | ROCTx |
//! | `streams` | HIP streams |
//! | `graphs` | executable graphs of HIP and their launches |
//! | `dispatch`, `copies`, `allocations` | device work, at the HSA calls that make it |
//! | `attach` | a process that waits to be attached to: its runtimes, the thread that takes requests, recordings |
//! | `doorbells` | its kernel dispatches |
//! | `submissions` | when packets are submitted |
//! | `code_objects`, `agents` | facts that records refer to |
//! | `pending`, `borrowed`, `poller` | device work that is under way, and how its times are read |
//! | `hsa`, `clock` | the HSA runtime below all hooks; its clock |

mod agents;
mod allocations;
mod attach;
mod borrowed;
mod calls;
mod clock;
mod code_objects;
mod copies;
mod dispatch;
mod doorbells;
pub(crate) mod entry;
mod graphs;
mod hooks;
mod hsa;
mod markers;
mod pending;
mod poller;
mod shutdown;
mod streams;
mod submissions;
mod tables;
mod topology;
mod wrappers;

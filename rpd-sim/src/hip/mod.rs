//! The HIP runtime and compiler API, written on HSA as the real one is.
//!
//! Files named `api` or ending in `_api`, and `error`, `later`, `misc`, `module`, `module::fatbin`, `module::occupancy`,
//! `memory::pointer`, `memory::pool` and `stream::event`, hold functions under their API names; the build finds them by
//! those names. Below them are `runtime` (the process's state), `device`, `memory` (the table of allocations), `stream`
//! (order of operations, hardware queues and signals), `launch` (kernel arguments, packets, what kernels request of the
//! host), `copy` (copies, fills and the runtime's own kernels), `image` (arrays and textures) and `graph`, and `hsa` below
//! all.
#![allow(non_snake_case)]

pub(crate) mod copy;
pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod graph;
pub(crate) mod hsa;
pub(crate) mod image;
pub(crate) mod later;
pub(crate) mod launch;
pub(crate) mod memory;
pub(crate) mod misc;
pub(crate) mod module;
mod names;
pub(crate) mod runtime;
mod settings;
pub(crate) mod stream;
#[cfg(test)]
mod tests;
mod types;

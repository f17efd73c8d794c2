//! The HIP runtime and compiler API, written on HSA as the real one is.
//!
//! Files ending in `_api`, and `error`, `event`, `fatbin`, `module`, `occupancy`, `pointer` and
//! `pool`, hold functions under their API names; the build finds them by those names. Below them are
//! `runtime` (the process's state), `device`, `memory` (the table of allocations), `stream` (order of operations), `queue`, `signal`, `kernarg`,
//! `copy`, `fill`, `launch`, `hostcall` (what kernels request of the host), `array`, `texture`, `graph` and `blit` (the runtime's own kernels), and
//! `hsa` below all.
#![allow(non_snake_case)]

mod array;
mod blit;
mod callback;
mod capture_rules;
mod copy;
mod device;
pub(crate) mod error;
pub(crate) mod event;
pub(crate) mod fatbin;
mod fill;
mod function;
mod graph;
mod graph_memory;
mod graph_node;
mod hostcall;
mod hsa;
mod image_types;
mod kernarg;
pub(crate) mod later;
mod launch;
mod names;
pub(crate) mod occupancy;
mod physical;
pub(crate) mod pool;
mod printf;
mod printf_buffer;
mod props;
mod queue;
pub(crate) mod runtime;
mod settings;
mod shared_event;
mod signal;
mod stream;
pub(crate) mod stream_value;
mod texture;
mod types;
pub(crate) mod user_object;

pub(crate) mod array_api;
pub(crate) mod array_copy_api;
pub(crate) mod capture_api;
pub(crate) mod context_api;
pub(crate) mod copy_api;
mod copy_params;
pub(crate) mod device_api;
pub(crate) mod fill_api;
pub(crate) mod graph_api;
pub(crate) mod graph_params_api;
pub(crate) mod launch_api;
pub(crate) mod launch_config_api;
pub(crate) mod managed_api;
pub(crate) mod memory;
pub(crate) mod memory_api;
pub(crate) mod mipmapped_api;
pub(crate) mod misc;
pub(crate) mod module;
pub(crate) mod multi_device_api;
pub(crate) mod pointer;
pub(crate) mod shared_api;
pub(crate) mod stream_api;
#[cfg(test)]
mod tests;
pub(crate) mod texture_api;
pub(crate) mod texture_reference_api;
pub(crate) mod virtual_api;

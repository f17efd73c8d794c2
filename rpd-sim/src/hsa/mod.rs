//! The HSA runtime: core and AMD extension API on top of the simulated device.
//!
//! Functions carry the names and C signatures of the API; the dispatch tables are made of them.

pub(crate) mod agent;
pub(crate) mod copy;
pub(crate) mod executable;
pub(crate) mod executable_symbols;
pub(crate) mod image;
pub(crate) mod image_calls;
pub(crate) mod image_objects;
pub(crate) mod intercept;
pub(crate) mod loader;
pub(crate) mod memory;
pub(crate) mod profiling;
pub(crate) mod queue;
pub(crate) mod reader;
pub(crate) mod shared;
pub(crate) mod signal;
mod state;
mod support;
pub(crate) mod symbol;
pub(crate) mod system;
#[cfg(test)]
mod tests;
pub(crate) mod types;
pub(crate) mod vmem;

pub(crate) use crate::gpu::visible;

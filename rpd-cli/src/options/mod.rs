//! The command line: its table, its parser, and what it resolves to.

pub(crate) mod attach;
mod choices;
pub(crate) mod counters;
mod counting;
pub(crate) mod extra_counters;
mod filters;
pub(crate) mod given;
mod inherit;
pub(crate) mod jobs;
mod light;
mod long_runs;
mod merge;
mod node;
mod outputs;
pub(crate) mod parse;
mod pass;
pub(crate) mod plan;
mod platform;
mod provider;
mod ranks;
mod replay;
pub(crate) mod resolve;
mod sampling;
mod scalar;
pub(crate) mod size;
pub(crate) mod spec;
mod stacks;
mod summary;
pub(crate) mod table;
mod thread_trace;
mod traces;
mod value;

pub(crate) use choices::{Choice, SimulatedGpu};
pub(crate) use platform::default_sdk_suffixes;
pub(crate) use value::truth;

#[cfg(test)]
mod tests;

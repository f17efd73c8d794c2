//! The command line: its table, its parser, and what it resolves to.

pub(crate) mod counters;
pub(crate) mod extra_counters;
mod filters;
pub(crate) mod given;
mod inherit;
pub(crate) mod jobs;
mod light;
mod merge;
mod outputs;
pub(crate) mod parse;
mod pass;
pub(crate) mod plan;
mod provider;
mod ranks;
pub(crate) mod resolve;
pub(crate) mod sampling;
pub(crate) mod size;
mod stacks;
mod summary;
pub(crate) mod table;
mod thread_trace;

pub(crate) use outputs::default_sdk_suffixes;

#[cfg(test)]
mod tests;

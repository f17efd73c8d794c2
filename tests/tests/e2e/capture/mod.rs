//! Captures, and replays of them.

pub(crate) mod captures;
mod conformance;
mod direct;
mod ends;
pub(crate) mod excerpts;
mod files;
mod graph_kernels;
mod hiptracer;
mod limits;
mod order;
mod outputs;
mod programs;
mod regions;

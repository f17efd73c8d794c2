//! Call stacks of the calling thread.
pub mod python;

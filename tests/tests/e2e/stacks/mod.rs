//! Call stacks: native, Python and merged.

pub(crate) mod answers;
mod cases;
mod impossible_times;
mod modes;
mod programs;
mod python_package;
mod symbols;
mod torch;

//! Native stacks of real code, compared with framehop, with libgcc, and with what the code is known to do.
//!
//! Tests whose names start with `n` and a number are the conformance cases of that number. Cases of native stacks that
//! are not here: 15 to 17 and 28 are about names, which are looked up after the run; 44 to 54 are about what is recorded
//! (images that were executed, files, filters, graphs, markers), not about a stack. Of 18, 23 and 34 the part that
//! happens during the capture is here.

#![allow(clippy::unwrap_used)]

mod foreign;
mod framehop_unwinder;
mod guess;
mod jit;
mod loader;
mod memo;
mod other_registers;
mod programs;
mod random;
mod support;
mod threads;
mod walk;

//! Native stacks of real code, compared with framehop, with libgcc, and with what the code is known to do.
//!
//! Names, which are looked up after the run, are tested in `rpd-symbols`, and what is recorded of a program (executed
//! images, files, filters, graphs, markers) in the end-to-end tests.

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

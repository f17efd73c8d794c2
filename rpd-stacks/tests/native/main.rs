//! Native stacks of real code, compared with framehop, with libgcc, and with what the code is known to do.
//!
//! Tests whose names start with `n` and a number are the conformance cases of that number.

mod memo;
mod oracle;
mod random;
mod support;
mod walk;

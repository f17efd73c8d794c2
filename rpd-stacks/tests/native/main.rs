//! Native stacks of real code, compared with framehop and with what the code is known to do.
//!
//! Tests whose names start with `n` and a number are the conformance cases of that number.

mod oracle;
mod support;
mod walk;

//! Comparison of the ABI with the C headers. One binary, so that the tests link once.

mod bits;
mod functions;
mod layout;
mod values;

//! The ABI as the C headers have it. One binary, so that the tests link once.

mod bits;
mod functions;
mod layout;
mod values;

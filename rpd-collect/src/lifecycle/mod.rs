//! The collector in the target's process.

pub(crate) mod signals;

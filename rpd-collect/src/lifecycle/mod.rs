//! Events in the life of the target's process: load, exit, fork, signals.

pub(crate) mod load;
pub(crate) mod signals;

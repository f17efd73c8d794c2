//! Events in the life of the target's process: load, exit, fork, signals.

mod alone;
pub(crate) mod load;
pub(crate) mod signals;

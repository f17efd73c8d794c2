//! The HSA runtime: core and AMD extension API on top of the simulated device.
//!
//! Functions carry the names and C signatures of the API; the dispatch tables are made of them.

pub(crate) mod types;

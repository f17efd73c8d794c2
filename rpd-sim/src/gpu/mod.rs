//! The simulated device.

pub(crate) mod aql;
pub(crate) mod observe;

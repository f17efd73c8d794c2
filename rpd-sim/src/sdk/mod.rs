//! The provider side of the rocprofiler-sdk ABI.

pub(crate) mod register;
pub(crate) mod thread;

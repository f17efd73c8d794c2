//! The provider of the rocprofiler-sdk ABI.

pub(crate) mod agents;
pub(crate) mod api;
pub(crate) mod code_object;
pub(crate) mod counters;
pub(crate) mod dispatch;
pub(crate) mod entry;
pub(crate) mod forked_end;
pub(crate) mod marker;
pub(crate) mod memory;
pub(crate) mod names;
pub(crate) mod rename;
pub(crate) mod runtime;
pub(crate) mod stream;

//! Dispatch tables, exported symbols and tracing wrappers.

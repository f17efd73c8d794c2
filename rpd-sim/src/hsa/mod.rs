//! The HSA runtime.

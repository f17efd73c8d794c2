//! The target process: its program and provider, the environment that it is started with, its start and its end.

pub(crate) mod backend;
pub(crate) mod environment;
pub(crate) mod image;
pub(crate) mod libraries;
pub(crate) mod program;
pub(crate) mod spawn;

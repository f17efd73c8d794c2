//! Statistics and tables over sessions.
//!
//! [`Statistics`] holds the durations of a session as polars frames and computes tables from them;
//! [`text`] prints tables.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod database;
pub mod diff;
mod frames;
mod groups;
mod summaries;
pub mod text;

#[cfg(test)]
mod tests;

pub use frames::{Statistics, SummaryError};
pub use summaries::Group;

//! Statistics over sessions.
//!
//! [`Statistics`] holds the durations of a session as polars frames and computes tables from them.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod database;
pub mod diff;
mod frames;
mod groups;
mod summaries;

#[cfg(test)]
mod tests;

pub use frames::{Statistics, SummaryError};
pub use summaries::Group;

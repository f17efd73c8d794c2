//! Statistics over sessions.
//!
//! [`Statistics`] holds the durations of a session by domain and name and computes tables from them.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod database;
pub mod diff;
mod groups;
mod statistics;
mod summaries;

#[cfg(test)]
mod tests;

pub use statistics::{Statistics, SummaryError};
pub use summaries::Group;

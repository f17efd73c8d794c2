//! Writers of rpd output formats.
//!
//! Each module is a format: from a session (and statistics handed in as values) to files called
//! `<directory>/<prefix>_<name>`. A file gets its final name once it is complete; an error leaves none behind.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod columns;
pub mod csv;
mod describe;
pub mod destination;
pub mod file;
pub mod html;
mod json;
mod operations;
pub mod otf2;
mod output;
pub mod parquet;
pub mod perfetto;
pub mod progress;
pub mod registry;
pub mod results_json;
pub mod rocpd;
pub mod rpd_file;
pub mod settings;
mod streams;
pub mod table;

pub use output::{Output, WriteError};
pub use registry::write;

//! Readers of databases and writers of all output formats: recordings of GPU programs in files.
//!
//! [`rocpd::read::Database`] opens a rocpd database, of rpd or of the original tools, and makes a
//! [`Session`](rpd_core::session::Session) of each process in it. [`write()`] writes a session in any format:
//!
//! ```
//! use rpd_core::naming::Target;
//! use rpd_core::options::{Format, Options};
//! use rpd_core::session::LoadOptions;
//! use rpd_formats::Output;
//! use rpd_formats::rocpd::read::Database;
//!
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path();
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/trace_results.db");
//! # let path = std::path::Path::new(path);
//! # let mut count = 0;
//! let database = Database::open(path)?;
//! for recording in database.recordings() {
//!     let (session, settings) = database.session(recording, LoadOptions::default())?;
//!
//!     // The kernels, named as in the database, with their durations.
//!     let kernels = session.kernels(settings.kernel_names);
//!     let times = kernels.dispatches;
//!     for i in times.indices() {
//!         let duration = times.end[i].0.saturating_sub(times.start[i].0);
//!         println!("{}: {duration} ns", kernels.name(i));
//! #       assert!(duration > 0 && kernels.name(i).contains("_kernel"));
//! #       count += 1;
//!     }
//!
//!     // `<directory>/run_kernel_trace.csv` and so on, and `<directory>/run_results.db`.
//!     let output = Output {
//!         session: &session,
//!         stats: None,
//!         options: &Options::default(),
//!         target: &Target {
//!             directory: directory.to_owned(),
//!             prefix: "run".to_owned(),
//!         },
//!     };
//!     for format in [Format::Csv, Format::Rocpd] {
//!         for file in rpd_formats::write(format, &output)? {
//!             println!("{}", file.display());
//!         }
//!     }
//! }
//! # assert!(count > 0);
//! # assert!(directory.join("run_kernel_trace.csv").is_file());
//! # assert!(directory.join("run_results.db").is_file());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The examples `slowest-kernels` and `own-events` are small programs of this sort; `docs/library.md` tells how other
//! programs use this crate. Parquet is written with the feature `parquet` only.
//!
//! Each module is a format: from a session (and statistics handed in as values) to files called
//! `<directory>/<prefix>_<name>`. A file gets its final name once it is complete; an error leaves none behind.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod columns;
pub mod csv;
mod describe;
pub mod destination;
pub mod file;
pub mod flame;
pub mod html;
mod joint;
mod json;
mod kfd;
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
mod trace_events;

pub use joint::JointTimeline;
pub use output::{Output, Placed, Together, WriteError, shown_span};
pub use registry::write;

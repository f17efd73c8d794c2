//! Data exchanged between the target and the front end: the spool, which the collector fills while the target runs; the
//! options that tell it what to record; and the selection of kernels by name, which both sides need.
//!
//! A run has one directory, `<output>/.rpd/run-<pid>-<ns>/`, with the resolved options in
//! [`OPTIONS_FILE`] and one sub-directory per recorded process image, `proc-<pid>-<ns>-<namespace>/` ([`image`]). In there every
//! stream is a series of segment files `<stream>-<number>.seg` (see [`mod@format`]); a reader needs no
//! cooperation from the writer.

pub mod access_trace;
pub mod agent;
pub mod control;
pub mod cut;
pub mod durations;
pub mod environment;
pub mod follow;
pub mod format;
pub mod hidden_frames;
pub mod idle;
pub mod image;
pub mod kernel_check;
pub mod kernel_filter;
pub mod kernel_name;
mod limit;
mod live;
pub mod mapped;
mod mapping;
pub mod options;
#[cfg_attr(miri, path = "pages_in_miri.rs")]
mod pages;
pub mod reader;
pub mod regular_file;
pub mod removed;
pub mod sampling;
mod spares;
pub mod stacks;
pub mod thread_trace;
pub mod threads;
pub mod writer;

pub use format::{capture, record};
pub use rpd_demangle as demangle;

/// Name of the file in a run's directory that holds the resolved options (JSON).
pub const OPTIONS_FILE: &str = "options.json";

/// Environment variable through which the target finds its run's directory (absolute path).
pub const SPOOL_VARIABLE: &str = "RPD_SPOOL";

/// Environment variable that tells the collector which services to switch on; see [`crate::options::CollectorOptions`].
pub const COLLECT_VARIABLE: &str = "RPD_COLLECT";

/// What [`SPOOL_VARIABLE`] is for a process that rpd attached itself to: only variables with names like this one reach it.
pub const ATTACHED_SPOOL_VARIABLE: &str = "ROCPROF_RPD_SPOOL";

/// What [`COLLECT_VARIABLE`] is for a process that rpd attached itself to.
pub const ATTACHED_COLLECT_VARIABLE: &str = "ROCPROF_RPD_COLLECT";

/// Name of the file in a run's directory that holds the kernels to count, made by [`crate::kernel_filter`].
pub const INCLUDE_FILE: &str = "kernel-include";

/// Name of the file in a run's directory that holds the kernels not to count, made by [`crate::kernel_filter`].
pub const EXCLUDE_FILE: &str = "kernel-exclude";

/// Name of the file in a run's directory that holds counter definitions of the user's (YAML).
pub const EXTRA_COUNTERS_FILE: &str = "extra-counters.yaml";

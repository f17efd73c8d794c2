//! The targets, each with its seeds.

mod accesses;
mod captures;
mod cells;
mod code_objects;
mod definitions;
mod expressions;
mod instructions;
mod job_files;
mod kernel_filter;
mod names;
mod rocpd;
mod spool;
mod thread_trace;

use crate::Target;

/// All fuzz targets.
pub const TARGETS: &[Target] = &[
    spool::TARGET,
    rocpd::TARGET,
    job_files::TARGET,
    definitions::TARGET,
    expressions::TARGET,
    code_objects::TARGET,
    instructions::TARGET,
    kernel_filter::TARGET,
    thread_trace::TARGET,
    accesses::TARGET,
    captures::TARGET,
    names::TARGET,
];

/// Fails unless the message is one line that is not empty.
fn assert_one_line(message: &str) {
    assert!(!message.is_empty(), "an error without a message");
    assert!(
        !message.contains('\n'),
        "a message of several lines: {message:?}"
    );
}

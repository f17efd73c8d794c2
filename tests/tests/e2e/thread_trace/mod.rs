//! Thread traces.

mod inside_runs;
pub(crate) mod runs;
mod selection;
mod thread_traces;

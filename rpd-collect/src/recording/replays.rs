//! Runs of a dispatch that a provider makes several times. What a thread submits meanwhile is one dispatch of the program.

use std::cell::Cell;

thread_local! {
    /// The run that this thread submits.
    static PASS: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The run, from 0, of the dispatch that this thread submits; `None` where it is not replayed.
pub(crate) fn pass() -> Option<u32> {
    PASS.get()
}

/// Sets the run of the dispatch that this thread submits.
pub(crate) fn set_pass(pass: Option<u32>) {
    PASS.set(pass);
}

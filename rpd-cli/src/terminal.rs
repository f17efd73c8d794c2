//! The terminal behind a standard stream.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// Letters in a line of a terminal; `None` of what is no terminal, or one that does not tell. The variable `COLUMNS` goes before
/// what the terminal tells.
pub(crate) fn width(stream: impl IsTerminal + AsFd) -> Option<usize> {
    if !stream.is_terminal() {
        return None;
    }
    let given = std::env::var("COLUMNS").ok();
    let given = given.and_then(|text| text.parse().ok());
    let told = || terminal_size::terminal_size_of(stream).map(|(width, _)| width.0.into());
    given.or_else(told).filter(|width| *width > 0)
}

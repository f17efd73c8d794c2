//! The command line: its table, its parser, and what it resolves to.

pub(crate) mod parse;
pub(crate) mod resolve;
mod summary;
pub(crate) mod table;

#[cfg(test)]
mod tests;

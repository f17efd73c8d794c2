//! Thread traces after a run: which files there are, and what is made of them.

pub(crate) mod collected;
pub(crate) mod decode;
pub(crate) mod files;

//! Texts: those of arguments, names that are not UTF-8, texts from elsewhere that go to a terminal, and near misses of names.

pub mod args;
pub mod foreign;
pub mod near;
pub mod os_text;

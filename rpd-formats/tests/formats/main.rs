//! Outputs of the writers, beside files of the original tools and through independent readers. One binary, so that the
//! tests link once.

#![expect(clippy::disallowed_methods, reason = "inputs of tests")]

mod counters;
mod documents;
mod facts;
mod flame_page;
mod golden;
mod html;
mod later_schemas;
mod library;
mod otf2;
mod other_readers;
mod parquet;
mod perfetto_names;
mod read;
mod results;
mod support;
mod synthetic;
mod tables;
mod timeline_page;
mod traces;

//! Symbols of real binaries, built here, beside the output of GNU addr2line.

mod database;
mod native;
mod recording;
mod split;

//! Symbols of real binaries, built here, beside what GNU addr2line says of them.

mod database;
mod native;
mod page;
mod recording;

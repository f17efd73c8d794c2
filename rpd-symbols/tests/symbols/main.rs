//! Symbols of real binaries, built here, beside what GNU addr2line says of them.

mod native;

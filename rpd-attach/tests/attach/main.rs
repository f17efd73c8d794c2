//! Attaching to real processes, whose libraries are made for the test: they do what registration library 0.6.0 does.

mod harness;
mod refusals;
mod sessions;
mod sudden_ends;

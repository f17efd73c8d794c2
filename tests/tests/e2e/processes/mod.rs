//! Processes as they really run: how they start, fork, end and are controlled.

mod binding;
mod control;
mod foreign;
mod gate;
mod ipc;
mod long_runs;
mod odd_programs;
mod open_ranges;
mod rank_tables;
mod rpd_controls;
mod stress;
pub(crate) mod sudden_ends;
mod top;
mod transparency;
mod trees;

//! Processes as they really run: how they start, fork, end and are controlled.

mod attach;
mod binding;
mod control;
mod doctor;
mod foreign;
mod gate;
mod ipc;
mod long_runs;
mod many_ranks;
mod odd_programs;
mod open_ranges;
mod rank_tables;
mod rpd_controls;
mod stress;
pub(crate) mod sudden_ends;
mod top;
mod transparency;
mod trees;
mod upstream_attach;

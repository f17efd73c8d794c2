//! The end-to-end tests: one program, so that everything is linked once; a module for each subject.

mod allocations;
mod binding;
mod captures;
mod checks;
mod compat;
mod counters;
mod database;
mod foreign;
mod gate;
mod main_job;
mod names;
mod odd_programs;
mod pc_sampling;
mod providers;
mod python_package;
mod recovery;
mod refusals;
mod sdk_events;
mod stack_answers;
mod stack_symbols;
mod stacks;
mod sudden_ends;
mod thread_trace_runs;
mod thread_traces;
mod transparency;
mod workloads;

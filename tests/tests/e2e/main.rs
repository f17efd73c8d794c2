//! The end-to-end tests: one program, so that everything is linked once; a module for each subject.

mod capture;
mod counters;
mod cuda;
mod driver_events;
mod graphs;
mod main_job;
mod outputs;
mod processes;
mod providers;
mod recovery;
mod refusals;
mod sampling;
mod simulator;
mod stacks;
mod thread_trace;

//! The end-to-end tests: one program, so that everything is linked once; a module for each subject.

mod main_job;
mod sdk_events;
mod workloads;

//! The end-to-end tests: one program, so that everything is linked once; a module for each subject.

mod sdk_events;
mod workloads;

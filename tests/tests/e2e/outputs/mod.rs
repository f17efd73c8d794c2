//! Files, names and tables.

mod advise;
mod agents;
mod allocations;
mod answers;
mod argument_results;
mod cluster;
mod compat;
mod database;
mod default_streams;
mod documented;
mod explanations;
mod files_of_rpd;
mod light;
mod names;
mod quiet;
mod view;

//! The simulated GPU under rpd.

mod accesses;
mod checks;
mod collectives;
mod faults;
mod grids;
mod known_kernels;
mod sdk_events;
mod workloads;

//! PC samples.

mod host_trap;
mod hot_formats;
mod stochastic;

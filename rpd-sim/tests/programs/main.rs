//! Programs in C that use the simulator's libraries as tools and targets do. One binary, so that the tests link once.

mod amd_smi;
mod common;
mod cooperative;
mod counting;
mod hiprtc;
mod hsa_names;
mod inside;
mod lifecycle;
mod links;
mod replay;
mod rocm_smi;
mod seed;

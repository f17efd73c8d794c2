//! A simulated AMD GPU behind the HIP, HSA, ROCTx and rocprofiler-sdk ABIs.
//!
//! Layers, each knowing only the ones below: `hip` and `roctx` are what programs call, `hsa` is the
//! runtime they are written on, `gpu` the device, `isa` and `codeobj` what it executes, `perf` what its
//! counters count. `api` holds the dispatch tables between them, `sdk` is the provider side of the
//! profiling ABI.

pub(crate) mod api;
pub(crate) mod codeobj;
pub(crate) mod gpu;
pub(crate) mod hip;
pub(crate) mod hsa;
pub(crate) mod isa;
pub(crate) mod perf;
pub(crate) mod roctx;
pub(crate) mod sdk;

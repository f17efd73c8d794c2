//! A simulated AMD GPU behind the HIP, HSA, ROCTx, RCCL and rocprofiler-sdk ABIs.
//!
//! Layers, each knowing only the ones below: `rccl` is written on `hip`; `hip`, `hiprtc` and `roctx` are what programs call, `hsa` is the
//! runtime they are written on, `gpu` the device; what it executes and what its counters count is in
//! `rpd_gfx`. `api` holds the dispatch tables between them, `sdk` is the provider side of the
//! profiling ABI.

pub(crate) mod amd_smi;
pub(crate) mod api;
pub(crate) mod gpu;
pub(crate) mod hip;
pub(crate) mod hiprtc;
pub(crate) mod hsa;
pub(crate) mod not_supported;
pub(crate) mod rccl;
pub(crate) mod rocm_smi;
pub(crate) mod roctx;
pub(crate) mod sdk;

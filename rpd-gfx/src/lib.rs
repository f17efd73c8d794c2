//! Code of AMD GPUs: the files that contain it, its execution, and the time and counter values of an execution.
//!
//! [`codeobj`] reads offload bundles and code objects, [`isa`] decodes and executes instructions, [`disasm`] prints
//! them, [`perf`] derives counter values from what was executed, [`check`] finds errors of kernels, [`access`]
//! records their memory accesses, and [`source`] looks up functions and source lines. [`device`] describes what
//! differs between devices.

pub mod access;
pub mod check;
pub mod codeobj;
pub mod device;
pub mod disasm;
mod instruction_set;
pub mod isa;
pub mod perf;
pub mod source;

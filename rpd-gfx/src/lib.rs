//! Code of AMD GPUs: its files, its execution, and the time and counters of that.
//!
//! [`codeobj`] reads offload bundles and code objects, [`isa`] decodes and executes instructions, [`disasm`] prints
//! them, [`perf`] derives
//! counter values from what was executed, [`check`] finds errors of kernels, [`access`] records their accesses to memory, [`source`] looks up functions and lines of source
//! code. What differs from device to device is in [`device`].

pub mod access;
pub mod check;
pub mod codeobj;
pub mod device;
pub mod disasm;
mod instruction_set;
pub mod isa;
pub mod perf;
pub mod source;

//! Code of AMD GPUs: what it is stored in, what executes it, and what that costs.
//!
//! [`codeobj`] reads offload bundles and code objects, [`isa`] decodes and executes instructions, [`perf`] derives
//! counter values from what was executed.

pub mod codeobj;
pub mod isa;
pub mod perf;

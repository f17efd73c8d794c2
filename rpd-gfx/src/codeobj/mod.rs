//! Code objects and offload bundles: what a host binary carries for the device.
//!
//! [`bundle`] finds the code object for a target inside an offload bundle, [`object`] reads its ELF file,
//! [`metadata`] the kernels it describes, [`descriptor`] the 64 bytes the packet processor reads, and
//! [`image`] places it in memory.

pub mod bundle;
pub mod descriptor;
pub mod image;
pub mod metadata;
pub mod object;
#[cfg(test)]
mod tests;

pub use bundle::{Target, Toggle};
pub use descriptor::KernelDescriptor;
pub use image::Image;
pub use metadata::{ArgKind, Kernel};
pub use object::CodeObject;

/// Why a bundle or code object was refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data ends before the end of a part that its headers declare.
    #[error("{what} reaches beyond the end of the data (needs {needed} bytes, {available} there)")]
    Truncated {
        /// The part that was being read.
        what: &'static str,
        /// Bytes it needs, from the start of the data.
        needed: u64,
        /// Bytes there are.
        available: u64,
    },
    /// A fixed marker was not found.
    #[error("not {what}: starts with {found:02x?}")]
    Magic {
        /// The structure that was expected.
        what: &'static str,
        /// The first bytes found.
        found: Vec<u8>,
    },
    /// A header names a version or method that this build does not support.
    #[error("{what} {value} is not supported")]
    Unsupported {
        /// Name of the field.
        what: &'static str,
        /// Value of the field.
        value: String,
    },
    /// A field contradicts another one or the format.
    #[error("malformed {what}: {why}")]
    Malformed {
        /// Name of the structure.
        what: &'static str,
        /// Description of the problem.
        why: String,
    },
    /// Decompression failed.
    #[error("compressed offload bundle: {0}")]
    Decompress(String),
    /// No entry of the bundle suits the device.
    #[error("no code object for {wanted}; the bundle has: {present}")]
    NoMatch {
        /// The device's target.
        wanted: String,
        /// Targets of the entries, separated by commas.
        present: String,
    },
    /// A symbol that a relocation needs is defined nowhere.
    #[error("undefined symbol `{0}`")]
    Undefined(String),
    /// Memory for the image could not be had.
    #[error("cannot allocate {bytes} bytes for the code object: {error}")]
    Allocation {
        /// Requested bytes.
        bytes: u64,
        /// Error of the operating system.
        error: std::io::Error,
    },
}

impl Error {
    fn malformed(what: &'static str, why: impl Into<String>) -> Self {
        Self::Malformed {
            what,
            why: why.into(),
        }
    }
}

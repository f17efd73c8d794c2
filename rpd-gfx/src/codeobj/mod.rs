//! Code objects and offload bundles: the device code in a host binary.
//!
//! [`bundle`] finds the code object for a target in an offload bundle, [`object`] reads its ELF file, [`metadata`]
//! the description of its kernels, [`descriptor`] the 64 bytes with which the command processor starts a kernel, and
//! [`image`] loads it into memory.

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

/// Fault of a bundle or code object that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data end before a part that the headers declare.
    #[error("{what} is cut off: {needed} bytes are needed, {available} are there")]
    Truncated {
        /// Name of the part.
        what: &'static str,
        /// Number of bytes that the part needs, from the start of the data.
        needed: u64,
        /// Number of bytes that the data have.
        available: u64,
    },
    /// The first bytes are not those of the expected structure.
    #[error("this is not {what}: it begins with {found:02x?}")]
    Magic {
        /// Name of the structure.
        what: &'static str,
        /// The bytes that were found.
        found: Vec<u8>,
    },
    /// A header states a version or method that rpd does not support.
    #[error("{what} {value} is not supported")]
    Unsupported {
        /// Name of the field.
        what: &'static str,
        /// Value of the field.
        value: String,
    },
    /// A field contradicts another one, or the format.
    #[error("malformed {what}: {why}")]
    Malformed {
        /// Name of the structure.
        what: &'static str,
        /// Description of the fault.
        why: String,
    },
    /// A compressed bundle cannot be decompressed; contains the message of the decompressor.
    #[error("cannot decompress the offload bundle: {0}")]
    Decompress(String),
    /// No entry of the bundle is for the device.
    #[error(
        "the bundle has no code object for {wanted}, only for {present}; compile the program for {wanted}"
    )]
    NoMatch {
        /// Target of the device.
        wanted: String,
        /// Targets of the entries, separated by commas.
        present: String,
    },
    /// A relocation needs a symbol that is not defined; contains its name.
    #[error("symbol `{0}` is not defined")]
    Undefined(String),
    /// Memory for the image could not be allocated.
    #[error("cannot allocate {bytes} bytes for the code object: {error}")]
    Allocation {
        /// Number of bytes that were requested.
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

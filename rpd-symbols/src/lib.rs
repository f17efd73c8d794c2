//! Symbols of call stacks, and profiles that are computed from stacks.
//!
//! Layers, each uses only those above it:
//!
//! - [`Symbolizer`] turns addresses of modules into functions, files and lines. It needs files, no process and no database;
//! - [`look_up()`]: the same for all locations of a session, [`Limited`]: within a limited time;
//! - [`keep_files`]: texts of generated Python files; [`name_jit`]: names of code that was made at run time;
//! - [`symbolize`]: all of this for a database, which it writes;
//! - [`analysis`]: what stacks cost; [`each_rpd_stack`]: stacks of files of RPD, which are texts;
//! - [`code`]: instructions of code objects of the GPU, and their lines.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod analysis;
pub mod code;
mod database;
mod debuginfod;
mod generated;
mod jit;
mod jit_object;
mod limited;
mod look_up;
mod native;
mod object_file;
mod perf_map;
mod plt;
mod rpd_file;
mod search;
mod split;

pub use code::look_up_code;
pub use database::symbolize;
pub use generated::keep_files;
pub use jit::{is_looked_up, name_jit};
pub use limited::Limited;
pub use look_up::{Report, Symbols, look_up};
pub use native::{LONGEST_FUNCTION, Symbolizer};
pub use rpd_core::session::shown as expand;
pub use rpd_file::each_rpd_stack;
pub use search::{SYSTEM_DEBUG_DIR, Search};

/// A file that was mapped into a process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    /// Path from which it was loaded.
    pub path: String,
    /// Build id of the file in hexadecimal digits, if it has one.
    pub build_id: Option<String>,
}

/// A function at an address, or one that was inlined there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Demangled name of the function, at most [`LONGEST_FUNCTION`] bytes; `None` when it is not known.
    pub function: Option<String>,
    /// Path of the source file; `None` when it is not known.
    pub file: Option<String>,
    /// Line in the file, from 1.
    pub line: Option<u32>,
    /// Column in the line, from 1.
    pub column: Option<u32>,
    /// Source of this information.
    pub evidence: Evidence,
}

impl Frame {
    fn unknown(evidence: Evidence) -> Frame {
        Frame {
            function: None,
            file: None,
            line: None,
            column: None,
            evidence,
        }
    }
}

/// Evidence of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// Debug information of the file.
    Dwarf,
    /// The table of all symbols.
    Symtab,
    /// The table of exported symbols.
    Dynsym,
    /// The instructions at the address.
    Code,
    /// No evidence: the file was read, and names no function at the address.
    None,
    /// No evidence: the file was not found.
    NoFile(NoFile),
}

impl Evidence {
    /// The evidence as databases store it.
    pub const fn text(self) -> &'static str {
        match self {
            Evidence::Dwarf => "dwarf",
            Evidence::Symtab => "symtab",
            Evidence::Dynsym => "dynsym",
            Evidence::Code => "code",
            Evidence::None => "none",
            Evidence::NoFile(NoFile::Missing) => "none: file is gone",
            Evidence::NoFile(NoFile::Unreadable) => "none: file is not readable",
            Evidence::NoFile(NoFile::NotElf) => "none: file is not ELF",
            Evidence::NoFile(NoFile::OtherBuild) => "none: file has another build id",
        }
    }
}

/// Reason why a module has no file that can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoFile {
    /// No file is at the path.
    Missing,
    /// The file cannot be read.
    Unreadable,
    /// The file is no ELF file.
    NotElf,
    /// The file has another build id: it was replaced after the run.
    OtherBuild,
}

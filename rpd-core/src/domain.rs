//! Domains and kinds of records, and their names in output files.

#![deny(clippy::wildcard_enum_match_arm)]

use zerocopy::{Immutable, IntoBytes};

use crate::spool::record::Table;

/// Groups of statistics, summaries and CSV files. The order is that of tables in summaries; the number of a domain is
/// its place in [`Domain::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
#[repr(u32)]
pub enum Domain {
    /// Calls of the four HSA tables.
    HsaApi,
    /// Calls of the HIP runtime and compiler tables.
    HipApi,
    /// ROCTx marks, ranges and control calls.
    MarkerApi,
    /// Kernel dispatches on a device.
    KernelDispatch,
    /// Asynchronous memory copies.
    MemoryCopy,
    /// Scratch memory operations.
    ScratchMemory,
    /// Values of hardware counters.
    CounterCollection,
    /// Calls of the RCCL API.
    RcclApi,
    /// Memory allocations and frees.
    MemoryAllocation,
    /// Calls of the rocDecode API.
    RocdecodeApi,
    /// Calls of the rocJPEG API.
    RocjpegApi,
}

impl Domain {
    /// Every domain, in summary order.
    pub const ALL: [Domain; 11] = [
        Domain::HsaApi,
        Domain::HipApi,
        Domain::MarkerApi,
        Domain::KernelDispatch,
        Domain::MemoryCopy,
        Domain::ScratchMemory,
        Domain::CounterCollection,
        Domain::RcclApi,
        Domain::MemoryAllocation,
        Domain::RocdecodeApi,
        Domain::RocjpegApi,
    ];

    /// Label in statistics and summaries, and the text `--summary-groups` matches.
    pub const fn label(self) -> &'static str {
        match self {
            Domain::HsaApi => "HSA_API",
            Domain::HipApi => "HIP_API",
            Domain::MarkerApi => "MARKER_API",
            Domain::KernelDispatch => "KERNEL_DISPATCH",
            Domain::MemoryCopy => "MEMORY_COPY",
            Domain::ScratchMemory => "SCRATCH_MEMORY",
            Domain::CounterCollection => "COUNTER_COLLECTION",
            Domain::RcclApi => "RCCL_API",
            Domain::MemoryAllocation => "MEMORY_ALLOCATION",
            Domain::RocdecodeApi => "ROCDECODE_API",
            Domain::RocjpegApi => "ROCJPEG_API",
        }
    }

    /// Stem of the CSV files: `<stem>_trace.csv` (but see [`Domain::trace_file`]) and `<stem>_stats.csv`.
    pub const fn stem(self) -> &'static str {
        match self {
            Domain::HsaApi => "hsa_api",
            Domain::HipApi => "hip_api",
            Domain::MarkerApi => "marker_api",
            Domain::KernelDispatch => "kernel",
            Domain::MemoryCopy => "memory_copy",
            Domain::ScratchMemory => "scratch_memory",
            Domain::CounterCollection => "counter_collection",
            Domain::RcclApi => "rccl_api",
            Domain::MemoryAllocation => "memory_allocation",
            Domain::RocdecodeApi => "rocdecode_api",
            Domain::RocjpegApi => "rocjpeg_api",
        }
    }

    /// Name of the CSV trace file without prefix and extension.
    pub fn trace_file(self) -> String {
        match self {
            Domain::CounterCollection => "counter_collection".to_owned(),
            Domain::HsaApi
            | Domain::HipApi
            | Domain::MarkerApi
            | Domain::KernelDispatch
            | Domain::MemoryCopy
            | Domain::ScratchMemory
            | Domain::RcclApi
            | Domain::MemoryAllocation
            | Domain::RocdecodeApi
            | Domain::RocjpegApi => format!("{}_trace", self.stem()),
        }
    }

    /// The table of a session that its records are rows of.
    pub const fn table(self) -> Table {
        match self {
            Domain::HsaApi
            | Domain::HipApi
            | Domain::MarkerApi
            | Domain::RcclApi
            | Domain::RocdecodeApi
            | Domain::RocjpegApi => Table::Calls,
            Domain::KernelDispatch => Table::Dispatches,
            Domain::MemoryCopy => Table::Copies,
            Domain::ScratchMemory => Table::Scratch,
            Domain::CounterCollection => Table::Counted,
            Domain::MemoryAllocation => Table::Allocations,
        }
    }
}

/// The API or the kind of operation that a record belongs to. Finer than [`Domain`].
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    zerocopy::Immutable,
    zerocopy::IntoBytes,
)]
#[repr(u8)]
pub enum Kind {
    /// Calls of the HSA core table.
    HsaCore,
    /// HSA AMD extension table.
    HsaAmdExt,
    /// HSA image extension table.
    HsaImageExt,
    /// HSA finalizer extension table.
    HsaFinalizeExt,
    /// Calls of the HIP runtime table.
    HipRuntime,
    /// Calls of the HIP compiler table.
    HipCompiler,
    /// ROCTx marks and joined ranges.
    MarkerCoreRange,
    /// ROCTx pause and resume.
    MarkerControl,
    /// ROCTx calls that name threads, devices and streams.
    MarkerName,
    /// Calls of the RCCL API table.
    Rccl,
    /// Calls of the rocDecode API table.
    Rocdecode,
    /// Calls of the rocJPEG API table.
    Rocjpeg,
    /// Memory copies.
    MemoryCopy,
    /// Kernel dispatches.
    KernelDispatch,
    /// Scratch memory operations.
    ScratchMemory,
    /// Memory allocations.
    MemoryAllocation,
}

/// One row of the kind table: provider spelling, file spelling, domain.
struct KindRow(Kind, &'static str, &'static str, Domain);

// Files carry the names of the buffer kinds that the original's tool subscribes to, whatever service the
// record came from: hence HIP_RUNTIME_API in the provider's callbacks and HIP_RUNTIME_API_EXT in files.
const KINDS: [KindRow; 16] = [
    KindRow(
        Kind::HsaCore,
        "HSA_CORE_API",
        "HSA_CORE_API",
        Domain::HsaApi,
    ),
    KindRow(
        Kind::HsaAmdExt,
        "HSA_AMD_EXT_API",
        "HSA_AMD_EXT_API",
        Domain::HsaApi,
    ),
    KindRow(
        Kind::HsaImageExt,
        "HSA_IMAGE_EXT_API",
        "HSA_IMAGE_EXT_API",
        Domain::HsaApi,
    ),
    KindRow(
        Kind::HsaFinalizeExt,
        "HSA_FINALIZE_EXT_API",
        "HSA_FINALIZE_EXT_API",
        Domain::HsaApi,
    ),
    KindRow(
        Kind::HipRuntime,
        "HIP_RUNTIME_API",
        "HIP_RUNTIME_API_EXT",
        Domain::HipApi,
    ),
    KindRow(
        Kind::HipCompiler,
        "HIP_COMPILER_API",
        "HIP_COMPILER_API_EXT",
        Domain::HipApi,
    ),
    KindRow(
        Kind::MarkerCoreRange,
        "MARKER_CORE_RANGE_API",
        "MARKER_CORE_RANGE_API",
        Domain::MarkerApi,
    ),
    KindRow(
        Kind::MarkerControl,
        "MARKER_CONTROL_API",
        "MARKER_CONTROL_API",
        Domain::MarkerApi,
    ),
    KindRow(
        Kind::MarkerName,
        "MARKER_NAME_API",
        "MARKER_NAME_API",
        Domain::MarkerApi,
    ),
    KindRow(Kind::Rccl, "RCCL_API", "RCCL_API", Domain::RcclApi),
    KindRow(
        Kind::Rocdecode,
        "ROCDECODE_API",
        "ROCDECODE_API_EXT",
        Domain::RocdecodeApi,
    ),
    KindRow(
        Kind::Rocjpeg,
        "ROCJPEG_API",
        "ROCJPEG_API",
        Domain::RocjpegApi,
    ),
    KindRow(
        Kind::MemoryCopy,
        "MEMORY_COPY",
        "MEMORY_COPY",
        Domain::MemoryCopy,
    ),
    KindRow(
        Kind::KernelDispatch,
        "KERNEL_DISPATCH",
        "KERNEL_DISPATCH",
        Domain::KernelDispatch,
    ),
    KindRow(
        Kind::ScratchMemory,
        "SCRATCH_MEMORY",
        "SCRATCH_MEMORY",
        Domain::ScratchMemory,
    ),
    KindRow(
        Kind::MemoryAllocation,
        "MEMORY_ALLOCATION",
        "MEMORY_ALLOCATION",
        Domain::MemoryAllocation,
    ),
];

impl Kind {
    /// All kinds, in the order of their table.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static KindRow {
        &KINDS[KINDS
            .iter()
            .position(|row| row.0 == self)
            .unwrap_or_default()]
    }

    /// The provider's name of the callback or buffer kind, as its name queries return it.
    pub fn provider_name(self) -> &'static str {
        self.row().1
    }

    /// The name in the `Domain` and `Kind` columns of CSV and in the categories of rocpd.
    pub fn file_name(self) -> &'static str {
        self.row().2
    }

    /// The domain this kind belongs to.
    pub fn domain(self) -> Domain {
        self.row().3
    }

    /// The kind with this provider or file name, if it is one that rpd records.
    pub fn from_name(name: &str) -> Option<Kind> {
        KINDS
            .iter()
            .find(|row| row.1 == name || row.2 == name)
            .map(|row| row.0)
    }

    /// Whether records of this kind are calls on a thread (they live in [`crate::session::ApiTable`]).
    pub fn is_api(self) -> bool {
        self.domain().table() == Table::Calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_its_place_in_the_list() {
        for (place, domain) in Domain::ALL.into_iter().enumerate() {
            assert_eq!(domain as usize, place);
        }
    }

    #[test]
    fn every_kind_has_its_row_and_is_found_by_both_names() {
        for kind in Kind::all() {
            assert_eq!(kind.row().0, kind);
            assert_eq!(Kind::from_name(kind.provider_name()), Some(kind));
            assert_eq!(Kind::from_name(kind.file_name()), Some(kind));
        }
        assert_eq!(Kind::from_name("KFD_QUEUE"), None);
    }
}

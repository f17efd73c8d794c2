//! Domains and kinds of records, and their names in output files.

#![deny(clippy::wildcard_enum_match_arm)]

use zerocopy::{Immutable, IntoBytes};

use crate::spool::record::Table;

macro_rules! domains {
    ($($(#[$doc:meta])* $domain:ident = $label:literal, $stem:literal;)*) => {
        /// Groups of statistics, summaries and CSV files. The order is that of tables in summaries; the number of a domain
        /// is its place in [`Domain::ALL`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
        #[repr(u32)]
        pub enum Domain {
            $($(#[$doc])* $domain,)*
        }

        impl Domain {
            /// Every domain, in summary order.
            pub const ALL: [Domain; [$($stem),*].len()] = [$(Domain::$domain,)*];

            /// Label in statistics and summaries, and the text `--summary-groups` matches.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Domain::$domain => $label,)*
                }
            }

            /// Stem of the CSV files: `<stem>_trace.csv` (but see [`Domain::trace_file`]) and `<stem>_stats.csv`.
            pub const fn stem(self) -> &'static str {
                match self {
                    $(Domain::$domain => $stem,)*
                }
            }
        }
    };
}

// Domain = label, stem.
domains! {
    /// Calls of the four HSA tables.
    HsaApi = "HSA_API", "hsa_api";
    /// Calls of the HIP runtime and compiler tables.
    HipApi = "HIP_API", "hip_api";
    /// ROCTx marks, ranges and control calls.
    MarkerApi = "MARKER_API", "marker_api";
    /// Kernel dispatches on a device.
    KernelDispatch = "KERNEL_DISPATCH", "kernel";
    /// Asynchronous memory copies.
    MemoryCopy = "MEMORY_COPY", "memory_copy";
    /// Scratch memory operations.
    ScratchMemory = "SCRATCH_MEMORY", "scratch_memory";
    /// Values of hardware counters.
    CounterCollection = "COUNTER_COLLECTION", "counter_collection";
    /// Calls of the RCCL API.
    RcclApi = "RCCL_API", "rccl_api";
    /// Memory allocations and frees.
    MemoryAllocation = "MEMORY_ALLOCATION", "memory_allocation";
    /// Calls of the rocDecode API.
    RocdecodeApi = "ROCDECODE_API", "rocdecode_api";
    /// Calls of the rocJPEG API.
    RocjpegApi = "ROCJPEG_API", "rocjpeg_api";
    /// Calls of the CUDA runtime.
    CudaApi = "CUDA_API", "cuda_api";
    /// Calls of the CUDA driver.
    CudaDriverApi = "CUDA_DRIVER_API", "cuda_driver_api";
}

impl Domain {
    /// Number of domains whose records are calls.
    pub const CALLS: usize = {
        let (mut calls, mut index) = (0, 0);
        while index < Domain::ALL.len() {
            calls += matches!(Domain::ALL[index].table(), Table::Calls) as usize;
            index += 1;
        }
        calls
    };

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
            | Domain::RocjpegApi
            | Domain::CudaApi
            | Domain::CudaDriverApi => format!("{}_trace", self.stem()),
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
            | Domain::RocjpegApi
            | Domain::CudaApi
            | Domain::CudaDriverApi => Table::Calls,
            Domain::KernelDispatch => Table::Dispatches,
            Domain::MemoryCopy => Table::Copies,
            Domain::ScratchMemory => Table::Scratch,
            Domain::CounterCollection => Table::Counted,
            Domain::MemoryAllocation => Table::Allocations,
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $provider_name:literal, $file_name:literal, $domain:ident;)*) => {
        /// The API or the kind of operation that a record belongs to. Finer than [`Domain`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Immutable, IntoBytes)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[$doc])* $kind,)*
        }

        /// The kinds with their names and domains; the number of a kind is its place here.
        const KINDS: &[KindRow] = &[$(KindRow(Kind::$kind, $provider_name, $file_name, Domain::$domain),)*];
    };
}

// Kind = provider's name, name in files, domain. Files carry the names of the buffer kinds that the original's tool
// subscribes to, whatever service the record came from: hence HIP_RUNTIME_API in the provider's callbacks and
// HIP_RUNTIME_API_EXT in files.
kinds! {
    /// Calls of the HSA core table.
    HsaCore = "HSA_CORE_API", "HSA_CORE_API", HsaApi;
    /// HSA AMD extension table.
    HsaAmdExt = "HSA_AMD_EXT_API", "HSA_AMD_EXT_API", HsaApi;
    /// HSA image extension table.
    HsaImageExt = "HSA_IMAGE_EXT_API", "HSA_IMAGE_EXT_API", HsaApi;
    /// HSA finalizer extension table.
    HsaFinalizeExt = "HSA_FINALIZE_EXT_API", "HSA_FINALIZE_EXT_API", HsaApi;
    /// Calls of the HIP runtime table.
    HipRuntime = "HIP_RUNTIME_API", "HIP_RUNTIME_API_EXT", HipApi;
    /// Calls of the HIP compiler table.
    HipCompiler = "HIP_COMPILER_API", "HIP_COMPILER_API_EXT", HipApi;
    /// ROCTx marks and joined ranges.
    MarkerCoreRange = "MARKER_CORE_RANGE_API", "MARKER_CORE_RANGE_API", MarkerApi;
    /// ROCTx pause and resume.
    MarkerControl = "MARKER_CONTROL_API", "MARKER_CONTROL_API", MarkerApi;
    /// ROCTx calls that name threads, devices and streams.
    MarkerName = "MARKER_NAME_API", "MARKER_NAME_API", MarkerApi;
    /// Calls of the RCCL API table.
    Rccl = "RCCL_API", "RCCL_API", RcclApi;
    /// Calls of the rocDecode API table.
    Rocdecode = "ROCDECODE_API", "ROCDECODE_API_EXT", RocdecodeApi;
    /// Calls of the rocJPEG API table.
    Rocjpeg = "ROCJPEG_API", "ROCJPEG_API", RocjpegApi;
    /// Calls of the CUDA runtime.
    CudaRuntime = "CUDA_API", "CUDA_API", CudaApi;
    /// Calls of the CUDA driver.
    CudaDriver = "CUDA_DRIVER_API", "CUDA_DRIVER_API", CudaDriverApi;
    /// Memory copies.
    MemoryCopy = "MEMORY_COPY", "MEMORY_COPY", MemoryCopy;
    /// Kernel dispatches.
    KernelDispatch = "KERNEL_DISPATCH", "KERNEL_DISPATCH", KernelDispatch;
    /// Scratch memory operations.
    ScratchMemory = "SCRATCH_MEMORY", "SCRATCH_MEMORY", ScratchMemory;
    /// Memory allocations.
    MemoryAllocation = "MEMORY_ALLOCATION", "MEMORY_ALLOCATION", MemoryAllocation;
}

/// One row of the kind table: provider spelling, file spelling, domain.
struct KindRow(Kind, &'static str, &'static str, Domain);

impl Kind {
    /// All kinds, in the order of their table.
    pub fn all() -> impl Iterator<Item = Kind> {
        KINDS.iter().map(|row| row.0)
    }

    fn row(self) -> &'static KindRow {
        &KINDS[self as usize]
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

    /// Whether records of this kind are calls on a thread (they live in [`crate::session::CallTable`]).
    pub fn is_call(self) -> bool {
        self.domain().table() == Table::Calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domain_number_is_its_place_in_the_list() {
        for (place, domain) in Domain::ALL.into_iter().enumerate() {
            assert_eq!(domain as usize, place);
        }
    }

    #[test]
    fn kind_is_found_by_its_provider_name_and_its_file_name() {
        for kind in Kind::all() {
            assert_eq!(kind.row().0, kind);
            assert_eq!(Kind::from_name(kind.provider_name()), Some(kind));
            assert_eq!(Kind::from_name(kind.file_name()), Some(kind));
        }
        assert_eq!(Kind::from_name("KFD_QUEUE"), None);
    }
}

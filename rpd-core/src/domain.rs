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
    /// Calls of the rocSHMEM API.
    RocshmemApi = "ROCSHMEM_API", "rocshmem_api";
    /// Calls of the hipFile API.
    HipfileApi = "HIPFILE_API", "hipfile_api";
    /// Events of OpenMP that take time: parallel regions, tasks, and work for devices.
    Ompt = "OMPT", "ompt";
    /// Events of the kernel driver.
    Kfd = "KFD", "kfd";
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
            | Domain::CudaDriverApi
            | Domain::RocshmemApi
            | Domain::HipfileApi
            | Domain::Ompt
            | Domain::Kfd => format!("{}_trace", self.stem()),
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
            | Domain::CudaDriverApi
            | Domain::RocshmemApi
            | Domain::HipfileApi
            | Domain::Ompt => Table::Calls,
            Domain::Kfd => Table::KfdEvents,
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
    /// Calls of the rocSHMEM API table.
    Rocshmem = "ROCSHMEM_API", "ROCSHMEM_API", RocshmemApi;
    /// Calls of the hipFile API table.
    Hipfile = "HIPFILE_API", "HIPFILE_API", HipfileApi;
    /// Events of OpenMP.
    Ompt = "OMPT", "OMPT", Ompt;
    /// Begins and ends of page migrations.
    KfdEventPageMigrate = "KFD_EVENT_PAGE_MIGRATE", "KFD_EVENT_PAGE_MIGRATE", Kfd;
    /// Begins and ends of page faults.
    KfdEventPageFault = "KFD_EVENT_PAGE_FAULT", "KFD_EVENT_PAGE_FAULT", Kfd;
    /// Evictions and restorations of queues.
    KfdEventQueue = "KFD_EVENT_QUEUE", "KFD_EVENT_QUEUE", Kfd;
    /// Ranges that were unmapped from GPUs.
    KfdEventUnmapFromGpu = "KFD_EVENT_UNMAP_FROM_GPU", "KFD_EVENT_UNMAP_FROM_GPU", Kfd;
    /// Events that the kernel driver dropped.
    KfdEventDroppedEvents = "KFD_EVENT_DROPPED_EVENTS", "KFD_EVENT_DROPPED_EVENTS", Kfd;
    /// Page migrations.
    KfdPageMigrate = "KFD_PAGE_MIGRATE", "KFD_PAGE_MIGRATE", Kfd;
    /// Page faults.
    KfdPageFault = "KFD_PAGE_FAULT", "KFD_PAGE_FAULT", Kfd;
    /// Evictions of queues until their restoration.
    KfdQueue = "KFD_QUEUE", "KFD_QUEUE", Kfd;
}

/// The kinds of events of the kernel driver, by [`crate::spool::format::kfd_kind`].
pub const KFD_KINDS: [Kind; 8] = [
    Kind::KfdEventPageMigrate,
    Kind::KfdEventPageFault,
    Kind::KfdEventQueue,
    Kind::KfdEventUnmapFromGpu,
    Kind::KfdEventDroppedEvents,
    Kind::KfdPageMigrate,
    Kind::KfdPageFault,
    Kind::KfdQueue,
];

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

    /// The kind with this provider or file name, if it is one that rpd knows. Kinds whose records have arguments end in `_EXT`.
    pub fn from_name(name: &str) -> Option<Kind> {
        let find = |name: &str| KINDS.iter().find(|row| row.1 == name || row.2 == name);
        let found = find(name).or_else(|| find(name.strip_suffix("_EXT")?));
        found.map(|row| row.0)
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
        assert_eq!(Kind::from_name("HIPFILE_API_EXT"), Some(Kind::Hipfile));
        assert_eq!(Kind::from_name("CORRELATION_ID_RETIREMENT"), None);
    }
}

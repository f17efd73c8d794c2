//! Events of the kernel driver: operations and records. Events are single points, the other records pair start and end.

use crate::ids::{rocprofiler_address_t, rocprofiler_agent_id_t, rocprofiler_timestamp_t};
use crate::kinds::rocprofiler_buffer_tracing_kind_t;
use crate::macros::{c_enum, c_struct};

c_enum! {
    /// Operations of `KFD_EVENT_PAGE_MIGRATE`: what caused a migration, or its end.
    rocprofiler_kfd_event_page_migrate_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_NONE",
        /// The program asked for the pages to be moved ahead of their use.
        PREFETCH = 0 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PREFETCH",
        /// A GPU accessed pages that it could not reach.
        PAGEFAULT_GPU = 1 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_GPU",
        /// The CPU accessed pages that were in device memory.
        PAGEFAULT_CPU = 2 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_CPU",
        /// The memory manager of the driver (TTM) needed the device memory for others.
        TTM_EVICTION = 3 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_TTM_EVICTION",
        /// The migration that began before has ended.
        END = 4 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_END",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_LAST",
    }
}

c_enum! {
    /// Operations of `KFD_EVENT_PAGE_FAULT`: begin of a fault by kind of access, end by what the driver did.
    rocprofiler_kfd_event_page_fault_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_NONE",
        /// A fault begins; the kind of access is unknown.
        START = 0 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START",
        /// A fault by a read begins.
        START_READ_FAULT = 1 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_READ_FAULT",
        /// A fault by a write begins.
        START_WRITE_FAULT = 2 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_WRITE_FAULT",
        /// The fault ends; the driver moved the page.
        END_PAGE_MIGRATED = 3 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_MIGRATED",
        /// The fault ends; the driver only updated the page table.
        END_PAGE_UPDATED = 4 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_UPDATED",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_LAST",
    }
}

c_enum! {
    /// Operations of `KFD_EVENT_QUEUE`: what caused an eviction, or the restoration.
    rocprofiler_kfd_event_queue_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_QUEUE_NONE",
        /// Evicted: a range of shared virtual memory changed.
        EVICT_SVM = 0 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SVM",
        /// Evicted: pages of the program that the GPU had mapped were unmapped or moved.
        EVICT_USERPTR = 1 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_USERPTR",
        /// Evicted: the memory manager of the driver (TTM) needed device memory.
        EVICT_TTM = 2 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_TTM",
        /// Evicted: the system is suspended.
        EVICT_SUSPEND = 3 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SUSPEND",
        /// Evicted: CRIU saves the process.
        EVICT_CRIU_CHECKPOINT = 4 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_CHECKPOINT",
        /// Evicted: CRIU restores the process.
        EVICT_CRIU_RESTORE = 5 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_RESTORE",
        /// The driver could not restore the queues yet and will try again.
        RESTORE_RESCHEDULED = 6 => c"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE_RESCHEDULED",
        /// The queues run again.
        RESTORE = 7 => c"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE",
        /// End marker of this version of the list.
        LAST = 8 => c"ROCPROFILER_KFD_EVENT_QUEUE_LAST",
    }
}

c_enum! {
    /// Operations of `KFD_EVENT_UNMAP_FROM_GPU`: what caused the removal of a range.
    rocprofiler_kfd_event_unmap_from_gpu_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_NONE",
        /// The host changed its mapping of the range.
        MMU_NOTIFY = 0 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY",
        /// The host changed its mapping because pages migrate.
        MMU_NOTIFY_MIGRATE = 1 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY_MIGRATE",
        /// The program unmapped the range.
        UNMAP_FROM_CPU = 2 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_UNMAP_FROM_CPU",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_LAST",
    }
}

c_enum! {
    /// Operations of `KFD_EVENT_DROPPED_EVENTS`.
    rocprofiler_kfd_event_dropped_events_operation_t: i32 {
        /// No value.
        DROPPED_EVENTS_NONE = -1 => c"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS_NONE",
        /// The driver's queue of events was full.
        DROPPED_EVENTS = 0 => c"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS",
        /// End marker of this version of the list.
        DROPPED_EVENTS_LAST = 1 => c"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS_LAST",
    }
}

c_enum! {
    /// Operations of `KFD_PAGE_MIGRATE`: what caused the migration.
    rocprofiler_kfd_page_migrate_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_PAGE_MIGRATE_NONE",
        /// The program asked for the pages to be moved ahead of their use.
        PREFETCH = 0 => c"ROCPROFILER_KFD_PAGE_MIGRATE_PREFETCH",
        /// A GPU accessed pages that it could not reach.
        PAGEFAULT_GPU = 1 => c"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_GPU",
        /// The CPU accessed pages that were in device memory.
        PAGEFAULT_CPU = 2 => c"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_CPU",
        /// The memory manager of the driver (TTM) needed the device memory for others.
        TTM_EVICTION = 3 => c"ROCPROFILER_KFD_PAGE_MIGRATE_TTM_EVICTION",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_KFD_PAGE_MIGRATE_LAST",
    }
}

c_enum! {
    /// Operations of `KFD_PAGE_FAULT`: the kind of access, and what the driver did.
    rocprofiler_kfd_page_fault_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_PAGE_FAULT_NONE",
        /// A read faulted, and the driver moved the page.
        READ_FAULT_MIGRATED = 0 => c"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_MIGRATED",
        /// A read faulted, and the driver updated the page table.
        READ_FAULT_UPDATED = 1 => c"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_UPDATED",
        /// A write faulted, and the driver moved the page.
        WRITE_FAULT_MIGRATED = 2 => c"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_MIGRATED",
        /// A write faulted, and the driver updated the page table.
        WRITE_FAULT_UPDATED = 3 => c"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_UPDATED",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_KFD_PAGE_FAULT_LAST",
    }
}

c_enum! {
    /// Operations of `KFD_QUEUE`: what caused the eviction.
    rocprofiler_kfd_queue_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_QUEUE_NONE",
        /// Evicted: a range of shared virtual memory changed.
        EVICT_SVM = 0 => c"ROCPROFILER_KFD_QUEUE_EVICT_SVM",
        /// Evicted: pages of the program that the GPU had mapped were unmapped or moved.
        EVICT_USERPTR = 1 => c"ROCPROFILER_KFD_QUEUE_EVICT_USERPTR",
        /// Evicted: the memory manager of the driver (TTM) needed device memory.
        EVICT_TTM = 2 => c"ROCPROFILER_KFD_QUEUE_EVICT_TTM",
        /// Evicted: the system is suspended.
        EVICT_SUSPEND = 3 => c"ROCPROFILER_KFD_QUEUE_EVICT_SUSPEND",
        /// Evicted: CRIU saves the process.
        EVICT_CRIU_CHECKPOINT = 4 => c"ROCPROFILER_KFD_QUEUE_EVICT_CRIU_CHECKPOINT",
        /// Evicted: CRIU restores the process.
        EVICT_CRIU_RESTORE = 5 => c"ROCPROFILER_KFD_QUEUE_EVICT_CRIU_RESTORE",
        /// End marker of this version of the list.
        LAST = 6 => c"ROCPROFILER_KFD_QUEUE_LAST",
    }
}

c_struct! {
    /// Begin or end of a page migration.
    struct rocprofiler_buffer_tracing_kfd_event_page_migrate_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_event_page_migrate_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// First virtual address of the range.
        pub start_address: rocprofiler_address_t,
        /// Virtual address after the last byte of the range.
        pub end_address: rocprofiler_address_t,
        /// Agent whose memory the pages leave.
        pub src_agent: rocprofiler_agent_id_t,
        /// Agent whose memory the pages go to.
        pub dst_agent: rocprofiler_agent_id_t,
        /// Agent chosen for prefetching.
        pub prefetch_agent: rocprofiler_agent_id_t,
        /// Agent preferred for these pages.
        pub preferred_agent: rocprofiler_agent_id_t,
        /// Driver error, 0 for success.
        pub error_code: i32,
    }
}

c_struct! {
    /// Begin or end of a page fault.
    struct rocprofiler_buffer_tracing_kfd_event_page_fault_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_event_page_fault_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// GPU that the event concerns.
        pub agent_id: rocprofiler_agent_id_t,
        /// Virtual address of the access that faulted.
        pub address: rocprofiler_address_t,
    }
}

c_struct! {
    /// Queues were evicted or restored.
    struct rocprofiler_buffer_tracing_kfd_event_queue_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_event_queue_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// GPU that the event concerns.
        pub agent_id: rocprofiler_agent_id_t,
    }
}

c_struct! {
    /// A range was unmapped from a GPU.
    struct rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_event_unmap_from_gpu_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// GPU that the event concerns.
        pub agent_id: rocprofiler_agent_id_t,
        /// First virtual address of the range.
        pub start_address: rocprofiler_address_t,
        /// Virtual address after the last byte of the range.
        pub end_address: rocprofiler_address_t,
    }
}

c_struct! {
    /// The driver lost events.
    struct rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_event_dropped_events_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// Number of events that the driver could not deliver.
        pub count: u32,
    }
}

c_struct! {
    /// A page migration, start and end paired.
    struct rocprofiler_buffer_tracing_kfd_page_migrate_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_page_migrate_operation_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// First virtual address of the range.
        pub start_address: rocprofiler_address_t,
        /// Virtual address after the last byte of the range.
        pub end_address: rocprofiler_address_t,
        /// Agent whose memory the pages leave.
        pub src_agent: rocprofiler_agent_id_t,
        /// Agent whose memory the pages go to.
        pub dst_agent: rocprofiler_agent_id_t,
        /// Agent chosen for prefetching.
        pub prefetch_agent: rocprofiler_agent_id_t,
        /// Agent preferred for these pages.
        pub preferred_agent: rocprofiler_agent_id_t,
        /// Driver error, 0 for success.
        pub error_code: i32,
    }
}

c_struct! {
    /// A page fault, start and end paired.
    struct rocprofiler_buffer_tracing_kfd_page_fault_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_page_fault_operation_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// GPU that the event concerns.
        pub agent_id: rocprofiler_agent_id_t,
        /// Virtual address of the access that faulted.
        pub address: rocprofiler_address_t,
    }
}

c_struct! {
    /// An eviction of queues up to their restoration.
    struct rocprofiler_buffer_tracing_kfd_queue_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// A `ROCPROFILER_BUFFER_TRACING_KFD_*` value.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Cause of the event; its numbers are those of the operation enum of the kind.
        pub operation: rocprofiler_kfd_queue_operation_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Process that the driver reports the event for.
        pub pid: u32,
        /// GPU that the event concerns.
        pub agent_id: rocprofiler_agent_id_t,
    }
}

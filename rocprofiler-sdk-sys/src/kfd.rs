//! Events of the kernel driver: operations and records. Events are single points, the other records pair start and end.

use crate::ids::{rocprofiler_address_t, rocprofiler_agent_id_t, rocprofiler_timestamp_t};
use crate::kinds::rocprofiler_buffer_tracing_kind_t;
use crate::macros::{c_enum, c_struct};

c_enum! {
    /// Operations of the single page migration events of the kernel driver.
    rocprofiler_kfd_event_page_migrate_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_NONE",
        /// Prefetch.
        PREFETCH = 0 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PREFETCH",
        /// Pagefault gpu.
        PAGEFAULT_GPU = 1 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_GPU",
        /// Pagefault cpu.
        PAGEFAULT_CPU = 2 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_PAGEFAULT_CPU",
        /// Ttm eviction.
        TTM_EVICTION = 3 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_TTM_EVICTION",
        /// End.
        END = 4 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_END",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_KFD_EVENT_PAGE_MIGRATE_LAST",
    }
}

c_enum! {
    /// Operations of the single page fault events of the kernel driver.
    rocprofiler_kfd_event_page_fault_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_NONE",
        /// Start.
        START = 0 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START",
        /// Start read fault.
        START_READ_FAULT = 1 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_READ_FAULT",
        /// Start write fault.
        START_WRITE_FAULT = 2 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_START_WRITE_FAULT",
        /// End page migrated.
        END_PAGE_MIGRATED = 3 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_MIGRATED",
        /// End page updated.
        END_PAGE_UPDATED = 4 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_END_PAGE_UPDATED",
        /// End marker of this version of the list.
        LAST = 5 => c"ROCPROFILER_KFD_EVENT_PAGE_FAULT_LAST",
    }
}

c_enum! {
    /// Operations of the single queue events of the kernel driver.
    rocprofiler_kfd_event_queue_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_QUEUE_NONE",
        /// Evict svm.
        EVICT_SVM = 0 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SVM",
        /// Evict userptr.
        EVICT_USERPTR = 1 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_USERPTR",
        /// Evict ttm.
        EVICT_TTM = 2 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_TTM",
        /// Evict suspend.
        EVICT_SUSPEND = 3 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_SUSPEND",
        /// Evict criu checkpoint.
        EVICT_CRIU_CHECKPOINT = 4 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_CHECKPOINT",
        /// Evict criu restore.
        EVICT_CRIU_RESTORE = 5 => c"ROCPROFILER_KFD_EVENT_QUEUE_EVICT_CRIU_RESTORE",
        /// Restore rescheduled.
        RESTORE_RESCHEDULED = 6 => c"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE_RESCHEDULED",
        /// Restore.
        RESTORE = 7 => c"ROCPROFILER_KFD_EVENT_QUEUE_RESTORE",
        /// End marker of this version of the list.
        LAST = 8 => c"ROCPROFILER_KFD_EVENT_QUEUE_LAST",
    }
}

c_enum! {
    /// Operations of the single unmap events of the kernel driver.
    rocprofiler_kfd_event_unmap_from_gpu_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_NONE",
        /// Mmu notify.
        MMU_NOTIFY = 0 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY",
        /// Mmu notify migrate.
        MMU_NOTIFY_MIGRATE = 1 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_MMU_NOTIFY_MIGRATE",
        /// Unmap from cpu.
        UNMAP_FROM_CPU = 2 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_UNMAP_FROM_CPU",
        /// End marker of this version of the list.
        LAST = 3 => c"ROCPROFILER_KFD_EVENT_UNMAP_FROM_GPU_LAST",
    }
}

c_enum! {
    /// Operations of the single dropped event events of the kernel driver.
    rocprofiler_kfd_event_dropped_events_operation_t: i32 {
        /// No value.
        DROPPED_EVENTS_NONE = -1 => c"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS_NONE",
        /// Dropped events.
        DROPPED_EVENTS = 0 => c"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS",
        /// End marker of this version of the list.
        DROPPED_EVENTS_LAST = 1 => c"ROCPROFILER_KFD_EVENT_DROPPED_EVENTS_LAST",
    }
}

c_enum! {
    /// Operations of the paired page migration records of the kernel driver.
    rocprofiler_kfd_page_migrate_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_PAGE_MIGRATE_NONE",
        /// Prefetch.
        PREFETCH = 0 => c"ROCPROFILER_KFD_PAGE_MIGRATE_PREFETCH",
        /// Pagefault gpu.
        PAGEFAULT_GPU = 1 => c"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_GPU",
        /// Pagefault cpu.
        PAGEFAULT_CPU = 2 => c"ROCPROFILER_KFD_PAGE_MIGRATE_PAGEFAULT_CPU",
        /// Ttm eviction.
        TTM_EVICTION = 3 => c"ROCPROFILER_KFD_PAGE_MIGRATE_TTM_EVICTION",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_KFD_PAGE_MIGRATE_LAST",
    }
}

c_enum! {
    /// Operations of the paired page fault records of the kernel driver.
    rocprofiler_kfd_page_fault_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_PAGE_FAULT_NONE",
        /// Read fault migrated.
        READ_FAULT_MIGRATED = 0 => c"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_MIGRATED",
        /// Read fault updated.
        READ_FAULT_UPDATED = 1 => c"ROCPROFILER_KFD_PAGE_FAULT_READ_FAULT_UPDATED",
        /// Write fault migrated.
        WRITE_FAULT_MIGRATED = 2 => c"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_MIGRATED",
        /// Write fault updated.
        WRITE_FAULT_UPDATED = 3 => c"ROCPROFILER_KFD_PAGE_FAULT_WRITE_FAULT_UPDATED",
        /// End marker of this version of the list.
        LAST = 4 => c"ROCPROFILER_KFD_PAGE_FAULT_LAST",
    }
}

c_enum! {
    /// Operations of the paired queue records of the kernel driver.
    rocprofiler_kfd_queue_operation_t: i32 {
        /// No value.
        NONE = -1 => c"ROCPROFILER_KFD_QUEUE_NONE",
        /// Evict svm.
        EVICT_SVM = 0 => c"ROCPROFILER_KFD_QUEUE_EVICT_SVM",
        /// Evict userptr.
        EVICT_USERPTR = 1 => c"ROCPROFILER_KFD_QUEUE_EVICT_USERPTR",
        /// Evict ttm.
        EVICT_TTM = 2 => c"ROCPROFILER_KFD_QUEUE_EVICT_TTM",
        /// Evict suspend.
        EVICT_SUSPEND = 3 => c"ROCPROFILER_KFD_QUEUE_EVICT_SUSPEND",
        /// Evict criu checkpoint.
        EVICT_CRIU_CHECKPOINT = 4 => c"ROCPROFILER_KFD_QUEUE_EVICT_CRIU_CHECKPOINT",
        /// Evict criu restore.
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
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_event_page_migrate_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// First address.
        pub start_address: rocprofiler_address_t,
        /// End of the range.
        pub end_address: rocprofiler_address_t,
        /// Agent the pages come from.
        pub src_agent: rocprofiler_agent_id_t,
        /// Agent the pages go to.
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
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_event_page_fault_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
        /// The address.
        pub address: rocprofiler_address_t,
    }
}

c_struct! {
    /// Queues were evicted or restored.
    struct rocprofiler_buffer_tracing_kfd_event_queue_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_event_queue_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
    }
}

c_struct! {
    /// A range was unmapped from a GPU.
    struct rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_event_unmap_from_gpu_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
        /// First address.
        pub start_address: rocprofiler_address_t,
        /// End of the range.
        pub end_address: rocprofiler_address_t,
    }
}

c_struct! {
    /// The driver lost events.
    struct rocprofiler_buffer_tracing_kfd_event_dropped_events_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_event_dropped_events_operation_t,
        /// Time, in ns of `CLOCK_BOOTTIME`.
        pub timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// How many.
        pub count: u32,
    }
}

c_struct! {
    /// A page migration, start and end paired.
    struct rocprofiler_buffer_tracing_kfd_page_migrate_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_page_migrate_operation_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// First address.
        pub start_address: rocprofiler_address_t,
        /// End of the range.
        pub end_address: rocprofiler_address_t,
        /// Agent the pages come from.
        pub src_agent: rocprofiler_agent_id_t,
        /// Agent the pages go to.
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
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_page_fault_operation_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
        /// The address.
        pub address: rocprofiler_address_t,
    }
}

c_struct! {
    /// An eviction of queues up to their restoration.
    struct rocprofiler_buffer_tracing_kfd_queue_record_t {
        /// Meaningful bytes of this struct.
        pub size: u64,
        /// Kind of the record.
        pub kind: rocprofiler_buffer_tracing_kind_t,
        /// Which operation of the kind.
        pub operation: rocprofiler_kfd_queue_operation_t,
        /// Begin, ns of `CLOCK_BOOTTIME`.
        pub start_timestamp: rocprofiler_timestamp_t,
        /// End, ns of `CLOCK_BOOTTIME`.
        pub end_timestamp: rocprofiler_timestamp_t,
        /// Process id.
        pub pid: u32,
        /// The agent.
        pub agent_id: rocprofiler_agent_id_t,
    }
}

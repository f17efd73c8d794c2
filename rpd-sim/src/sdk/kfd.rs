//! Events of the simulated kernel driver as records of the buffer service.

use rocprofiler_sdk_sys::{
    rocprofiler_buffer_tracing_kfd_event_page_fault_record_t as FaultEvent,
    rocprofiler_buffer_tracing_kfd_event_page_migrate_record_t as MigrateEvent,
    rocprofiler_buffer_tracing_kfd_event_queue_record_t as QueueEvent,
    rocprofiler_buffer_tracing_kfd_event_unmap_from_gpu_record_t as UnmapEvent,
    rocprofiler_buffer_tracing_kfd_page_fault_record_t as Fault,
    rocprofiler_buffer_tracing_kfd_page_migrate_record_t as Migrate,
    rocprofiler_buffer_tracing_kfd_queue_record_t as Queue,
    rocprofiler_buffer_tracing_kind_t as BufferKind,
    rocprofiler_kfd_event_page_fault_operation_t as FaultEventOperation,
    rocprofiler_kfd_event_page_migrate_operation_t as MigrateEventOperation,
    rocprofiler_kfd_event_queue_operation_t as QueueEventOperation,
    rocprofiler_kfd_event_unmap_from_gpu_operation_t as UnmapOperation,
    rocprofiler_kfd_page_fault_operation_t as FaultOperation,
    rocprofiler_kfd_page_migrate_operation_t as MigrateOperation,
    rocprofiler_kfd_queue_operation_t as QueueOperation,
};

use super::{agents, context, state};
use crate::gpu::observe::{DriverEvent, Migration};
use crate::gpu::svm::Cause;

/// The kinds of the driver.
pub(crate) const KINDS: [BufferKind; 8] = [
    BufferKind::KFD_EVENT_PAGE_MIGRATE,
    BufferKind::KFD_EVENT_PAGE_FAULT,
    BufferKind::KFD_EVENT_QUEUE,
    BufferKind::KFD_EVENT_UNMAP_FROM_GPU,
    BufferKind::KFD_EVENT_DROPPED_EVENTS,
    BufferKind::KFD_PAGE_MIGRATE,
    BufferKind::KFD_PAGE_FAULT,
    BufferKind::KFD_QUEUE,
];

/// Puts a record into the buffers of the contexts that want it.
fn emit<T: Copy>(kind: BufferKind, operation: i32, record: &T) {
    if state::finalized() != 0 {
        return;
    }
    let operation = operation.unsigned_abs() as usize;
    let wanting = context::active() & context::want_records(kind.0 as usize, operation);
    for index in context::bits(wanting) {
        if let Some(buffer) = context::get(index).buffers[kind.0 as usize].get() {
            buffer.emit(kind.0, record);
        }
    }
}

fn size<T>() -> u64 {
    size_of::<T>() as u64
}

/// Reports an event to tools: as single points, and as a pair.
pub(crate) fn report(event: &DriverEvent) {
    let pid = std::process::id();
    match event {
        DriverEvent::Migrated(migration) => migrated(migration, pid),
        DriverEvent::Faulted {
            agent,
            address,
            start,
            end,
            write,
            migrated,
        } => {
            let agent_id = agents::of_handle(*agent);
            let (begin, done) = (
                if *write {
                    FaultEventOperation::START_WRITE_FAULT
                } else {
                    FaultEventOperation::START_READ_FAULT
                },
                if *migrated {
                    FaultEventOperation::END_PAGE_MIGRATED
                } else {
                    FaultEventOperation::END_PAGE_UPDATED
                },
            );
            for (operation, timestamp) in [(begin, *start), (done, *end)] {
                let record = FaultEvent {
                    size: size::<FaultEvent>(),
                    kind: BufferKind::KFD_EVENT_PAGE_FAULT,
                    operation,
                    timestamp,
                    pid,
                    agent_id,
                    address: (*address).into(),
                };
                emit(record.kind, operation.0, &record);
            }
            let operation = match (*write, *migrated) {
                (false, true) => FaultOperation::READ_FAULT_MIGRATED,
                (false, false) => FaultOperation::READ_FAULT_UPDATED,
                (true, true) => FaultOperation::WRITE_FAULT_MIGRATED,
                (true, false) => FaultOperation::WRITE_FAULT_UPDATED,
            };
            let record = Fault {
                size: size::<Fault>(),
                kind: BufferKind::KFD_PAGE_FAULT,
                operation,
                start_timestamp: *start,
                end_timestamp: *end,
                pid,
                agent_id,
                address: (*address).into(),
            };
            emit(record.kind, operation.0, &record);
        }
        DriverEvent::Unmapped {
            agent,
            range,
            time,
            migrates,
        } => {
            let operation = if *migrates {
                UnmapOperation::MMU_NOTIFY_MIGRATE
            } else {
                UnmapOperation::UNMAP_FROM_CPU
            };
            let record = UnmapEvent {
                size: size::<UnmapEvent>(),
                kind: BufferKind::KFD_EVENT_UNMAP_FROM_GPU,
                operation,
                timestamp: *time,
                pid,
                agent_id: agents::of_handle(*agent),
                start_address: range.start.into(),
                end_address: range.end.into(),
            };
            emit(record.kind, operation.0, &record);
        }
        DriverEvent::Evicted { agent, start, end } => {
            let agent_id = agents::of_handle(*agent);
            let points = [
                (QueueEventOperation::EVICT_SVM, *start),
                (QueueEventOperation::RESTORE, *end),
            ];
            for (operation, timestamp) in points {
                let record = QueueEvent {
                    size: size::<QueueEvent>(),
                    kind: BufferKind::KFD_EVENT_QUEUE,
                    operation,
                    timestamp,
                    pid,
                    agent_id,
                };
                emit(record.kind, operation.0, &record);
            }
            let record = Queue {
                size: size::<Queue>(),
                kind: BufferKind::KFD_QUEUE,
                operation: QueueOperation::EVICT_SVM,
                start_timestamp: *start,
                end_timestamp: *end,
                pid,
                agent_id,
            };
            emit(record.kind, record.operation.0, &record);
        }
    }
}

fn migrated(migration: &Migration, pid: u32) {
    let (begin, operation) = match migration.cause {
        Cause::Prefetch => (MigrateEventOperation::PREFETCH, MigrateOperation::PREFETCH),
        Cause::GpuFault => (
            MigrateEventOperation::PAGEFAULT_GPU,
            MigrateOperation::PAGEFAULT_GPU,
        ),
    };
    let points = [
        (begin, migration.start),
        (MigrateEventOperation::END, migration.end),
    ];
    for (operation, timestamp) in points {
        let record = MigrateEvent {
            size: size::<MigrateEvent>(),
            kind: BufferKind::KFD_EVENT_PAGE_MIGRATE,
            operation,
            timestamp,
            pid,
            start_address: migration.range.start.into(),
            end_address: migration.range.end.into(),
            src_agent: agents::of_handle(migration.from),
            dst_agent: agents::of_handle(migration.to),
            prefetch_agent: agents::of_handle(migration.prefetch),
            preferred_agent: agents::of_handle(migration.preferred),
            error_code: 0,
        };
        emit(record.kind, operation.0, &record);
    }
    let record = Migrate {
        size: size::<Migrate>(),
        kind: BufferKind::KFD_PAGE_MIGRATE,
        operation,
        start_timestamp: migration.start,
        end_timestamp: migration.end,
        pid,
        start_address: migration.range.start.into(),
        end_address: migration.range.end.into(),
        src_agent: agents::of_handle(migration.from),
        dst_agent: agents::of_handle(migration.to),
        prefetch_agent: agents::of_handle(migration.prefetch),
        preferred_agent: agents::of_handle(migration.preferred),
        error_code: 0,
    };
    emit(record.kind, operation.0, &record);
}

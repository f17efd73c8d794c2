//! A session with records and texts that occur seldom.

use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, ProcessId,
    QueueId, StreamId, ThreadId,
};
use rpd_core::session::{
    AllocationRow, ArgsRef, CallRow, CopyRow, DispatchRow, KernelSymbol, Region, ResourceKind,
    ResourceName, ScratchRow, Session,
};
use rpd_core::spool::format::call_flag;

use super::ODD;

pub(super) fn call(
    session: &mut Session,
    kind: Kind,
    name: &str,
    message: &str,
    (start, end): (u64, u64),
) {
    let operation = session.add_operation(kind, name);
    let message = session.strings.intern(message);
    let calls = &mut session.calls;
    let correlation = calls.start.len() as u64 + 1;
    calls.push(CallRow {
        operation,
        message,
        start: Nanoseconds(start),
        end: Nanoseconds(end),
        thread: ThreadId(42),
        correlation: CorrelationId(correlation),
        ancestor: CorrelationId(0),
        args: ArgsRef::default(),
    });
    calls.retval.set_last(u64::MAX);
}

pub(super) fn arguments(session: &mut Session, flags: u32, bytes: &[u8]) {
    let calls = &mut session.calls;
    let offset = calls.arena.len() as u64;
    calls.arena.extend(bytes);
    *calls.args.last_mut().expect("a call") = ArgsRef {
        offset,
        len: bytes.len() as u32,
        flags,
    };
}

pub(super) fn dispatch(
    session: &mut Session,
    (start, end): (u64, u64),
    correlation: u64,
    region: u32,
) {
    let table = &mut session.dispatches;
    table.push(DispatchRow {
        start: Nanoseconds(start),
        end: Nanoseconds(end),
        thread: ThreadId(43),
        correlation: CorrelationId(correlation),
        agent: AgentHandle(77),
        queue: QueueId(9),
        stream: StreamId(3),
        region,
        kernel: KernelId(start % 2 + 1),
        dispatch: DispatchId(start),
        private_size: 0,
        group_size: u32::MAX,
        workgroup: [u32::MAX; 3],
        grid: [1, 2, 3],
    });
}

fn copy(session: &mut Session, (start, end): (u64, u64)) {
    let operation = session.add_operation(Kind::MemoryCopy, "MEMORY_COPY_HOST_TO_DEVICE");
    let table = &mut session.copies;
    table.push(CopyRow {
        operation,
        start: Nanoseconds(start),
        end: Nanoseconds(end),
        thread: ThreadId(43),
        correlation: CorrelationId(0),
        dst_agent: AgentHandle(77),
        src_agent: AgentHandle(78),
        bytes: 1 << 20,
        dst_address: 0,
        src_address: 0,
        stream: StreamId(3),
        region: 0,
    });
}

fn allocation(session: &mut Session, operation: &str, at: u64, address: u64, bytes: u64) {
    let operation = session.add_operation(Kind::MemoryAllocation, operation);
    let table = &mut session.allocations;
    table.push(AllocationRow {
        operation,
        start: Nanoseconds(at),
        end: Nanoseconds(at + 10),
        thread: ThreadId(42),
        correlation: CorrelationId(0),
        ancestor: CorrelationId(0),
        agent: AgentHandle(if bytes == 0 { 0 } else { 77 }),
        address,
        bytes,
        stream: StreamId(0),
    });
}

/// Crossing ranges, overlapping work, odd texts, unknown agents, scratch, no provider's names.
pub(super) fn odd_session() -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(42);
    session.process.init_time = Nanoseconds(1_000_000);
    session.process.real_time = 1_700_000_000_000_000_000;
    session.process.command = vec!["/bin/odd one".to_owned(), ODD.to_owned()];
    session.kernel_symbols.push(KernelSymbol {
        id: KernelId(2),
        code_object: CodeObjectId(7),
        name: ODD.to_owned(),
        kernel_object: u64::MAX,
        kernarg_size: 16,
        kernarg_align: 8,
        group_size: 513,
        private_size: 0,
        sgpr_count: 16,
        arch_vgpr_count: 8,
        accum_vgpr_count: 4,
        entry_offset: -64,
        kernel_address: 1,
        size: 88,
    });
    session.resource_names.push(ResourceName {
        kind: ResourceKind::Thread,
        resource: 43,
        name: "worker".to_owned(),
    });
    let range = Kind::MarkerCoreRange;
    call(
        &mut session,
        range,
        "roctxProcessRangeA",
        "outer",
        (1_000_100, 1_000_300),
    );
    call(
        &mut session,
        range,
        "roctxProcessRangeA",
        "crossing",
        (1_000_200, 1_000_400),
    );
    call(
        &mut session,
        range,
        "roctxMarkA",
        ODD,
        (1_000_300, 1_000_300),
    );
    call(
        &mut session,
        Kind::HipRuntime,
        "hipModuleLaunchKernel",
        "",
        (1_000_300, 1_000_350),
    );
    call(
        &mut session,
        Kind::HipRuntime,
        "hipFromTheFuture",
        "",
        (1_000_350, 1_000_400),
    );
    let mut texts = Vec::new();
    // Longer than a length of two bytes can hold, and named as one of our annotations.
    for text in ["i", "kind", &"x".repeat(40_000), "PKc", ODD, ODD] {
        texts.extend((text.len() as u32).to_le_bytes());
        texts.extend(text.as_bytes());
    }
    arguments(&mut session, call_flag::ARGUMENT_TEXTS, &texts);
    call(
        &mut session,
        Kind::HipRuntime,
        "hipFree",
        "",
        (1_000_400, 1_000_400),
    );
    arguments(
        &mut session,
        call_flag::ARGUMENTS,
        &0x1000_u64.to_le_bytes(),
    );
    let message = session.strings.intern(ODD);
    session.regions.push(Region {
        message,
        correlation: CorrelationId(3),
    });
    dispatch(&mut session, (1_000_500, 1_000_600), 4, 0);
    dispatch(&mut session, (1_000_501, 1_000_550), 5, 1);
    copy(&mut session, (1_000_540, 1_000_700));
    copy(&mut session, (1_000_600, 1_000_650));
    allocation(
        &mut session,
        "MEMORY_ALLOCATION_ALLOCATE",
        1_000_100,
        1,
        4096,
    );
    allocation(
        &mut session,
        "MEMORY_ALLOCATION_VMEM_ALLOCATE",
        1_000_200,
        2,
        1 << 40,
    );
    allocation(&mut session, "MEMORY_ALLOCATION_FREE", 1_000_300, 3, 0);
    allocation(&mut session, "MEMORY_ALLOCATION_FREE", 1_000_400, 1, 0);
    for (at, operation, bytes) in [
        (1_000_500, "SCRATCH_MEMORY_ALLOC", 8192),
        (1_000_600, "SCRATCH_MEMORY_ASYNC_RECLAIM", 0),
        (1_000_700, "SCRATCH_MEMORY_FREE", 0),
    ] {
        let operation = session.add_operation(Kind::ScratchMemory, operation);
        let table = &mut session.scratch;
        table.push(ScratchRow {
            operation,
            start: Nanoseconds(at),
            end: Nanoseconds(at + 10),
            thread: ThreadId(42),
            correlation: CorrelationId(0),
            ancestor: CorrelationId(0),
            agent: AgentHandle(77),
            queue: QueueId(9),
            bytes,
            flags: 2,
        });
    }
    session
}

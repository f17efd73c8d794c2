//! Allocations of device memory, at the six HSA calls that make or free them.

use std::ffi::c_void;

use rpd_spool::format::Allocation;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::hooks::{Hook, hook};
use super::hsa::SUCCESS;
use super::{agents, calls};
use crate::recording::guard::Service;
use crate::recording::setting::Setting;
use crate::recording::stacks::Selection;
use crate::recording::{device_work, frames, thread};

static SERVICE: Service = Service::new("memory allocations");
/// Operations whose stacks are recorded.
static STACKS: Setting<Option<Selection>> = Setting::new();

/// Numbers of the operations.
const ALLOCATE: u32 = 1;
const VMEM_ALLOCATE: u32 = 2;
const FREE: u32 = 3;
const VMEM_FREE: u32 = 4;

pub(super) fn configure(stacks: Option<Selection>) {
    STACKS.set(stacks);
}

/// Makes a call that allocates or frees. After an allocation that succeeded, `address` gives the address.
fn observe(
    operation: u32,
    agent: u64,
    bytes: u64,
    call: impl FnOnce() -> u32,
    address: impl Fn() -> u64,
) -> u32 {
    // Ids are taken before the call: calls that the runtime makes inside it are its descendants.
    let ids = SERVICE
        .on_event(|| calls::are_on().then(frames::of_work))
        .flatten();
    let Some((correlation, ancestor)) = ids else {
        return call();
    };
    let start = now();
    let status = call();
    let end = now();
    SERVICE.on_event(|| {
        let frees = matches!(operation, FREE | VMEM_FREE);
        let (tid, stream) = thread::with(|thread| (thread.tid(), thread.region_and_stream().1))
            .unwrap_or_else(|| (thread::id(), 0));
        let stacks = STACKS.get().and_then(Option::as_ref);
        let has_stack = stacks.is_some_and(|stacks| stacks.takes(operation.cast_signed()));
        let allocation = Allocation {
            header: RecordKind::Allocation.head(0),
            thread: tid.into(),
            correlation,
            ancestor,
            start,
            end,
            agent,
            // After a failed allocation the place of the address holds whatever the program left there.
            address: if frees || status == SUCCESS {
                address()
            } else {
                0
            },
            bytes,
            operation,
            stream,
        };
        device_work::allocation(allocation, has_stack);
    });
    status
}

/// Value that a successful call wrote.
fn written(place: *const u64) -> u64 {
    // SAFETY: null, or where a call that succeeded has written.
    unsafe { place.as_ref() }.copied().unwrap_or(0)
}

hook! {
    MEMORY_ALLOCATE: HSA_CORE_API::hsa_memory_allocate,
    fn memory_allocate(region: u64, size: usize, place: *mut u64) -> u32,
    |next| {
        observe(ALLOCATE, agents::of_pool(region), size as u64, || next(region, size, place), || written(place))
    }
}

hook! {
    MEMORY_FREE: HSA_CORE_API::hsa_memory_free,
    fn memory_free(address: *mut c_void) -> u32,
    |next| {
        observe(FREE, 0, 0, || next(address), || address as u64)
    }
}

hook! {
    POOL_ALLOCATE: HSA_AMD_EXT_API::hsa_amd_memory_pool_allocate,
    fn pool_allocate(pool: u64, size: usize, flags: u32, place: *mut u64) -> u32,
    |next| {
        observe(ALLOCATE, agents::of_pool(pool), size as u64, || next(pool, size, flags, place), || written(place))
    }
}

hook! {
    POOL_FREE: HSA_AMD_EXT_API::hsa_amd_memory_pool_free,
    fn pool_free(address: *mut c_void) -> u32,
    |next| {
        observe(FREE, 0, 0, || next(address), || address as u64)
    }
}

hook! {
    HANDLE_CREATE: HSA_AMD_EXT_API::hsa_amd_vmem_handle_create,
    fn handle_create(pool: u64, size: usize, kind: u32, flags: u64, place: *mut u64) -> u32,
    |next| {
        observe(
            VMEM_ALLOCATE, agents::of_pool(pool), size as u64,
            || next(pool, size, kind, flags, place), || written(place),
        )
    }
}

hook! {
    HANDLE_RELEASE: HSA_AMD_EXT_API::hsa_amd_vmem_handle_release,
    fn handle_release(handle: u64) -> u32,
    |next| {
        observe(VMEM_FREE, 0, 0, || next(handle), || handle)
    }
}

/// Hooks for the tables of HSA.
pub(super) static HOOKS: [&Hook; 6] = [
    &MEMORY_ALLOCATE,
    &MEMORY_FREE,
    &POOL_ALLOCATE,
    &POOL_FREE,
    &HANDLE_CREATE,
    &HANDLE_RELEASE,
];

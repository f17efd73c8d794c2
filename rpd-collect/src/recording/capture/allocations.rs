//! Allocations and frees.

use rpd_spool::capture::{
    AllocationItem, HandleKind, NO_ARGUMENT, Role, call_flag, item, memory_kind, number,
};
use zerocopy::IntoBytes as _;

use super::state::STATE;
use super::watch::Hole;
use super::{Begun, order, stored};

/// Adds memory that the call has allocated, or removes memory that it has freed.
///
/// # Safety
/// The call succeeded.
pub(super) unsafe fn end(begun: &mut Begun, arguments: &[u8]) {
    use number as n;
    let named = |name: &str| begun.argument(arguments, name);
    let flags = named("flags") as u32;
    let (kind, size) = match begun.number {
        n::hipMalloc => (memory_kind::DEVICE, named("size")),
        n::hipExtMallocWithFlags => (memory_kind::DEVICE, named("sizeBytes")),
        n::hipMallocAsync | n::hipMallocFromPoolAsync => (memory_kind::POOLED, named("size")),
        n::hipMallocManaged => (memory_kind::MANAGED, named("size")),
        n::hipHostMalloc
        | n::hipHostAlloc
        | n::hipMallocHost
        | n::hipMemAllocHost
        | n::hipExtHostAlloc => (memory_kind::HOST, named("size")),
        n::hipMallocPitch | n::hipMemAllocPitch => {
            let pitch = named("pitch") as *const u64;
            let pitch = if pitch.is_null() {
                0
            } else {
                // SAFETY: the call has stored the pitch there.
                unsafe { pitch.read_unaligned() }
            };
            (memory_kind::DEVICE, pitch * named("height"))
        }
        n::hipMalloc3D => {
            let made = named("pitchedDevPtr") as *const [u64; 4];
            if made.is_null() {
                return;
            }
            // SAFETY: the call has stored a `hipPitchedPtr` there.
            let [base, pitch, ..] = unsafe { made.read_unaligned() };
            let extent = begun.operation.argument("extent");
            let at = extent.map_or(0, |extent| usize::from(extent.offset));
            let word = |index: usize| {
                let bytes = arguments.get(at + 8 * index..at + 8 * index + 8);
                bytes.map_or(0, |bytes| {
                    u64::from_le_bytes(bytes.try_into().unwrap_or_default())
                })
            };
            allocated(
                begun,
                base,
                pitch * word(1) * word(2),
                memory_kind::DEVICE,
                0,
            );
            return;
        }
        n::hipHostRegister => {
            let (base, size) = (named("hostPtr"), named("sizeBytes"));
            allocated(begun, base, size, memory_kind::REGISTERED, flags);
            return;
        }
        n::hipHostGetDevicePointer => {
            // SAFETY: as for this function.
            let device = unsafe { stored(begun, arguments, Role::AddressOut) };
            let host = named("hstPtr");
            STATE.with(|state| state.alias(device, host));
            return;
        }
        n::hipMemCreate => {
            // SAFETY: as for this function.
            let made = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Physical)) };
            STATE.with(|state| state.new_physical(made));
            return;
        }
        n::hipMemRetainAllocationHandle => {
            // SAFETY: as for this function.
            let found = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Physical)) };
            let address = named("addr");
            STATE.with(|state| state.physical_found(found, address));
            return;
        }
        n::hipMemMap => {
            let (base, size, handle) = (named("ptr"), named("size"), named("handle"));
            if STATE.with(|state| state.is_mapped_again(handle, base)) == Some(true) {
                begun.flags |= call_flag::MAPPED_AGAIN;
            }
            allocated(begun, base, size, memory_kind::DEVICE, 0);
            return;
        }
        n::hipMemUnmap => {
            let (base, size) = (named("ptr"), named("size"));
            STATE.with(|state| state.unmapped(base, size));
            return;
        }
        n::hipFree | n::hipFreeAsync | n::hipHostFree | n::hipFreeHost | n::hipHostUnregister => {
            if begun.number == n::hipFree {
                order::take_results(begun);
            }
            let (base, frees) = (begun.address(arguments), begun.frees);
            STATE.with(|state| state.freed(base, frees));
            return;
        }
        _ => return,
    };
    // SAFETY: as for this function.
    let base = unsafe { stored(begun, arguments, Role::AddressOut) };
    allocated(begun, base, size, kind, flags);
}

/// Notes memory that the call has made.
pub(super) fn allocated(begun: &mut Begun, base: u64, size: u64, kind: u32, flags: u32) {
    if base == 0 || size == 0 {
        return;
    }
    let made = AllocationItem {
        base,
        size,
        kind,
        flags,
    };
    STATE.with(|state| {
        state.allocated(made);
        let hole = match begun.number {
            number::hipExtMallocWithFlags if flags != 0 => Hole::FineGrained,
            number::hipMemMap => Hole::Mapped,
            _ => return,
        };
        state.set_hole(base, hole);
    });
    begun
        .items
        .add(item::ALLOCATION, NO_ARGUMENT, made.as_bytes());
}

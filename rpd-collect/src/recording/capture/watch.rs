//! What launches may write that a replay of their kernels does not put back. Calls are looked at as for a capture, and nothing is
//! written.
//!
//! A provider that runs a dispatch several times puts back the coarse-grained memory that was allocated on the dispatch's GPU, and
//! variables of loaded code. Whatever else a kernel writes is as often written as the kernel runs.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_spool::capture::{Group, Operation, Role, memory_kind, number};

use super::state::{CaptureState, Launchable, STATE};
use super::{Begun, DEVICE, allocations, launch, ranges, runtime, state};

/// Whether calls are looked at.
static WATCHING: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The launch that this thread is in.
    static LAUNCH: Cell<Launch> = const { Cell::new(Launch::Unknown) };
}

/// Memory, or an effect, that a replay does not put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Hole {
    /// `hipMallocManaged`, or a managed variable.
    Managed,
    /// `hipHostMalloc` and the like.
    Pinned,
    /// `hipHostRegister`.
    Registered,
    /// Device memory that is coherent while kernels run.
    FineGrained,
    /// `hipMallocAsync` and the like.
    Pooled,
    /// Physical memory at a reserved address.
    Mapped,
    /// Memory of another GPU.
    Peer,
    /// A pointer to memory of which no allocation by HIP is known.
    Unknown,
    /// Host-visible memory to which memory of the device points.
    Behind,
    /// `printf`, assertions and memory of the device's heap.
    Services,
}

impl Hole {
    /// The hole that all memory of a kind is ([`memory_kind`]).
    pub(super) fn from_kind(kind: u32) -> Option<Hole> {
        match kind {
            memory_kind::MANAGED => Some(Hole::Managed),
            memory_kind::HOST => Some(Hole::Pinned),
            memory_kind::REGISTERED => Some(Hole::Registered),
            memory_kind::POOLED => Some(Hole::Pooled),
            _ => None,
        }
    }

    /// Why a kernel runs once, for messages.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Hole::Managed => "it may write managed memory, which is not put back between runs",
            Hole::Pinned => {
                "it may write pinned memory of the host, which is not put back between runs"
            }
            Hole::Registered => {
                "it may write registered memory of the host, which is not put back between runs"
            }
            Hole::FineGrained => {
                "it may write fine-grained memory of the device, which is not put back between runs"
            }
            Hole::Pooled => {
                "it may write memory of a pool (hipMallocAsync), which is not put back between runs"
            }
            Hole::Mapped => {
                "it may write memory at a reserved address (hipMemMap), which is not put back between runs"
            }
            Hole::Peer => "it may write memory of another GPU, which is not put back between runs",
            Hole::Unknown => "it has a pointer to memory that HIP was not seen to allocate",
            Hole::Behind => "memory of the device points to memory of the host that it may write",
            Hole::Services => "it calls the host, or allocates memory",
        }
    }
}

/// The launch by HIP that a thread is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Launch {
    /// None, or one whose kernel or arguments are not understood.
    Unknown,
    /// Everything that the kernel may write is put back, but for the hole, if there is one.
    Known(Option<Hole>),
}

/// Looks at the calls of this process from now on.
pub(crate) fn watch() {
    state::FORK.register();
    WATCHING.store(true, Ordering::Release);
}

/// Whether calls are looked at.
pub(super) fn is_on() -> bool {
    WATCHING.load(Ordering::Acquire)
}

pub(super) fn stop() {
    WATCHING.store(false, Ordering::Relaxed);
}

/// The launch that the calling thread is in.
pub(crate) fn current_launch() -> Launch {
    LAUNCH.get()
}

/// Whether calls of an operation have to be looked at.
pub(super) fn follows(operation: &Operation) -> bool {
    matches!(
        operation.group,
        Group::Launch | Group::Memory | Group::Code | Group::Transfer | Group::Image
    )
}

/// A call begins.
///
/// # Safety
/// The arguments are those of the call, and the program's pointers in them are valid for it.
pub(super) unsafe fn begin(begun: &mut Begun, arguments: &[u8]) {
    match begun.operation.group {
        Group::Memory => {
            let base = begun.address(arguments);
            begun.frees = STATE.with(|state| state.allocation(base)).unwrap_or(0);
            note_device();
        }
        Group::Launch => {
            note_device();
            // SAFETY: by the contract of this function.
            LAUNCH.set(unsafe { of_call(begun, arguments) });
        }
        // SAFETY: as above.
        Group::Transfer => unsafe { ranges::note_pointers(begun, arguments) },
        _ => {}
    }
}

/// Memory belongs to the device that is current when it is allocated.
fn note_device() {
    if let Some(device) = runtime::current_device() {
        DEVICE.set(device);
    }
}

/// A call has returned `result`.
///
/// # Safety
/// The arguments are those of the call that began, and the program's pointers in them are valid for it.
pub(super) unsafe fn end(begun: &mut Begun, arguments: &[u8], result: i32) {
    LAUNCH.set(Launch::Unknown);
    if result != 0 {
        return;
    }
    match begun.operation.group {
        // SAFETY: by the contract of this function.
        Group::Memory => unsafe { allocations::end(begun, arguments) },
        // SAFETY: as above.
        Group::Image => unsafe { super::images::end(begun, arguments) },
        // SAFETY: as above.
        Group::Code => unsafe { super::code(begun, arguments) },
        _ => {
            if begun.number == number::hipDeviceReset {
                STATE.with(CaptureState::forget_memory);
            }
        }
    }
}

/// What a launch may write.
///
/// # Safety
/// The arguments are those of the call, and the program's pointers in them are valid for it.
unsafe fn of_call(begun: &Begun, arguments: &[u8]) -> Launch {
    // Sizes and arguments that calls before have set are not followed.
    if begun.number == number::hipLaunchByPtr {
        return Launch::Unknown;
    }
    let with = |role| {
        let found = begun.operation.with_role(role);
        found.map_or(0, |one| one.value(arguments))
    };
    let function = match with(Role::Kernel) {
        0 => begun.argument(arguments, "f"),
        kernel => kernel,
    };
    let Some(found) = launch::launchable(function, launch::is_by_handle(begun)) else {
        return Launch::Unknown;
    };
    let (pointers, extra) = (with(Role::Arguments), with(Role::Extra));
    // SAFETY: by the contract of this function.
    let packed = unsafe { launch::pack(&found.kernel, pointers, extra) };
    let Some(packed) = packed else {
        return Launch::Unknown;
    };
    if found.kernel.has_services {
        return Launch::Known(Some(Hole::Services));
    }
    let hole = STATE.with(|state| hole(state, &found, &packed));
    hole.map_or(Launch::Unknown, Launch::Known)
}

/// The first hole among what a kernel with these arguments may write.
fn hole(state: &mut CaptureState, found: &Launchable, packed: &[u8]) -> Option<Hole> {
    if state.has_managed(found.code) {
        return Some(Hole::Managed);
    }
    let device = DEVICE.get();
    let words = packed.as_chunks::<8>().0.iter().zip((0..).step_by(8));
    for (word, offset) in words {
        let is_pointer = found.kernel.pointers.contains(&offset);
        let address = state.host_address(u64::from_le_bytes(*word));
        let is_in_code = state.is_in_code(address);
        let hole = match state.memory_at(address) {
            Some((_, memory)) => memory
                .hole
                .or_else(|| (memory.device != device).then_some(Hole::Peer)),
            None if address == 0 || !is_pointer || is_in_code => None,
            None => Some(Hole::Unknown),
        };
        if hole.is_some() {
            return hole;
        }
    }
    state.is_any_behind().then_some(Hole::Behind)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rpd_spool::capture::AllocationItem;

    use super::super::metadata::Kernel;
    use super::*;

    const DEVICE_MEMORY: u64 = 0x1000;
    const PINNED: u64 = 0x10_000;

    fn state() -> CaptureState {
        let mut state = CaptureState::default();
        for (base, kind) in [
            (DEVICE_MEMORY, memory_kind::DEVICE),
            (PINNED, memory_kind::HOST),
        ] {
            state.allocated(AllocationItem {
                base,
                size: 0x100,
                kind,
                flags: 0,
            });
        }
        state
    }

    fn found(pointers: &[u32]) -> Launchable {
        Launchable {
            code: 1,
            kernel: Arc::new(Kernel {
                name: b"kernel".to_vec(),
                arguments: vec![(0, 8), (8, 8)],
                pointers: pointers.to_vec(),
                has_services: false,
            }),
        }
    }

    fn packed(words: [u64; 2]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn hole_is_found_in_pointers_and_in_words_that_are_addresses() {
        let mut state = state();
        let mut of = |words, pointers: &[u32]| hole(&mut state, &found(pointers), &packed(words));
        assert_eq!(of([DEVICE_MEMORY, 7], &[0]), None);
        assert_eq!(of([DEVICE_MEMORY + 0xff, 0], &[0, 8]), None);
        assert_eq!(of([DEVICE_MEMORY, PINNED + 8], &[0, 8]), Some(Hole::Pinned));
        // In a struct that is passed by value.
        assert_eq!(of([DEVICE_MEMORY, PINNED + 8], &[0]), Some(Hole::Pinned));
        assert_eq!(of([0x5000, 0], &[0]), Some(Hole::Unknown));
        assert_eq!(of([0x5000, 0], &[]), None);
    }

    #[test]
    fn memory_of_another_device_and_memory_without_a_copy_of_it_are_holes() {
        let mut state = state();
        state.set_hole(DEVICE_MEMORY, Hole::Mapped);
        let mapped = hole(&mut state, &found(&[0]), &packed([DEVICE_MEMORY, 0]));
        assert_eq!(mapped, Some(Hole::Mapped));
        let mut state = self::state();
        if let Some((_, memory)) = state.memory_at(DEVICE_MEMORY) {
            memory.device = 3;
        }
        let peer = hole(&mut state, &found(&[0]), &packed([DEVICE_MEMORY, 0]));
        assert_eq!(peer, Some(Hole::Peer));
    }
}

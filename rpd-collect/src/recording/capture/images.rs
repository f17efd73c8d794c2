//! Arrays, and the memory behind textures and surfaces.

use std::collections::HashMap;

use rpd_spool::capture::element::{bytes_of_channels, bytes_of_format};
use rpd_spool::capture::{HandleKind, Role, number};

use super::state::STATE;
use super::{Begun, stored};

/// Arrays and texture objects so far. What is destroyed stays: its handle means nothing until another one has it.
#[derive(Default)]
pub(super) struct Images {
    /// Bytes of an element, by array.
    elements: HashMap<u64, u64>,
    /// The memory that textures read, by texture object.
    memory: HashMap<u64, u64>,
}

impl Images {
    /// Bytes of an element of the first of these that is an array; 1 when none is.
    pub(super) fn element_bytes(&self, arrays: [u64; 2]) -> u64 {
        let mut known = arrays.iter().filter_map(|array| self.elements.get(array));
        known.next().copied().unwrap_or(1)
    }

    /// Adds the addresses of the memory that the textures among `words` read.
    pub(super) fn add_memory(&self, words: &mut Vec<u64>) {
        if !self.memory.is_empty() {
            let found = words.iter().filter_map(|word| self.memory.get(word));
            let found: Vec<u64> = found.copied().collect();
            words.extend(found);
        }
    }
}

/// Notes the array or texture that the call has made.
///
/// # Safety
/// The call succeeded.
pub(super) unsafe fn end(begun: &Begun, arguments: &[u8]) {
    use number as n;
    // `pAllocateArray`: width, height and in one of them depth, as words; then format and number of components.
    let descriptor = |words: usize| {
        let at = begun.argument(arguments, "pAllocateArray") as *const u64;
        // SAFETY: the call has read the descriptor.
        let [format, components] = unsafe { at.add(words).cast::<[u32; 2]>().read_unaligned() };
        bytes_of_format(format) * u64::from(components)
    };
    let bytes = match begun.number {
        n::hipMallocArray | n::hipMalloc3DArray => {
            let channels = begun.argument(arguments, "desc") as *const [u32; 5];
            // SAFETY: the call has read the description.
            bytes_of_channels(unsafe { channels.read_unaligned() })
        }
        n::hipArrayCreate => descriptor(2),
        n::hipArray3DCreate => descriptor(3),
        n::hipCreateTextureObject | n::hipTexObjectCreate => {
            // SAFETY: by the contract of this function.
            unsafe { texture(begun, arguments) };
            return;
        }
        _ => return,
    };
    // SAFETY: by the contract of this function.
    let array = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Array)) };
    STATE.with(|state| state.images.elements.insert(array, bytes));
}

/// Notes the memory that a texture object reads.
///
/// # Safety
/// The call succeeded.
unsafe fn texture(begun: &Begun, arguments: &[u8]) {
    /// `hipResourceTypeLinear` and `hipResourceTypePitch2D`.
    const MEMORY: [u32; 2] = [2, 3];
    let resource = begun.argument(arguments, "pResDesc") as *const u64;
    // SAFETY: the call has read the description: its type, padding, then the address or array.
    let (kind, address) = unsafe {
        (
            resource.cast::<u32>().read_unaligned(),
            resource.add(1).read_unaligned(),
        )
    };
    if MEMORY.contains(&kind) {
        // SAFETY: by the contract of this function.
        let made = unsafe { stored(begun, arguments, Role::HandleOut(HandleKind::Texture)) };
        STATE.with(|state| state.images.memory.insert(made, address));
    }
}

//! Arrays, and the memory behind textures and surfaces.

use std::collections::HashMap;

use rpd_spool::capture::element::{bytes_of_channels, bytes_of_format};
use rpd_spool::capture::structs::texture_reference;
use rpd_spool::capture::{Argument, HandleKind, Role, item, number};

use super::state::STATE;
use super::{Begun, DEVICE, stored};

/// Arrays and texture objects so far. What is destroyed stays: its handle means nothing until another one has it.
#[derive(Default)]
pub(super) struct Images {
    /// Bytes of an element, by array.
    elements: HashMap<u64, u64>,
    /// The memory that textures read, by texture object.
    memory: HashMap<u64, u64>,
    /// The memory that is bound to texture references, by reference.
    bound: HashMap<u64, u64>,
}

impl Images {
    /// Bytes of an element of the first of `arrays` that is an array; 1 when none is.
    pub(super) fn element_bytes(&self, arrays: [u64; 2]) -> u64 {
        let mut known = arrays.iter().filter_map(|array| self.elements.get(array));
        known.next().copied().unwrap_or(1)
    }

    /// Adds the addresses of the memory that the textures among `words`, or any texture reference, read.
    pub(super) fn add_memory(&self, words: &mut Vec<u64>) {
        words.extend(self.bound.values().copied());
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
pub(super) unsafe fn end(begun: &mut Begun, arguments: &[u8]) {
    use number as n;
    if let Some(reference) = begun.operation.with_role(Role::TextureReference) {
        // SAFETY: by the contract of this function.
        unsafe { bound(begun, arguments, reference) };
        return;
    }
    if begun.number == n::hipModuleGetTexRef {
        // SAFETY: as above; the call has read the text.
        let (at, name) = unsafe {
            let name = begun.argument(arguments, "name") as *const std::ffi::c_char;
            let at = stored(begun, arguments, Role::AddressOut);
            (at, crate::recording::text::text(name))
        };
        let (module, device) = (begun.argument(arguments, "hmod"), DEVICE.get());
        STATE.with(|state| state.reference_found(at, module, name, device));
        return;
    }
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

/// Takes the texture object that is bound to a reference now, and notes the memory that it reads.
///
/// # Safety
/// The call succeeded.
unsafe fn bound(begun: &mut Begun, arguments: &[u8], reference: &Argument) {
    let at = reference.value(arguments);
    let mut all = begun.operation.arguments().iter();
    let position = all.position(|one| one.role == reference.role);
    let (Some(position), true) = (position, at != 0) else {
        return;
    };
    let object = at + texture_reference::OBJECT as u64;
    // SAFETY: the call has written `textureReference` there.
    unsafe {
        begun
            .items
            .add_memory(item::OUT, position as u16, object, 8);
    }
    let memory = begun.address(arguments);
    STATE.with(|state| match memory {
        0 => state.images.bound.remove(&at),
        memory => state.images.bound.insert(at, memory),
    });
}

/// Notes the memory that a texture object reads.
///
/// # Safety
/// The call succeeded.
unsafe fn texture(begun: &Begun, arguments: &[u8]) {
    /// Values `hipResourceTypeLinear` and `hipResourceTypePitch2D`.
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

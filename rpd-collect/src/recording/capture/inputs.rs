//! Host memory that a call reads through its arguments.

use rpd_spool::capture::{Group, HandleKind, Role, call_flag, item, number, structs};
use zerocopy::IntoBytes as _;

use super::state::STATE;
use super::{Begun, DEVICE, launch, next, nodes, order, ranges, runtime};

/// Takes the memory that the call reads through its arguments.
///
/// # Safety
/// As for [`super::begin`].
pub(super) unsafe fn take(begun: &mut Begun, arguments: &[u8]) {
    let operation = begun.operation;
    for (position, argument) in operation.arguments().iter().enumerate() {
        let value = argument.value(arguments);
        let position = position as u16;
        match argument.role {
            // SAFETY: the call reads the text or struct; pointers of the program are valid for it.
            Role::Text if value != 0 => unsafe {
                let text = crate::recording::text::text(value as *const std::ffi::c_char);
                begun.items.add(item::IN, position, text);
            },
            Role::Array(count, unit) => {
                let count = operation.arguments().get(count as usize);
                let count = count.map_or(0, |count| count.value(arguments));
                let bytes = (count * u64::from(unit)) as usize;
                // SAFETY: as above.
                unsafe { begun.items.add_memory(item::IN, position, value, bytes) };
            }
            Role::MemoryOperations(count) => {
                let count = operation.arguments().get(count as usize);
                let count = count.map_or(0, |count| count.value(arguments)) as usize;
                let bytes = count.saturating_mul(structs::MEMORY_OPERATION);
                // SAFETY: as above.
                unsafe { begun.items.add_memory(item::IN, position, value, bytes) };
            }
            // SAFETY: as above.
            Role::Count if value != 0 => unsafe {
                begun.room = (value as *const u64).read_unaligned();
            },
            Role::Symbol => variable(begun, position, value),
            role => {
                if let Some(bytes) = role.struct_bytes() {
                    // SAFETY: as above.
                    unsafe { begun.items.add_memory(item::IN, position, value, bytes) };
                }
                // The list that a struct leads to: words of its address and of its length, bytes of an element.
                let list = match role {
                    Role::LaunchConfig => Some((5, 6, structs::LAUNCH_ATTRIBUTE)),
                    Role::MemoryOperationsNode => Some((2, 1, structs::MEMORY_OPERATION)),
                    _ => None,
                };
                if let Some((address, count, unit)) = list.filter(|_| value != 0) {
                    // SAFETY: the call reads the struct, whose count has four bytes, and the list.
                    unsafe {
                        let at = value as *const u64;
                        let list = at.add(address).read_unaligned();
                        let count = at.add(count).cast::<u32>().read_unaligned() as usize;
                        let bytes = count.saturating_mul(unit);
                        begun.items.add_memory(item::IN, position, list, bytes);
                    }
                }
                if role == Role::TextureReference && value != 0 {
                    variable(begun, position, value);
                }
            }
        }
    }
    order::begin(begun, arguments);
    match operation.group {
        // SAFETY: by the contract of the caller.
        Group::Launch => unsafe { launch::begin(begun, arguments) },
        // SAFETY: as above.
        Group::Transfer => unsafe { ranges::begin(begun, arguments) },
        // SAFETY: as above.
        Group::Graph => unsafe { nodes::begin(begun, arguments) },
        Group::Memory => {
            let base = begun.address(arguments);
            begun.frees = STATE.with(|state| state.allocation(base)).unwrap_or(0);
            note_stream_capture(begun, arguments);
        }
        Group::Order
            if matches!(
                begun.number,
                number::hipLaunchHostFunc
                    | number::hipLaunchHostFunc_spt
                    | number::hipStreamAddCallback
                    | number::hipStreamAddCallback_spt
                    | number::hipStreamWaitValue32
                    | number::hipStreamWaitValue64
                    | number::hipStreamWriteValue32
                    | number::hipStreamWriteValue64
                    | number::hipStreamBatchMemOp
            ) =>
        {
            note_stream_capture(begun, arguments);
        }
        _ => {}
    }
}

/// Takes the name of a device variable, and the code object that has it.
fn variable(begun: &mut Begun, position: u16, host: u64) {
    let name = STATE.with(|state| state.variable(host)).flatten();
    match name {
        Some(name) => begun.items.add(item::SYMBOL, position, &name),
        None => begun.missing("the name of the device variable is not known"),
    }
    if let Some(code) = code_of_variable(host) {
        begun
            .items
            .add(item::SYMBOL_CODE, position, code.as_bytes());
        // The code may have been loaded since the call began.
        begun.entry = next();
    }
}

/// Marks a call whose stream is being captured into a graph.
fn note_stream_capture(begun: &mut Begun, arguments: &[u8]) {
    let handle = Role::Handle(HandleKind::Stream);
    if begun.operation.with_role(handle).is_none() {
        return;
    }
    let stream = begun.stream(arguments);
    let capture = STATE.with(|state| state.graphs.capturing(stream));
    if capture.flatten().is_some() {
        begun.flags |= call_flag::IN_STREAM_CAPTURE;
    }
}

/// The code object that has a device variable on the current device: several may have variables of this name.
fn code_of_variable(host: u64) -> Option<u64> {
    let device = DEVICE.get();
    let known = STATE.with(|state| state.code_of_variable(host, device));
    if let Some(code) = known.flatten() {
        return Some(code);
    }
    let address = runtime::symbol_address(host)?;
    STATE
        .with(|state| state.variable_found(host, device, address))
        .flatten()
}

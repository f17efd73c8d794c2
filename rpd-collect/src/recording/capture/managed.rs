//! Managed variables of the program: the runtime allocates their memory when they are registered, without a call of its own.

use rpd_spool::capture::{
    AllocationItem, CaptureCall, NO_ARGUMENT, item, memory_kind, number, operation,
};
use rpd_spool::record::RecordKind;

use rpd_spool::writer::{now, record_len};
use zerocopy::IntoBytes as _;

use super::items::Items;
use super::state::{STATE, register_variable};
use super::{ACTIVE, Ordering, append, next};

/// Value `hipMemAttachGlobal`.
const ATTACH_GLOBAL: u32 = 1;

/// A managed variable of `size` bytes was registered: the pointer variable of the program at `pointer` leads to its memory at
/// `base`. It is captured as a call of `hipMallocManaged` that names the variable.
pub(crate) fn register_managed(binary: u64, pointer: u64, base: u64, name: &[u8], size: u64) {
    // Programs name the variable by its pointer or by what it points to.
    register_variable(binary, pointer, name);
    if base == 0 || size == 0 {
        return;
    }
    register_variable(binary, base, name);
    let made = AllocationItem {
        base,
        size,
        kind: memory_kind::MANAGED,
        flags: ATTACH_GLOBAL,
    };
    STATE.with(|state| state.managed_variable(made));
    let Some(operation) = operation(number::hipMallocManaged) else {
        return;
    };
    // Registered in any case and recorded only while calls are captured: programs register variables before `main`.
    if !ACTIVE.load(Ordering::Acquire) {
        return;
    }
    // Written as if the program had allocated the memory, so that a replay needs no other kind of record.
    let mut arguments = vec![0; usize::from(operation.size).next_multiple_of(8)];
    for (name, value) in [
        ("dev_ptr", pointer),
        ("size", size),
        ("flags", u64::from(ATTACH_GLOBAL)),
    ] {
        if let Some(argument) = operation.argument(name) {
            argument.put(&mut arguments, value);
        }
    }
    let mut items = Items::new();
    items.add(item::OUT, 0, base.as_bytes());
    items.add(item::ALLOCATION, NO_ARGUMENT, made.as_bytes());
    items.add(item::SYMBOL, NO_ARGUMENT, name);
    let room = arguments.len();
    let tail = room + items.bytes().len();
    let len = record_len(size_of::<CaptureCall>(), tail);
    let (entry, start) = (next(), now());
    let call = CaptureCall {
        header: RecordKind::CaptureCall.head(tail),
        operation: number::hipMallocManaged,
        flags: 0,
        entry,
        exit: next(),
        start,
        end: start,
        result: 0,
        device: 0,
    };
    append(call.as_bytes(), &arguments, room, items.bytes(), len);
}

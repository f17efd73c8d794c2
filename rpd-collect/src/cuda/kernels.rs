//! Numbers of kernels.
//!
//! CUPTI gives a kernel's name by a pointer, which is the same in all records of a loaded module. A kernel with a number is
//! known by its device, its name and what the compiler gave it.

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use cupti_sys::activity::Kernel;
use rpd_spool::format::{CodeObject, KernelSymbol};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::now;

use super::devices;
use crate::recording::fork::ForkHook;
use crate::recording::meta;

/// What tells kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Identity {
    name: Box<[u8]>,
    device: u32,
    registers: u32,
    shared: u32,
    local: u32,
}

#[derive(Default)]
struct Numbers {
    by_identity: HashMap<Identity, u64>,
    /// The kernel that the name at an address was of, by the address and the device.
    by_address: HashMap<(usize, u32), (Identity, u64)>,
    /// Devices that have a code object.
    devices: Vec<u32>,
}

/// The numbers of the process.
struct Known(UnsafeCell<Option<Numbers>>);

// SAFETY: only touched with the lock of [`FORK`] held.
unsafe impl Sync for Known {}

static KNOWN: Known = Known(UnsafeCell::new(None));
/// A child's kernels are its own: its records refer to no symbol of its parent.
pub(super) static FORK: ForkHook = ForkHook::new().in_child(|| {
    // SAFETY: the child has one thread.
    unsafe { *KNOWN.0.get() = None };
});
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The number of the kernel of a record; its symbol is recorded when it has none yet. 0 when a signal handler interrupted this.
pub(super) fn number(record: &Kernel, name: &[u8]) -> u64 {
    let Some(_guard) = FORK.lock() else { return 0 };
    // SAFETY: the lock is held.
    let numbers = unsafe { &mut *KNOWN.0.get() }.get_or_insert_default();
    let is_it = |identity: &Identity| {
        *identity.name == *name
            && identity.registers == u32::from(record.registers)
            && identity.shared == record.static_shared
            && identity.local == record.local
    };
    let address = (record.name as usize, record.device);
    // A module may have been unloaded, and another name be at the address.
    if let Some((identity, number)) = numbers.by_address.get(&address)
        && is_it(identity)
    {
        return *number;
    }
    let identity = Identity {
        name: name.into(),
        device: record.device,
        registers: record.registers.into(),
        shared: record.static_shared,
        local: record.local,
    };
    let number = match numbers.by_identity.get(&identity) {
        Some(number) => *number,
        None => {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            if !numbers.devices.contains(&record.device) {
                numbers.devices.push(record.device);
                let uri = format!("cuda://device/{}", record.device);
                write_code(code_of(record.device), record.device, &uri);
            }
            write_symbol(number, code_of(record.device), &identity);
            numbers.by_identity.insert(identity.clone(), number);
            number
        }
    };
    numbers.by_address.insert(address, (identity, number));
    number
}

/// The number of a function of a sampled module; its symbol is recorded.
pub(super) fn of_module(object: u64, name: &[u8]) -> u64 {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let identity = Identity {
        name: name.into(),
        device: 0,
        registers: 0,
        shared: 0,
        local: 0,
    };
    write_symbol(number, object, &identity);
    number
}

/// Number of the code object that stands for all modules of a device.
fn code_of(device: u32) -> u64 {
    u64::from(device) + 1
}

/// Records a code object of a device. CUPTI says nothing of where it is loaded.
pub(super) fn write_code(id: u64, device: u32, uri: &str) {
    let code = CodeObject {
        header: RecordKind::CodeObject.head(uri.len()).with_aux(1),
        id,
        agent: devices::handle(device),
        load_base: 0,
        load_size: 0,
        load_delta: 0,
        storage_type: 0,
        uri_len: uri.len() as u32,
        memory_base: 0,
        memory_size: 0,
        size: 0,
        time: now(),
    };
    meta::write(&code, uri.as_bytes());
}

fn write_symbol(number: u64, object: u64, identity: &Identity) {
    let symbol = KernelSymbol {
        header: RecordKind::KernelSymbol.head(identity.name.len()),
        id: number,
        code_object: object,
        kernel_object: 0,
        kernarg_size: 0,
        kernarg_align: 0,
        group_size: identity.shared,
        private_size: identity.local,
        sgpr_count: 0,
        arch_vgpr_count: identity.registers,
        accum_vgpr_count: 0,
        name_len: identity.name.len() as u32,
        entry_offset: 0,
        kernel_address: 0,
        size: 0,
    };
    meta::write(&symbol, &identity.name);
}

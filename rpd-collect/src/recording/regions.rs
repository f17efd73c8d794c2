//! Ranges that rename kernels: each distinct message is a region with a number.

use std::cell::UnsafeCell;

use rpd_spool::format::Region;
use rpd_spool::record::RecordKind;

use super::fork::ForkHook;
use super::thread::RegionNumbers;
use super::{meta, thread};

/// Numbers of all messages of the process.
struct Regions(UnsafeCell<Option<RegionNumbers>>);

// SAFETY: the content is only touched with the lock of [`FORK`] held.
unsafe impl Sync for Regions {}

static REGIONS: Regions = Regions(UnsafeCell::new(None));
pub(super) static FORK: ForkHook = ForkHook::new();

/// The calling thread enters the region `message`, in the call with this correlation id.
pub(crate) fn push(message: &[u8], correlation: u64) {
    thread::with(|thread| {
        let region = match thread.region_numbers.get(message) {
            Some(known) => *known,
            None => {
                let number = number(message, correlation);
                thread.region_numbers.insert(message.into(), number);
                number
            }
        };
        thread.regions.push(region);
    });
}

/// The calling thread leaves the region that it entered last.
pub(crate) fn pop() {
    thread::with(|thread| thread.regions.pop());
}

/// Begins anew, for another recording of a process that is attached to.
pub(super) fn forget() {
    if let Some(_guard) = FORK.lock() {
        // SAFETY: the lock is held.
        drop(unsafe { &mut *REGIONS.0.get() }.take());
    }
}

/// The number of a message, given when it is new.
fn number(message: &[u8], correlation: u64) -> u32 {
    let (number, new) = {
        let Some(_guard) = FORK.lock() else {
            return 0;
        };
        // SAFETY: the lock is held.
        let known = unsafe { &mut *REGIONS.0.get() }.get_or_insert_default();
        let next = known.len() as u32 + 1;
        match known.get(message) {
            Some(number) => (*number, false),
            None => {
                known.insert(message.into(), next);
                (next, true)
            }
        }
    };
    if new {
        let region = Region {
            header: RecordKind::Region.head(message.len()),
            id: number,
            text_len: message.len() as u32,
            correlation,
        };
        meta::write(&region, message);
    }
    number
}

//! Pointers to host-visible memory in memory of the device.
//!
//! Where memory is taken because arguments of launches point to it, what only memory of the device points to is not: its content is
//! not looked at. Copies to the device show that there are such pointers.

use rpd_spool::capture::{NO_ARGUMENT, item, memory_kind};
use zerocopy::IntoBytes as _;

use super::content::can_be_read;
use super::ranges::Range;
use super::state::{CaptureState, STATE};
use super::{Begun, options};

/// Bytes of device memory in which one pointer is looked at.
const PART: u64 = 4096;
/// Pointers of a copy that are looked at.
const MOST: usize = 1024;

/// Whether memory is taken as arguments of launches point to it.
fn follows_arguments() -> bool {
    super::watch::is_on()
        || options().is_some_and(|options| options.data && !options.snapshot && !options.pageguard)
}

/// The host's `source` is copied to the address `to`, or to a variable, for which that is 0: notes the host-visible memory to which
/// words of it point, where the copy goes to memory of the device.
pub(super) fn copied(source: &Range, to: u64) {
    if !follows_arguments() {
        return;
    }
    let visible = STATE.with(|state| {
        let is_device = !state.is_visible(to);
        state.visible.filter(|_| is_device)
    });
    let Some((low, high)) = visible.flatten() else {
        return;
    };
    let mut found: Vec<u64> = Vec::new();
    for (address, size) in source.pieces() {
        if !can_be_read(address, size) {
            return;
        }
        // Pointers lie at multiples of their size in all structs that compilers make.
        for at in (address.next_multiple_of(8)..(address + size) / 8 * 8).step_by(8) {
            // SAFETY: it can be read.
            let word = unsafe { (at as *const u64).read_volatile() };
            if word.wrapping_sub(low) < high - low
                && found.last().is_none_or(|last| last / PART != word / PART)
            {
                found.push(word);
            }
        }
        found.sort_unstable();
        found.dedup_by_key(|word| *word / PART);
        found.truncate(MOST);
    }
    if !found.is_empty() {
        STATE.with(|state| found.iter().for_each(|word| state.is_behind(*word)));
    }
}

/// Notes that the launch may read memory that was not taken for it, where there is some.
pub(super) fn launched(begun: &mut Begun) {
    if !follows_arguments() {
        return;
    }
    let launch = begun.entry;
    if let Some(base) = STATE.with(|state| state.behind(launch)).flatten() {
        begun
            .items
            .add(item::BEHIND_DEVICE, NO_ARGUMENT, base.as_bytes());
    }
}

impl CaptureState {
    /// Whether memory at an address is host-visible.
    pub(super) fn is_visible(&mut self, address: u64) -> bool {
        self.memory_at(address)
            .is_some_and(|(_, memory)| memory_kind::is_host_visible(memory.kind))
    }

    /// Memory of the device has a pointer to this address.
    fn is_behind(&mut self, address: u64) {
        if let Some((base, memory)) = self.memory_at(address)
            && memory_kind::is_host_visible(memory.kind)
        {
            let found = (base, memory.number);
            if !self.behind.contains(&found) {
                self.behind.push(found);
            }
        }
    }

    /// Whether memory of the device points to host-visible memory that is still there.
    pub(super) fn is_any_behind(&mut self) -> bool {
        // No launch has this number, so that none uses the memory otherwise.
        self.behind(0).is_some()
    }

    /// The first memory to which memory of the device points and that the launch does not use otherwise.
    fn behind(&mut self, launch: u64) -> Option<u64> {
        let memory = &self.memory;
        self.behind
            .retain(|(base, number)| memory.get(base).is_some_and(|one| one.number == *number));
        let mut left = self.behind.iter().filter(|(base, _)| {
            let used = memory.get(base).and_then(|one| one.used_by);
            used.is_none_or(|used| used.launch != launch)
        });
        left.next().map(|(base, _)| *base)
    }
}

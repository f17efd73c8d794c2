//! Global wave sync: the counters of a device on which waves of all workgroups of a grid wait for each other.

use super::exec::{Exec, WaveState};
use super::inst::{Handler, Inst};
use std::sync::{Mutex, PoisonError};

/// Counters of a device.
const RESOURCES: usize = 64;

/// The counters of a device.
#[derive(Debug)]
pub struct WaveSync(Mutex<[Resource; RESOURCES]>);

/// A counter of global wave sync, as a barrier or a semaphore.
#[derive(Debug, Clone, Copy)]
struct Resource {
    /// Waves that a barrier still waits for after the next one, or units of a semaphore.
    count: u32,
    /// Barriers that were complete.
    barriers: u64,
    /// Times that all waves waiting for a semaphore were released.
    releases: u64,
}

/// The condition that a wave waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// More than this number of barriers of a resource are complete.
    Barrier(usize, u64),
    /// A unit of a semaphore, or that all waiting waves are released once more.
    Semaphore(usize, u64),
}

impl WaveSync {
    /// All counters at 0.
    pub const fn new() -> Self {
        let none = Resource {
            count: 0,
            barriers: 0,
            releases: 0,
        };
        Self(Mutex::new([none; RESOURCES]))
    }

    fn with<R>(&self, id: usize, act: impl FnOnce(&mut Resource) -> R) -> R {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut all[id % RESOURCES])
    }

    /// Arrives at a barrier: what the wave has to wait for, if it is not the last. `next` is what the next barrier counts from.
    fn arrive(&self, id: usize, next: u32) -> Option<Wait> {
        self.with(id, |resource| {
            if resource.count == 0 {
                resource.count = next;
                resource.barriers += 1;
                None
            } else {
                resource.count -= 1;
                Some(Wait::Barrier(id, resource.barriers))
            }
        })
    }

    /// Whether the wave may go on; if so, takes the unit of the semaphore.
    pub(super) fn is_over(&self, wait: Wait) -> bool {
        match wait {
            Wait::Barrier(id, barriers) => self.with(id, |resource| resource.barriers > barriers),
            Wait::Semaphore(id, releases) => self.with(id, |resource| {
                let unit = resource.count > 0;
                resource.count -= u32::from(unit);
                unit || resource.releases > releases
            }),
        }
    }
}

impl Default for WaveSync {
    fn default() -> Self {
        Self::new()
    }
}

/// The operation of a DS opcode.
pub(super) fn handler(opcode: u32) -> Option<Handler> {
    Some(match opcode {
        0x98 => |x, i| {
            let id = resource(x, i);
            sync(x).with(id, |resource| resource.releases += 1);
        },
        0x99 => |x, i| {
            let (id, value) = (resource(x, i), value(x, i));
            sync(x).with(id, |resource| resource.count = value);
        },
        0x9a => |x, i| {
            let id = resource(x, i);
            sync(x).with(id, |resource| {
                resource.count = resource.count.saturating_add(1)
            });
        },
        0x9b => |x, i| {
            let (id, value) = (resource(x, i), value(x, i));
            sync(x).with(id, |resource| {
                resource.count = resource.count.saturating_add(value)
            });
        },
        0x9c => |x, i| {
            let id = resource(x, i);
            let releases = sync(x).with(id, |resource| resource.releases);
            wait(x, Some(Wait::Semaphore(id, releases)));
        },
        0x9d => |x, i| {
            let (id, value) = (resource(x, i), value(x, i));
            let arrived = sync(x).arrive(id, value);
            wait(x, arrived);
        },
        _ => return None,
    })
}

fn sync<'d>(x: &Exec<'d>) -> &'d WaveSync {
    x.mem.memory().wave_sync()
}

/// The resource that the instruction names, in the instruction and in M0.
fn resource(x: &Exec<'_>, i: &Inst) -> usize {
    (x.m0() >> 16 & 0x3f) as usize + (i.literal & 0x3f) as usize
}

/// The value of the first active lane.
fn value(x: &Exec<'_>, i: &Inst) -> u32 {
    x.vgpr(i.src[0])[x.first_lane()]
}

/// Stops the wave until the condition is met; its earlier stores are visible by then.
fn wait(x: &mut Exec<'_>, what: Option<Wait>) {
    x.order_stores();
    if let Some(what) = what {
        x.w.wait = Some(what);
        x.w.state = WaveState::Global;
    }
}

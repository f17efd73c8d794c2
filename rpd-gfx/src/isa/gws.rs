//! Global wave sync: resources of a device on which waves of all workgroups of a grid wait for each other.

use super::exec::{Exec, Wait, WaveState};
use super::inst::{Handler, Inst};
use std::sync::{Mutex, PoisonError};

/// Number of resources of a device.
const RESOURCES: usize = 64;

/// The resources of a device.
#[derive(Debug)]
pub struct WaveSync(Mutex<[Resource; RESOURCES]>);

/// A resource of global wave sync, used as a barrier or as a semaphore.
#[derive(Debug, Clone, Copy)]
struct Resource {
    /// Barrier: number of waves that have to arrive after the next one. Semaphore: number of units.
    count: u32,
    /// Number of barriers that were completed.
    barriers: u64,
    /// Number of times that all waves which wait for the semaphore were released.
    releases: u64,
}

impl WaveSync {
    /// All resources with count 0.
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

    /// Arrives at a barrier. Returns the condition that the wave has to wait for; `None` for the last wave. `next` is
    /// the count for the next barrier.
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

    /// Whether the wave may continue. A unit of the semaphore that it waited for is taken then.
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

/// Number of the resource that an instruction names: the sum of a field of the instruction and a field of M0.
fn resource(x: &Exec<'_>, i: &Inst) -> usize {
    (x.m0() >> 16 & 0x3f) as usize + (i.literal & 0x3f) as usize
}

/// Value of the data register in the first active lane.
fn value(x: &Exec<'_>, i: &Inst) -> u32 {
    x.vgpr(i.src[0])[x.first_lane()]
}

/// Lets the wave wait for a condition. Its earlier stores become visible first.
fn wait(x: &mut Exec<'_>, what: Option<Wait>) {
    x.order_stores();
    if let Some(what) = what {
        x.w.wait = Some(what);
        x.w.state = WaveState::Global;
    }
}

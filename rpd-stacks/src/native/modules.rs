//! The modules that code was seen in.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use crate::facts::{Module, Sink};
use crate::native::maps;
use crate::native::objects::Object;
use crate::native::rules::NO_MODULE;
use crate::options::FrameClass;
use crate::region::{Region, Zeroed};

const CAPACITY: usize = NO_MODULE as usize;
const BUCKETS: usize = 1 << 16;
/// Largest number of probes of a lookup by address.
const PROBES: usize = 64;

/// State of a module whose rules may be used.
const LIVE: u8 = 1;
/// State of a module since whose last look something was unloaded.
const SUSPECT: u8 = 2;
/// State of a module that was replaced or unloaded.
const DEAD: u8 = 3;

#[derive(Default)]
struct Slot {
    start: AtomicU64,
    end: AtomicU64,
    bias: AtomicU64,
    code: [AtomicU64; 2],
    frame_header: AtomicU64,
    frame_segment: [AtomicU64; 2],
    fingerprint: AtomicU64,
    /// The session in which it was reported, 0 for none.
    reported_in: AtomicU32,
    /// The class of its frames, known when it has been reported.
    class: AtomicU8,
}

// SAFETY: integers.
unsafe impl Zeroed for Slot {}

/// Data for making unwind rules of a module's code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code {
    /// Range of executable addresses.
    pub(crate) code: (u64, u64),
    /// Address of `.eh_frame_hdr`, 0 if there is none.
    pub(crate) frame_header: u64,
    /// The segment that holds it.
    pub(crate) frame_segment: (u64, u64),
}

/// All modules, by index. An index is never reused; the module's id is the index plus one.
pub(crate) struct Modules {
    slots: Region<Slot>,
    states: Region<AtomicU8>,
    /// Index plus one, by start address.
    buckets: Region<AtomicU32>,
    used: AtomicU32,
    /// The class of the frames of a module, by its path.
    pub(crate) class_of: fn(&[u8]) -> FrameClass,
}

/// The states of all modules.
#[derive(Clone, Copy)]
pub(crate) struct States<'a>(&'a [AtomicU8; CAPACITY + 1]);

impl States<'_> {
    /// Whether rules of this module may be used.
    #[inline(always)]
    pub(crate) fn is_live(self, index: u32) -> bool {
        self.0[index as usize & CAPACITY].load(Ordering::Acquire) == LIVE
    }
}

impl Modules {
    /// Reserves the tables of modules.
    pub(crate) fn reserve() -> Modules {
        Modules {
            slots: Region::reserve(CAPACITY),
            states: Region::reserve(CAPACITY + 1),
            buckets: Region::reserve(BUCKETS),
            used: AtomicU32::new(0),
            class_of: |_| FrameClass::Other,
        }
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        !self.slots.is_empty() && !self.states.is_empty() && !self.buckets.is_empty()
    }

    /// Whether rules of each module may be used, for several questions.
    #[inline(always)]
    pub(crate) fn states(&self) -> States<'_> {
        States(self.states.first())
    }

    /// Whether rules of this module may be used.
    #[inline(always)]
    pub(crate) fn is_live(&self, index: u32) -> bool {
        self.states().is_live(index)
    }

    /// An object may have been unloaded: every module is looked at again before its rules are used.
    pub(crate) fn suspect_all(&self) {
        for state in &self.states[..self.used.load(Ordering::Acquire) as usize] {
            let _ = state.compare_exchange(LIVE, SUSPECT, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// The index of the module for an object. `None` if the table is full.
    pub(crate) fn index_of(&self, object: &Object) -> Option<u32> {
        let layout = object.layout();
        // Computed where it is needed: it reads the object's headers and table, and most look-ups end before.
        let mut fingerprint = None;
        let mut bucket = (object.start >> 12).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> 32;
        for _ in 0..PROBES {
            bucket = (bucket + 1) % BUCKETS;
            let known = self.buckets[bucket].load(Ordering::Acquire);
            if known != 0 {
                let slot = &self.slots[known as usize - 1];
                // Another module hashes to the same bucket: the next one is tried.
                if slot.start.load(Ordering::Relaxed) != object.start {
                    continue;
                }
                let state = &self.states[known as usize - 1];
                let now = state.load(Ordering::Acquire);
                if now == LIVE && slot.end.load(Ordering::Relaxed) == object.end {
                    return Some(known - 1);
                }
                let print =
                    *fingerprint.get_or_insert_with(|| fingerprint_of(object, layout.build_id));
                if now != DEAD && slot.fingerprint.load(Ordering::Relaxed) == print {
                    state.store(LIVE, Ordering::Release);
                    return Some(known - 1);
                    // At the same address is another object now. Its rules must not be used for the new code.
                }
                state.store(DEAD, Ordering::Release);
            }
            let print = *fingerprint.get_or_insert_with(|| fingerprint_of(object, layout.build_id));
            let index = self
                .used
                .fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| {
                    ((used as usize) < CAPACITY).then_some(used + 1)
                })
                .ok()?;
            let slot = &self.slots[index as usize];
            slot.start.store(object.start, Ordering::Relaxed);
            slot.end.store(object.end, Ordering::Relaxed);
            slot.bias.store(object.bias, Ordering::Relaxed);
            slot.code[0].store(layout.code.0, Ordering::Relaxed);
            slot.code[1].store(layout.code.1, Ordering::Relaxed);
            slot.frame_header
                .store(layout.frame_header, Ordering::Relaxed);
            slot.frame_segment[0].store(layout.frame_segment.0, Ordering::Relaxed);
            slot.frame_segment[1].store(layout.frame_segment.1, Ordering::Relaxed);
            slot.fingerprint.store(print, Ordering::Relaxed);
            // Live only when all parts are stored: other threads use them from then on.
            self.states[index as usize].store(LIVE, Ordering::Release);
            match self.buckets[bucket].compare_exchange(
                known,
                index + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(index),
                Err(theirs) => {
                    // Another thread added the same module, or another one for the same bucket, at the same moment.
                    self.states[index as usize].store(DEAD, Ordering::Release);
                    if self.slots[theirs as usize - 1]
                        .fingerprint
                        .load(Ordering::Relaxed)
                        == print
                    {
                        return Some(theirs - 1);
                    }
                }
            }
        }
        None
    }

    /// Data for making unwind rules of a module's code.
    pub(crate) fn code(&self, index: u32) -> Code {
        let slot = &self.slots[index as usize];
        let pair = |pair: &[AtomicU64; 2]| {
            (
                pair[0].load(Ordering::Relaxed),
                pair[1].load(Ordering::Relaxed),
            )
        };
        Code {
            code: pair(&slot.code),
            frame_header: slot.frame_header.load(Ordering::Relaxed),
            frame_segment: pair(&slot.frame_segment),
        }
    }

    /// Load bias of a module: run-time address minus address in its file.
    pub(crate) fn bias(&self, index: u32) -> u64 {
        self.slots[index as usize].bias.load(Ordering::Relaxed)
    }

    /// Reports a module that has code at `pc` on the stack to the sink, once in a session.
    pub(crate) fn report(
        &self,
        index: u32,
        pc: u64,
        session: u32,
        buffer: &mut [u8],
        sink: &mut dyn Sink,
    ) -> bool {
        let slot = &self.slots[index as usize];
        if slot.reported_in.load(Ordering::Acquire) == session {
            return true;
        }
        let Some(object) = Object::at(pc) else {
            return false;
        };
        let layout = object.layout();
        let name = object.name().to_bytes();
        let module = Module {
            id: index + 1,
            path: full_path(name, object.start, buffer),
            build_id: layout.build_id,
            bias: object.bias,
            start: object.start,
            end: object.end,
        };
        let class = (self.class_of)(module.path);
        slot.class.store(class as u8, Ordering::Relaxed);
        let stored = sink.module(&module);
        if stored {
            slot.reported_in.store(session, Ordering::Release);
        }
        stored
    }

    /// The class of the frames of a module that was reported, by its id.
    pub(crate) fn class(&self, id: u32) -> FrameClass {
        let slot = id
            .checked_sub(1)
            .and_then(|index| self.slots.get(index as usize));
        slot.map_or(FrameClass::Other, |slot| {
            FrameClass::from_number(slot.class.load(Ordering::Relaxed))
        })
    }

    /// Modules seen so far.
    pub(crate) fn len(&self) -> u32 {
        self.used.load(Ordering::Relaxed)
    }
}

/// A path that does not depend on the working directory. The program has no name with the loader, and what was opened
/// by a relative path keeps that: the kernel has both.
fn full_path<'a>(name: &'a [u8], start: u64, buffer: &'a mut [u8]) -> &'a [u8] {
    if name.is_empty() {
        // SAFETY: the buffer is as long as stated.
        let len = unsafe {
            libc::readlink(
                c"/proc/self/exe".as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
            )
        };
        return usize::try_from(len).map_or(name, |len| &buffer[..len]);
    }
    if name[0] == b'/' || !name.contains(&b'/') {
        return name;
    }
    match maps::path_at(start, buffer) {
        Some(path) if !path.is_empty() => path,
        _ => name,
    }
}

/// A number for the identity of an object at a place: path, build id, program headers, and the start of its table of
/// frames, which differs between builds even without a build id.
fn fingerprint_of(object: &Object, build_id: &[u8]) -> u64 {
    let layout = object.layout();
    let table = match layout.frame_header {
        0 => &[][..],
        start => {
            let len = (layout.frame_segment.1 - start).min(2048);
            // SAFETY: inside a readable segment of a loaded object.
            unsafe { std::slice::from_raw_parts(start as *const u8, len as usize) }
        }
    };
    let mut hash = 0xcbf2_9ce4_8422_2325 ^ object.bias;
    for part in [
        object.name().to_bytes(),
        build_id,
        object.header_bytes(),
        table,
    ] {
        hash = mixed(hash, part);
    }
    hash
}

/// A hash (FNV-1a) with bytes and their number mixed in.
pub(super) fn mixed(hash: u64, bytes: &[u8]) -> u64 {
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    (bytes.iter().fold(hash, mix) ^ bytes.len() as u64).wrapping_mul(PRIME)
}

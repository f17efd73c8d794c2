//! A thread's walk over its stack.
//!
//! A walk is a function of the registers that it starts with and of the words of the stack that it reads. The thread
//! keeps the frames of its last walk. When the new walk reaches a frame with the same registers, and the words that led
//! from there to the callers have not changed, the callers are the same; this is exact, and costs two loads per frame.

use crate::facts::Sink;
use crate::flags;
use crate::interner::NoNumber;
use crate::native::counts::Counts;
use crate::native::frames::{Frame, Frames, GUESSED, IRREGULAR, JIT};
use crate::native::lookup::Lookup;
use crate::native::memory::{OwnStack, Readable};
use crate::native::recover::step_by_registers;
use crate::native::registers::{Registers, Start};
use crate::native::rules::RuleKind;
use crate::native::step::{Step, step};
use crate::native::{Native, SharedWalk};

/// Number of signal frames that one walk may cross.
const MAX_SWITCHES: u32 = 64;

/// Result of a walk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walked {
    /// Number of outermost frames that equal those of the last walk, with the same registers and locations.
    pub(crate) unchanged: usize,
    /// Flags of the capture.
    pub(crate) flags: u32,
    /// Reason why some frame has no location; `None` when all have one.
    pub(crate) lost: Option<NoNumber>,
}

/// State of a thread's walks.
pub(crate) struct Walker {
    frames: Frames,
    /// Whether the next walk can be compared with the last one.
    comparable: bool,
    /// Index of the outermost guessed frame.
    guess: usize,
    /// Whether the last walk has frames of code in no module.
    has_jit: bool,
    generation: u32,
    own: OwnStack,
    lookup: Lookup,
    pub(crate) counts: Counts,
}

/// A walk in progress.
struct Progress {
    start: Start,
    /// Registers of the next frame.
    registers: Registers,
    /// Origin of the next frame's registers.
    origin: i32,
    /// Frames of the last walk that this walk may still reach: the outermost ones.
    old: usize,
    /// Number of frames before the outermost guessed one.
    guess: usize,
    switches: u32,
    comparable: bool,
    /// Whether there was a frame of code in no module.
    met_jit: bool,
    walked: Walked,
}

impl Walker {
    /// Reserves the buffers of a thread's walks.
    pub(crate) fn reserve() -> Walker {
        Walker {
            frames: Frames::reserve(),
            comparable: false,
            guess: usize::MAX,
            has_jit: false,
            generation: 0,
            own: OwnStack::default(),
            lookup: Lookup::reserve(),
            counts: Counts::default(),
        }
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        self.frames.usable() && self.lookup.usable()
    }

    /// The frames of the last walk, outermost first.
    #[inline(always)]
    pub(crate) fn frames(&self) -> &[Frame] {
        self.frames.last()
    }

    /// Clears the last walk.
    pub(crate) fn clear(&mut self) {
        self.frames.clear();
        self.comparable = false;
        self.guess = usize::MAX;
        self.has_jit = false;
        self.lookup.registered.clear();
    }

    /// Walks from a frame outwards.
    pub(crate) fn walk(
        &mut self,
        shared: &SharedWalk<'_>,
        start: Start,
        sink: &mut dyn Sink,
    ) -> Walked {
        let native = shared.native;
        self.counts.captures += 1;
        // An unloaded module's addresses may belong to other code now, whose frames may look the same.
        let generation = native.changes.poll(|| native.modules.suspect_all());
        if generation != self.generation {
            self.generation = generation;
            self.comparable = false;
        }
        self.lookup.registered.begin();
        // Code made at run time may have been replaced without any change that the loader knows.
        if self.has_jit && !self.lookup.registered.holds(&native.changes) {
            self.comparable = false;
        }
        if self.own == OwnStack::default() {
            self.own = OwnStack::from_calling_thread(start.registers.sp);
        }
        let mut readable = Readable::new(&self.own, start.registers.sp);
        // On a foreign stack, a coroutine's, nothing says that its words stay where they were.
        let foreign = readable.foreign();
        let mut at = Progress {
            start,
            registers: start.registers,
            origin: IRREGULAR,
            old: if self.comparable && !foreign {
                self.frames.last().len()
            } else {
                0
            },
            guess: usize::MAX,
            switches: 0,
            comparable: !foreign,
            met_jit: false,
            walked: Walked {
                unchanged: 0,
                flags: if foreign { flags::FOREIGN_STACK } else { 0 },
                lost: None,
            },
        };
        self.frames.begin();
        loop {
            let is_stored = self.reaches_last_walk(&mut at);
            if is_stored {
                let same = self.same_callers(shared, at.old - 1, &mut readable);
                if same == 0 {
                    at.walked.unchanged = at.old;
                    break;
                }
                // Its outermost frame has another caller now: the walk goes on from that frame.
                if !self.take_over(same, &mut at) {
                    at.walked.flags |= flags::TRUNCATED;
                    break;
                }
            } else if self.usual_frames(native, &mut at, &readable) {
                continue;
            }
            if !self.next_frame(shared, &mut at, is_stored, &mut readable, sink) {
                break;
            }
        }
        self.finish(&at)
    }

    /// Whether the next frame is one of the last walk, which is then `old - 1`.
    #[inline(always)]
    fn reaches_last_walk(&self, at: &mut Progress) -> bool {
        let mut old = self.frames.last()[..at.old].iter();
        let met = skip_to(&mut old, at.registers, at.origin);
        at.old = old.len();
        met
    }

    /// Walks over frames that have a known rule of the usual kind, on the thread's own stack. Returns whether that ended
    /// at a frame of the last walk, and not at one that is unusual.
    #[inline(always)]
    fn usual_frames(&mut self, native: &Native, at: &mut Progress, readable: &Readable) -> bool {
        // The location of a guessed frame says so. Rules of the usual kind guess nothing, so only the first can be one.
        if at.origin & GUESSED != 0 {
            return false;
        }
        let (rules, modules) = (native.rules.reader(), native.modules.states());
        let own = readable.own();
        let (last, room) = self.frames.last_and_room(at.old);
        let (mut old, mut room) = (last.iter(), room.iter_mut());
        let most = room.len();
        let (mut registers, mut origin) = (at.registers, at.origin);
        let size = own.end.wrapping_sub(own.start);
        let is_own = |address: u64| address.wrapping_sub(own.start) < size;
        // SAFETY: used for aligned words of the thread's own stack.
        let word = |address: u64| unsafe { std::ptr::read_volatile(address as *const u64) };
        let mut met = false;
        loop {
            let Registers { pc, sp, bp } = registers;
            if skip_to(&mut old, registers, origin) {
                met = true;
                break;
            }
            // Anything that is not usual is left to the slow way, which handles every case.
            let Some((rule, place)) = rules.get(pc) else {
                break;
            };
            let Some(location) = rules.location(place, rule.module()) else {
                break;
            };
            if !rule.is_usual() || !modules.is_live(rule.module()) {
                break;
            }
            let base = if rule.relative_to_bp() { bp } else { sp };
            let cfa = base.wrapping_add_signed(rule.cfa_offset());
            let return_at = cfa.wrapping_sub(8);
            // Wrong unwind information may point anywhere; only aligned words of the thread's own stack are read
            // unchecked.
            if cfa % 8 != 0 || cfa <= sp || !is_own(return_at) {
                break;
            }
            let address = word(return_at);
            let (mut caller_bp, mut caller_origin) = (bp, 0);
            if rule.saves_bp() {
                let saved_at = cfa.wrapping_add_signed(rule.bp_offset());
                if !is_own(saved_at) {
                    break;
                }
                (caller_bp, caller_origin) = (word(saved_at), rule.bp_offset() as i32);
            }
            if address == 0 {
                break;
            }
            let Some(frame) = room.next_back() else {
                break;
            };
            *frame = Frame {
                pc,
                sp,
                bp,
                location,
                origin,
            };
            registers = Registers {
                pc: address - 1,
                sp: cfa,
                bp: caller_bp,
            };
            origin = caller_origin;
        }
        let (old, stored) = (old.len(), most - room.len());
        (at.registers, at.origin, at.old) = (registers, origin, old);
        self.frames.stored(stored);
        self.counts.walked += stored as u64;
        met
    }

    /// Walks over one frame of any kind, which may be stored already. Returns whether the walk goes on.
    #[inline(never)]
    fn next_frame(
        &mut self,
        shared: &SharedWalk<'_>,
        at: &mut Progress,
        is_stored: bool,
        readable: &mut Readable,
        sink: &mut dyn Sink,
    ) -> bool {
        let found = self.lookup.rule(shared, at.registers.pc, &mut self.counts);
        let (rule, place) = match found {
            Ok(Some(found)) => found,
            // No code at this address: the frame further in has led astray, and a guess would be a wrong stack.
            Ok(None) => {
                at.walked.flags |= flags::TRUNCATED;
                return false;
            }
            Err(full) => {
                at.walked.lost = Some(full);
                return false;
            }
        };
        let Registers { pc, sp, bp } = at.registers;
        if !is_stored {
            // A guessed frame has a location of its own kind, which is not that of the program counter.
            let is_guessed = at.origin & GUESSED != 0;
            let location = if is_guessed {
                self.lookup.guessed_location(shared, rule, pc, sink)
            } else {
                self.lookup.location(shared, rule, place, pc, sink)
            };
            let location = location.unwrap_or_else(|reason| {
                at.walked.lost = Some(reason);
                0
            });
            let mut origin = at.origin;
            if rule.kind() == RuleKind::Jit {
                origin |= JIT;
                at.met_jit = true;
            }
            let frame = Frame {
                pc,
                sp,
                bp,
                location,
                origin,
            };
            if is_guessed {
                at.guess = self.frames.fresh_len();
            }
            if !self.frames.push(frame) {
                at.walked.flags |= flags::TRUNCATED;
                return false;
            }
            self.counts.walked += 1;
        }
        let context = &mut self.lookup.context;
        let stepped = match rule.kind() {
            // Its layout depends on registers that only the frames further in tell.
            RuleKind::OtherRegister => {
                let frames = self.frames.fresh();
                step_by_registers(shared.native, context, &at.start, frames, readable)
            }
            _ => step(shared.native, context, rule, at.registers, readable),
        };
        let (caller, origin) = match stepped {
            Step::Caller(caller, origin) => (caller, origin),
            Step::End => return false,
            Step::Stuck => {
                at.walked.flags |= flags::TRUNCATED;
                return false;
            }
        };
        // Frames that do not lie one behind the other cannot be found by their stack pointers in the next walk.
        if caller.sp <= sp {
            at.comparable = false;
        }
        // A signal handler may run on a stack of its own, which ends at this frame.
        if rule.kind() == RuleKind::Signal {
            at.switches += 1;
            readable.switch(&self.own, caller.sp);
            if readable.foreign() {
                at.walked.flags |= flags::FOREIGN_STACK;
                at.comparable = false;
                at.old = 0;
            }
            // Wrong words may form a circle of signal frames.
            if at.switches > MAX_SWITCHES {
                at.walked.flags |= flags::TRUNCATED;
                return false;
            }
        }
        (at.registers, at.origin) = (caller, origin);
        true
    }

    /// Takes over the frames of the last walk from `same` to the one that the walk has reached. `false` if there is no
    /// room.
    fn take_over(&mut self, same: usize, at: &mut Progress) -> bool {
        let taken = &self.frames.last()[same..at.old];
        let guess = taken.iter().position(|frame| frame.origin & GUESSED != 0);
        if let Some(guess) = guess {
            at.guess = self.frames.fresh_len() + (taken.len() - 1 - guess);
        }
        self.counts.reused += taken.len() as u64;
        at.registers = taken[0].registers();
        let has_room = self.frames.push_old(same, at.old);
        at.old = same;
        has_room
    }

    fn finish(&mut self, at: &Progress) -> Walked {
        let Walked {
            unchanged,
            mut flags,
            lost,
        } = at.walked;
        let fresh = self.frames.fresh_len();
        self.counts.reused += unchanged as u64;
        if self.frames.finish(unchanged) {
            flags |= flags::TRUNCATED;
        }
        let len = self.frames.last().len();
        if self.guess >= unchanged {
            self.guess = if at.guess < fresh {
                (unchanged + fresh - 1 - at.guess).min(len)
            } else {
                usize::MAX
            };
        }
        if at.met_jit || self.has_jit {
            let last = self.frames.last();
            self.has_jit = last.iter().any(|frame| frame.origin & JIT != 0);
        }
        if self.guess < len {
            flags |= flags::FRAME_POINTERS;
        }
        self.comparable = at.comparable && flags & flags::TRUNCATED == 0 && lost.is_none();
        Walked {
            unchanged,
            flags,
            lost,
        }
    }

    /// The outermost frame of the last walk that is known to be unchanged, given that the one at `index` is.
    #[inline(always)]
    fn same_callers(
        &mut self,
        shared: &SharedWalk<'_>,
        mut index: usize,
        readable: &mut Readable,
    ) -> usize {
        let last = self.frames.last();
        while index > 0 {
            let caller = last[index - 1];
            if caller.origin & IRREGULAR == 0 {
                let bp_at = caller.sp.wrapping_add_signed(i64::from(caller.origin & !7));
                let same = readable.word(caller.sp - 8) == Some(caller.pc.wrapping_add(1))
                    && (caller.origin & !7 == 0 || readable.word(bp_at) == Some(caller.bp));
                if !same {
                    break;
                }
            } else {
                let callee = last[index].registers();
                let found = self.lookup.rule(shared, callee.pc, &mut self.counts);
                let Ok(Some((rule, _))) = found else {
                    break;
                };
                // A signal frame may lead to another stack, and other registers depend on all frames: the walk decides.
                if matches!(rule.kind(), RuleKind::Signal | RuleKind::OtherRegister) {
                    break;
                }
                let context = &mut self.lookup.context;
                match step(shared.native, context, rule, callee, readable) {
                    Step::Caller(registers, _) if registers == caller.registers() => {}
                    _ => break,
                }
            }
            index -= 1;
        }
        index
    }
}

/// Leaves out frames further in than one with these registers that was found in the same way: known, or guessed. Returns
/// whether there is one, which is then the last.
#[inline(always)]
fn skip_to(frames: &mut std::slice::Iter<'_, Frame>, registers: Registers, origin: i32) -> bool {
    while let Some(frame) = frames.as_slice().last()
        && frame.sp <= registers.sp
    {
        if frame.registers() == registers && (frame.origin ^ origin) & GUESSED == 0 {
            return true;
        }
        frames.next_back();
    }
    false
}

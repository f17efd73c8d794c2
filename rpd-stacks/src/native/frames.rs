//! The frames of a thread's last walk, and the frames of the walk in progress.

use crate::native::registers::Registers;
use crate::region::{Region, Zeroed};

/// Frames that a walk can have.
pub(crate) const MAX_FRAMES: usize = 1 << 16;
/// Frames for which memory is taken from the kernel at once: those of most stacks at first, then more.
const FIRST_PART: usize = 256;
const FURTHER_PART: usize = 1024;

/// The caller's registers did not come from the words next to its stack pointer in the usual way.
pub(super) const IRREGULAR: i32 = 1;
/// The frame was reached by following the frame pointer through code without unwind information.
pub(super) const GUESSED: i32 = 2;
/// The frame is of code in no module.
pub(super) const JIT: i32 = 4;

/// A frame of the native stack.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Frame {
    /// A byte of the instruction being executed: the return address minus one, or the interrupted instruction.
    pub(crate) pc: u64,
    /// Stack pointer when the callee has returned. The frame covers the stack from here to its caller's `sp`.
    pub(crate) sp: u64,
    /// RBP in this frame.
    pub(crate) bp: u64,
    /// Location of `pc`, 0 if it could not be stored.
    pub(crate) location: u32,
    /// Offset from `sp` at which `bp` was read, in bytes, 0 if it was not; the low bits are [`IRREGULAR`], [`GUESSED`] and
    /// [`JIT`].
    pub(super) origin: i32,
}

// SAFETY: integers.
unsafe impl Zeroed for Frame {}

impl Frame {
    #[inline(always)]
    pub(super) fn registers(&self) -> Registers {
        Registers {
            pc: self.pc,
            sp: self.sp,
            bp: self.bp,
        }
    }
}

/// Two walks. Frames are in the order outermost first. A walk reaches them innermost first, so it is stored from the middle of a region
/// downwards; the upper half is for frames that later walks find further in.
pub(super) struct Frames {
    last: Walk,
    /// Index of the outermost frame of the last walk.
    first: usize,
    len: usize,
    fresh: Walk,
    fresh_len: usize,
}

struct Walk {
    frames: Region<Frame>,
    /// Frames below the middle whose memory was requested from the kernel in advance.
    room: usize,
}

impl Walk {
    fn reserve() -> Walk {
        Walk {
            frames: Region::reserve(2 * MAX_FRAMES),
            room: 0,
        }
    }
}

impl Frames {
    /// Reserves room for the walks of a thread.
    pub(super) fn reserve() -> Frames {
        Frames {
            last: Walk::reserve(),
            first: 0,
            len: 0,
            fresh: Walk::reserve(),
            fresh_len: 0,
        }
    }

    /// Whether its memory could be reserved.
    pub(super) fn usable(&self) -> bool {
        !self.last.frames.is_empty() && !self.fresh.frames.is_empty()
    }

    /// The frames of the last walk, outermost first.
    #[inline(always)]
    pub(super) fn last(&self) -> &[Frame] {
        &self.last.frames[self.first..self.first + self.len]
    }

    /// Clears the last walk.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Number of frames of the walk in progress.
    #[inline(always)]
    pub(super) fn fresh_len(&self) -> usize {
        self.fresh_len
    }

    /// The frames of the walk in progress, innermost first.
    pub(super) fn fresh(&self) -> impl Iterator<Item = &Frame> {
        let stored = &self.fresh.frames[MAX_FRAMES - self.fresh_len..MAX_FRAMES];
        stored.iter().rev()
    }

    /// Starts a walk without frames.
    #[inline(always)]
    pub(super) fn begin(&mut self) {
        self.fresh_len = 0;
    }

    /// The outermost `old` frames of the last walk, and memory for further frames of the walk in progress, of which the next
    /// one is stored at the end. It may be empty although [`Frames::push`] has room.
    #[inline(always)]
    pub(super) fn last_and_room(&mut self, old: usize) -> (&[Frame], &mut [Frame]) {
        let last = &self.last.frames[self.first..self.first + old];
        let (room, len) = (self.fresh.room, self.fresh_len);
        let room = &mut self.fresh.frames[MAX_FRAMES - room..MAX_FRAMES - len];
        (last, room)
    }

    /// Counts frames that were stored at the end of the memory that [`Frames::last_and_room`] gave.
    #[inline(always)]
    pub(super) fn stored(&mut self, count: usize) {
        self.fresh_len += count;
    }

    /// Adds the next frame further out; `false` if there is no room.
    pub(super) fn push(&mut self, frame: Frame) -> bool {
        if self.fresh_len == self.fresh.room && !self.grow() {
            return false;
        }
        self.fresh_len += 1;
        self.fresh.frames[MAX_FRAMES - self.fresh_len] = frame;
        true
    }

    /// Adds frames of the last walk; `false` if there is no room.
    pub(super) fn push_old(&mut self, from: usize, to: usize) -> bool {
        let len = self.fresh_len + (to - from);
        if len > MAX_FRAMES {
            return false;
        }
        while len > self.fresh.room && self.grow() {}
        self.fresh.frames[MAX_FRAMES - len..MAX_FRAMES - self.fresh_len]
            .copy_from_slice(&self.last.frames[self.first + from..self.first + to]);
        self.fresh_len = len;
        true
    }

    /// Makes the kernel provide the next part of the memory in one go, which takes less time than a fault for each
    /// page.
    #[cold]
    fn grow(&mut self) -> bool {
        let Walk { frames, room } = &mut self.fresh;
        let larger = match *room {
            0 => FIRST_PART,
            room => (room + FURTHER_PART).min(MAX_FRAMES),
        };
        frames.populate(MAX_FRAMES - larger..MAX_FRAMES - *room);
        std::mem::replace(room, larger) < larger
    }

    /// Ends the walk: it is the outermost `unchanged` frames of the last one and the frames that were added, which are cut
    /// to what there is room for. Returns whether some were cut.
    #[inline(always)]
    pub(super) fn finish(&mut self, unchanged: usize) -> bool {
        let count = self.fresh_len.min(MAX_FRAMES - unchanged);
        let cut = count < self.fresh_len;
        self.len = unchanged + count;
        // Whichever part is shorter is copied to the other.
        if unchanged <= count && !cut && self.push_old(0, unchanged) {
            std::mem::swap(&mut self.last, &mut self.fresh);
            self.first = MAX_FRAMES - self.len;
        } else {
            let to = self.first + unchanged;
            self.last.frames[to..to + count]
                .copy_from_slice(&self.fresh.frames[MAX_FRAMES - self.fresh_len..][..count]);
        }
        cut
    }
}

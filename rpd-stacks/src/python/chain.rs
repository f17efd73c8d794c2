//! The Python frames of the calling thread, read from the interpreter's own structures.

use std::ops::Range;

use super::layout::{Grouping, Layout};
use super::memory::{Memory, Object, plausible};
use super::runtime::STATES;
use crate::region::{Region, Zeroed};

/// Frames that a thread can have; a deeper chain is not read.
pub(super) const FRAMES: usize = 1 << 16;

/// A frame of the interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Address of the code object.
    pub(crate) code: usize,
    /// Byte offset of the instruction, -1 before the first one; in frames from the public interface the line.
    pub(crate) lasti: i64,
}

/// Consecutive Python frames that one activation of the evaluator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// Address of something that the activation keeps on its native stack, 0 if nothing is known.
    pub(crate) anchor: usize,
    /// Number of frames up to and including the outermost of the group.
    pub(crate) end: usize,
}

// SAFETY: integers.
unsafe impl Zeroed for Frame {}
// SAFETY: integers.
unsafe impl Zeroed for Group {}

/// Frames and groups of a thread, innermost first.
pub(crate) struct Chain {
    frames: Region<Frame>,
    groups: Region<Group>,
    frame_count: usize,
    group_count: usize,
    /// Whether a stored frame or group differs from the one that was there before.
    differs: bool,
    is_unchanged: bool,
}

/// The chain could not be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable;

impl Chain {
    /// Reserves the memory of a thread's frames.
    pub(crate) fn reserve() -> Chain {
        Chain {
            frames: Region::reserve(FRAMES),
            groups: Region::reserve(FRAMES),
            frame_count: 0,
            group_count: 0,
            differs: true,
            is_unchanged: false,
        }
    }

    /// Whether its memory could be reserved.
    pub(super) fn usable(&self) -> bool {
        !self.frames.is_empty() && !self.groups.is_empty()
    }

    /// The frames, innermost first.
    #[inline(always)]
    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames[..self.frame_count]
    }

    /// The groups, innermost first.
    #[inline(always)]
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups[..self.group_count]
    }

    /// Whether the last [`Chain::read`] found the frames and groups of the read before, and nothing was forgotten in
    /// between.
    #[inline(always)]
    pub(super) fn is_unchanged(&self) -> bool {
        self.is_unchanged
    }

    /// Removes all frames.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.frame_count = 0;
        self.group_count = 0;
        self.is_unchanged = false;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, code: usize, lasti: i64) -> Result<(), Unreadable> {
        let entry = self.frames.get_mut(self.frame_count).ok_or(Unreadable)?;
        let frame = Frame { code, lasti };
        if *entry != frame {
            *entry = frame;
            self.differs = true;
        }
        self.frame_count += 1;
        Ok(())
    }

    /// Ends the group of the frames pushed last; a group without frames is none.
    #[inline(always)]
    pub(super) fn close(&mut self, anchor: usize) -> Result<(), Unreadable> {
        let begin = self.groups().last().map_or(0, |group| group.end);
        if self.frame_count > begin {
            let entry = self.groups.get_mut(self.group_count).ok_or(Unreadable)?;
            let group = Group {
                anchor,
                end: self.frame_count,
            };
            if *entry != group {
                *entry = group;
                self.differs = true;
            }
            self.group_count += 1;
        }
        Ok(())
    }

    /// Reads the chain of the thread with this state. `first` is called once, after the first pointer was read from the
    /// state; the rest of the chain is read if it returns true.
    #[inline(always)]
    pub(super) fn read<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        state: usize,
        first: impl FnOnce() -> bool,
    ) -> Result<(), Unreadable> {
        let before = self.begin();
        let current = memory.word(state + layout.current).ok_or(Unreadable)?;
        if current == 0 || !first() {
            return Ok(());
        }
        match layout.grouping {
            Grouping::Each | Grouping::EachWithCFrame => {
                self.read_objects(memory, layout, state, current)?
            }
            Grouping::EntryFrame => self.read_entries(memory, layout, state, current)?,
            Grouping::Shim => self.read_shims(memory, layout, current)?,
        }
        self.finish(before);
        Ok(())
    }

    /// Reads the chains of a thread that runs several interpreters, from 3.12 on: that of `state`, which it runs now,
    /// and those of its `others`. Activations of all interpreters share the native stack, on which each group has its
    /// anchor, so that the groups are in call order when their anchors are. Groups of the others whose anchors are not
    /// on `stack` are left out: they wait on a stack of a fiber. `first` is as in [`Chain::read`].
    #[cold]
    pub(super) fn read_several<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        (state, others): (usize, &[usize]),
        stack: &Range<usize>,
        first: impl FnOnce() -> bool,
    ) -> Result<(), Unreadable> {
        let before = self.begin();
        let mut next = [Next::default(); STATES + 1];
        let states = std::iter::once(&state).chain(others);
        for (next, state) in next.iter_mut().zip(states) {
            let current = memory.word(state + layout.current).ok_or(Unreadable)?;
            if current != 0 {
                next.frame = first_of_shims(memory, layout, current)?;
            }
        }
        if !first() {
            return Ok(());
        }
        for next in &mut next {
            next.anchor = anchor_from(memory, layout, next.frame)?;
        }
        loop {
            let waiting = next.iter_mut().enumerate();
            let Some((index, next)) = waiting
                .filter(|(_, next)| next.frame != 0)
                .min_by_key(|(_, next)| next.anchor)
            else {
                break;
            };
            let is_shown = index == 0 || stack.contains(&next.anchor);
            next.frame = if is_shown {
                self.read_group(memory, layout, next.frame)?
            } else {
                after_group(memory, layout, next.frame)?.1
            };
            next.anchor = anchor_from(memory, layout, next.frame)?;
        }
        self.finish(before);
        Ok(())
    }

    /// Prepares for another chain; returns the numbers of frames and groups of the chain before.
    #[inline(always)]
    fn begin(&mut self) -> (usize, usize) {
        let before = (self.frame_count, self.group_count);
        self.clear();
        self.differs = false;
        before
    }

    #[inline(always)]
    fn finish(&mut self, before: (usize, usize)) {
        self.is_unchanged = !self.differs && before == (self.frame_count, self.group_count);
    }

    /// Reads the chain of 3.8 to 3.10: frame objects, each run by an activation of its own.
    #[inline(always)]
    fn read_objects<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        state: usize,
        first: usize,
    ) -> Result<(), Unreadable> {
        // Before 3.10 instructions are counted in bytes.
        let (unit, mut c_frame) = match layout.grouping {
            Grouping::EachWithCFrame => (2, memory.word(state + layout.c_frame).ok_or(Unreadable)?),
            _ => (1, 0),
        };
        // On secondary threads of 3.10 the link of the outermost is not initialised.
        let root = state + layout.root_c_frame;
        let mut frame = first;
        while frame != 0 {
            let object = memory.object(frame).ok_or(Unreadable)?;
            let code = object.word(layout.frame_code).ok_or(Unreadable)?;
            let lasti = object.half(layout.frame_instruction).ok_or(Unreadable)? as i32;
            self.push(code, (i64::from(lasti) * unit).max(-1))?;
            let anchor = if c_frame == root { 0 } else { c_frame };
            self.close(anchor)?;
            if anchor != 0 {
                c_frame = memory
                    .word(c_frame + layout.c_frame_previous)
                    .ok_or(Unreadable)?;
            }
            frame = object.word(layout.frame_previous).ok_or(Unreadable)?;
        }
        Ok(())
    }

    /// Reads the chain of 3.11: frames, the outermost of an activation marked as entry.
    #[inline(always)]
    fn read_entries<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        state: usize,
        c_frame: usize,
    ) -> Result<(), Unreadable> {
        let root = state + layout.root_c_frame;
        let mut c_frame = c_frame;
        let mut frame = memory
            .word(c_frame + layout.c_frame_current)
            .ok_or(Unreadable)?;
        while frame != 0 {
            let object = memory.object(frame).ok_or(Unreadable)?;
            let owner = object.byte(layout.frame_owner).ok_or(Unreadable)?;
            self.push_complete(memory, layout, &object, owner)?;
            let entry = object.byte(layout.frame_is_entry).ok_or(Unreadable)? != 0;
            frame = object.word(layout.frame_previous).ok_or(Unreadable)?;
            if entry {
                let anchor = if c_frame == root { 0 } else { c_frame };
                self.close(anchor)?;
                if anchor != 0 {
                    c_frame = memory
                        .word(c_frame + layout.c_frame_previous)
                        .ok_or(Unreadable)?;
                }
            }
        }
        self.close(0)
    }

    /// Reads the chain of 3.12 and later: frames, and after the outermost of an activation one that is a C local of the
    /// evaluator.
    #[inline(always)]
    fn read_shims<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        current: usize,
    ) -> Result<(), Unreadable> {
        let mut frame = first_of_shims(memory, layout, current)?;
        while frame != 0 {
            frame = self.read_group(memory, layout, frame)?;
        }
        Ok(())
    }

    /// Reads the frames from `frame` to the end of its group. Returns the first frame of the next group, 0 for none.
    #[inline(always)]
    fn read_group<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        mut frame: usize,
    ) -> Result<usize, Unreadable> {
        while frame != 0 {
            let object = memory.object(frame).ok_or(Unreadable)?;
            let previous = || object.word(layout.frame_previous).ok_or(Unreadable);
            match object.byte(layout.frame_owner).ok_or(Unreadable)? {
                OWNED_BY_EVALUATOR => {
                    self.close(frame)?;
                    return previous();
                }
                OWNED_BY_THREAD_STATE => break,
                owner => self.push_complete(memory, layout, &object, owner)?,
            }
            frame = previous()?;
        }
        self.close(0)?;
        Ok(0)
    }

    /// Adds an interpreter frame unless it is still being set up: then it has no line, and the interpreter itself does
    /// not show it.
    #[inline(always)]
    fn push_complete<M: Memory>(
        &mut self,
        memory: &M,
        layout: &Layout,
        frame: &Object<'_, M>,
        owner: u8,
    ) -> Result<(), Unreadable> {
        // The lowest bits are set if the frame owns the reference.
        let code = frame.word(layout.frame_code).ok_or(Unreadable)? & !3;
        let object = memory.object(code).ok_or(Unreadable)?;
        let instruction = frame.word(layout.frame_instruction).ok_or(Unreadable)?;
        let instructions = if layout.code_copies == 0 {
            code + layout.code_instructions
        } else {
            instructions_of_copy(memory, layout, frame, &object)?
        };
        let lasti = instruction.wrapping_sub(instructions) as isize;
        let first_traceable = object.half(layout.code_first_traceable).ok_or(Unreadable)?;
        if lasti < 2 * first_traceable as isize && owner != OWNED_BY_GENERATOR {
            return Ok(());
        }
        self.push(code, (lasti as i64).max(-1))
    }
}

/// Where the chain of one of several states goes on.
#[derive(Clone, Copy, Default)]
struct Next {
    /// The next frame, 0 at the end.
    frame: usize,
    /// The anchor of its group.
    anchor: usize,
}

/// The first frame of the chain of 3.12 and later.
#[inline(always)]
fn first_of_shims<M: Memory>(
    memory: &M,
    layout: &Layout,
    current: usize,
) -> Result<usize, Unreadable> {
    // Before 3.13 a thread's state has its first frame in a C frame.
    if layout.root_c_frame == 0 {
        Ok(current)
    } else {
        let first = memory.word(current + layout.c_frame_current);
        first.ok_or(Unreadable)
    }
}

/// The anchor of the group that `frame` is in, the largest address if it has none.
fn anchor_from<M: Memory>(memory: &M, layout: &Layout, frame: usize) -> Result<usize, Unreadable> {
    Ok(after_group(memory, layout, frame)?.0)
}

/// The anchor of the group that `frame` is in, the largest address if it has none, and the first frame of the next group,
/// 0 for none.
fn after_group<M: Memory>(
    memory: &M,
    layout: &Layout,
    mut frame: usize,
) -> Result<(usize, usize), Unreadable> {
    while frame != 0 {
        let object = memory.object(frame).ok_or(Unreadable)?;
        let previous = object.word(layout.frame_previous).ok_or(Unreadable)?;
        match object.byte(layout.frame_owner).ok_or(Unreadable)? {
            OWNED_BY_EVALUATOR => return Ok((frame, previous)),
            OWNED_BY_THREAD_STATE => break,
            _ => frame = previous,
        }
    }
    Ok((usize::MAX, 0))
}

const OWNED_BY_GENERATOR: u8 = 1;
const OWNED_BY_EVALUATOR: u8 = 3;
const OWNED_BY_THREAD_STATE: u8 = 4;

/// Address of the instructions that the frame runs in free-threaded 3.14, where each thread runs its own copy, an
/// array's entry.
fn instructions_of_copy<M: Memory>(
    memory: &M,
    layout: &Layout,
    frame: &Object<'_, M>,
    code: &Object<'_, M>,
) -> Result<usize, Unreadable> {
    let index = frame.half(layout.frame_code_copy).ok_or(Unreadable)? as usize;
    let copies = code.word(layout.code_copies).ok_or(Unreadable)?;
    if !plausible(copies) || index >= memory.word(copies).ok_or(Unreadable)? {
        return Err(Unreadable);
    }
    memory.word(copies + 8 + 8 * index).ok_or(Unreadable)
}

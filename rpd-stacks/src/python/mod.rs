//! Python frames of the calling thread, read without the GIL.
//!
//! While a thread is in a native call its Python frames stand still: only the thread itself pushes, pops or advances
//! them. Each of them holds its code object, and that its names and its line table. So all of this can be read, though
//! not changed, by the thread whether it holds the GIL or not.
//!
//! Layers, each uses only those above it:
//!
//! - `memory`: loads;
//! - [`line_table`]: instructions to lines, after the run;
//! - `layout`: where the fields are, by version;
//! - `trampoline`: the stubs that call the evaluator for `-X perf`;
//! - `runtime`: the interpreter that was found;
//! - `chain`: the frames of a thread;
//! - `freed`: whether code objects were freed;
//! - `code`: fields of code objects;
//! - `public_api`: frames of interpreters whose structures are not known.

mod chain;
mod code;
mod freed;
mod layout;
pub mod line_table;
mod memory;
mod public_api;
mod runtime;
mod trampoline;

use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU8, Ordering};

use crate::facts::{LocationKind, Sink};
use crate::interner::{Interner, NoNumber};
use crate::native::ModuleObserver;
use crate::native::objects::Object;
use crate::native::rules::NO_MODULE;
use crate::region::{Region, Zeroed};
use crate::tree::Tree;
use chain::{Chain, Unreadable};
pub(crate) use chain::{Frame, Group};
use code::{Content, Identities, Scratch};
use layout::{Grouping, Layout};
use memory::{Checked, Direct, Memory};
pub(crate) use runtime::Runtime;
use runtime::{Thread, Trust};

/// Modules that can be looked at.
const MODULES: usize = NO_MODULE as usize;
/// Distinct code objects of a process.
const CODES: usize = 1 << 18;
/// Code objects whose numbers a thread caches.
const CACHE: usize = 4096;
/// Frames of the first stack that are checked before the layout is confirmed.
const PROOF: usize = 256;

/// State shared by all threads.
pub(crate) struct Python {
    runtime: AtomicPtr<Runtime>,
    /// Modules that have been looked at, by index.
    examined: Region<AtomicU8>,
    codes: Interner,
}

/// State of the process's interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpreter {
    /// No interpreter has been seen.
    None,
    /// Frames are read. The version is that of `PY_VERSION_HEX`.
    Read(u32),
    /// The interpreter's structures are not known, so its frames are read through its public interface by threads that
    /// hold the GIL, and not by others.
    Unknown(u32),
    /// The interpreter's structures differ from those of its version, so its frames are not read.
    Refused(u32),
}

/// State of one thread between captures.
pub(crate) struct ThreadPython {
    chain: Chain,
    /// Kind found for each frame, outermost first.
    found: Region<Found>,
    found_count: usize,
    /// Number of code objects that had been freed at the last capture, if the interpreter counts them.
    freed: Option<u64>,
    cache: Region<Cached>,
    scratch: Scratch,
}

#[derive(Clone, Copy)]
struct Found {
    frame: Frame,
    identity: u64,
    location: u32,
}

#[derive(Clone, Copy)]
struct Cached {
    code: usize,
    identity: u64,
    /// Number of code objects that had been freed when the entry was last confirmed.
    freed: u64,
    id: u32,
}

// SAFETY: integers.
unsafe impl Zeroed for Found {}
// SAFETY: integers.
unsafe impl Zeroed for Cached {}

/// Result of reading the frames of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The thread runs no Python.
    None,
    /// The frames were read: they are in [`ThreadPython::frames`].
    Frames,
    /// The thread runs Python, but its frames could not be read.
    Unreadable,
}

/// Result of finding the locations of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Located {
    /// A code object could not be read, and there are no frames.
    Unreadable,
    /// The locations were found: they are in [`ThreadPython::locations`], and differ from those of the capture before.
    Changed,
    /// The locations are in [`ThreadPython::locations`]; groups and locations are those of the capture before.
    Unchanged,
}

impl Python {
    /// Reserves the tables of the process.
    pub(crate) fn reserve() -> Python {
        Python {
            runtime: AtomicPtr::new(null_mut()),
            examined: Region::reserve(MODULES),
            codes: Interner::reserve(CODES),
        }
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        self.codes.usable() && !self.examined.is_empty()
    }

    /// State of the interpreter.
    pub(crate) fn interpreter(&self) -> Interpreter {
        match self.runtime() {
            None => Interpreter::None,
            Some(runtime) if runtime.layout.is_none() => Interpreter::Unknown(runtime.version),
            Some(runtime) => match runtime.trust() {
                Trust::Refused => Interpreter::Refused(runtime.version),
                Trust::Proven | Trust::Unproven => Interpreter::Read(runtime.version),
            },
        }
    }

    /// Removes all code objects: the ids of a forked child start again.
    pub(crate) fn clear(&self) {
        self.codes.clear();
    }

    #[inline(always)]
    fn runtime(&self) -> Option<&Runtime> {
        // SAFETY: what was stored is never freed.
        unsafe { self.runtime.load(Ordering::Acquire).as_ref() }
    }

    /// Rule by which groups of the interpreter's frames are matched with native frames.
    #[inline(always)]
    pub(crate) fn placing(&self) -> Placing<'_> {
        let runtime = self.runtime();
        // With several interpreters it is not known to which a frame belongs.
        let has_others =
            |runtime: Option<&Runtime>| runtime.is_some_and(Runtime::has_sub_interpreters);
        let grouping = runtime.and_then(|runtime| Some(runtime.layout.as_ref()?.grouping));
        let rule = match grouping {
            Some(Grouping::Each) if has_others(runtime) => PlacingRule::ExactCount,
            Some(Grouping::Each) => PlacingRule::Count,
            Some(Grouping::EachWithCFrame | Grouping::EntryFrame) if has_others(runtime) => {
                PlacingRule::AnchorsAndCount
            }
            _ => PlacingRule::Anchors,
        };
        Placing { rule, runtime }
    }
}

/// Rules by which groups of Python frames are matched with native frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum PlacingRule {
    /// Groups are matched by their anchors.
    #[default]
    Anchors,
    /// Groups are matched by their anchors, and there must be as many groups as activations of the evaluator.
    AnchorsAndCount,
    /// Groups are matched by order: the first group belongs to the first activation of the evaluator, and so on.
    Count,
    /// Groups are matched by order, and there must be as many groups as activations.
    ExactCount,
}

/// A rule, and the interpreter, which tells activations of the evaluator among native frames.
#[derive(Clone, Copy)]
pub(crate) struct Placing<'a> {
    pub(crate) rule: PlacingRule,
    runtime: Option<&'a Runtime>,
}

impl Placing<'_> {
    /// Whether a native frame is an activation of the evaluator, by the range of the evaluator's symbol.
    #[inline(always)]
    pub(crate) fn is_activation(&self, pc: u64) -> bool {
        self.runtime
            .is_some_and(|runtime| runtime.in_evaluator(pc as usize))
    }
}

impl ModuleObserver for Python {
    fn original_of(&self, pc: u64) -> Option<(u32, u64)> {
        // Where Python frames are not read, only the addresses of the stubs tell Python functions apart.
        let runtime = self
            .runtime()
            .filter(|runtime| runtime.layout.is_some() && runtime.trust() != Trust::Refused)?;
        let original = runtime.trampoline.as_ref()?.original_of(pc)?;
        Some((runtime.module, original))
    }

    /// A module may contain an interpreter.
    unsafe fn module_met(&self, module: u32, object: &Object) {
        let Some(examined) = self.examined.get(module as usize) else {
            return;
        };
        if examined.swap(1, Ordering::Relaxed) != 0 {
            return;
        }
        let (bias, dynamic) = (object.bias as usize, object.dynamic() as usize);
        // SAFETY: passed on to our caller.
        if let Some(found) = unsafe { Runtime::find(module, bias, dynamic) } {
            // The one before is not freed, since another thread may be reading it: there are few in a process.
            self.runtime
                .store(Box::into_raw(Box::new(found)), Ordering::Release);
        }
    }
}

impl ThreadPython {
    /// Reserves the buffers of a thread.
    pub(crate) fn reserve() -> ThreadPython {
        ThreadPython {
            chain: Chain::reserve(),
            found: Region::reserve(chain::FRAMES),
            found_count: 0,
            freed: None,
            cache: Region::reserve(CACHE),
            scratch: Scratch::reserve(),
        }
    }

    /// The frames that were read last, innermost first.
    #[inline(always)]
    pub(crate) fn frames(&self) -> &[Frame] {
        self.chain.frames()
    }

    /// The groups of the frames that were read last, innermost first.
    #[inline(always)]
    pub(crate) fn groups(&self) -> &[Group] {
        self.chain.groups()
    }

    /// The locations of some frames (0 is the innermost), outermost first, after [`ThreadPython::locate`].
    #[inline(always)]
    pub(crate) fn locations(&self, frames: Range<usize>) -> impl ExactSizeIterator<Item = u32> {
        let count = self.frames().len();
        let found = &self.found[count - frames.end..count - frames.start];
        found.iter().map(|found| found.location)
    }

    /// Empties the caches: ids start again.
    pub(crate) fn clear(&mut self) {
        self.found_count = 0;
        self.cache.discard();
        self.chain.clear();
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        self.chain.usable()
            && !self.found.is_empty()
            && !self.cache.is_empty()
            && self.scratch.usable()
    }

    /// Reads the frames of the calling thread, whose native stack has been walked and has the addresses `stack`.
    /// `is_loaded` returns of the interpreter's module whether it still is.
    #[inline]
    pub(crate) fn read(
        &mut self,
        python: &Python,
        stack: Range<usize>,
        is_loaded: impl FnOnce(u32) -> bool,
    ) -> Outcome {
        let outcome = self.try_to_read(python, stack, is_loaded);
        if outcome != Outcome::Frames {
            self.chain.clear();
        }
        outcome
    }

    #[inline(always)]
    fn try_to_read(
        &mut self,
        python: &Python,
        stack: Range<usize>,
        is_loaded: impl FnOnce(u32) -> bool,
    ) -> Outcome {
        let Some(runtime) = python.runtime() else {
            return Outcome::None;
        };
        // The library with the interpreter may be unloaded; its memory is not read then.
        if !is_loaded(runtime.module) {
            return Outcome::None;
        }
        // Without a layout only the public interface is left, for threads that may call it.
        let Some(layout) = &runtime.layout else {
            self.chain.clear();
            return public_api::read(runtime, &mut self.chain);
        };
        if runtime.trust() == Trust::Refused {
            return Outcome::Unreadable;
        }
        let Thread::State(state) = runtime.thread(layout) else {
            return Outcome::None;
        };
        // A build may differ from the headers of its version. The first stack is read with checks before any is
        // trusted.
        if runtime.trust() == Trust::Unproven {
            match self.prove(runtime, layout, state, &stack) {
                Trust::Proven => {}
                Trust::Unproven => return Outcome::None,
                Trust::Refused => return Outcome::Unreadable,
            }
        }
        // SAFETY: the layout is that of this interpreter, and the frames of this thread stand still.
        let memory = unsafe { Direct::new() };
        match self.read_chain(&memory, runtime, layout, state, &stack) {
            Ok(()) if self.chain.frames().is_empty() => Outcome::None,
            Ok(()) => Outcome::Frames,
            Err(_) => Outcome::Unreadable,
        }
    }

    /// Reads the frames of all interpreters that the thread runs. `state` is its state in the one that it runs now.
    #[inline(always)]
    fn read_chain(
        &mut self,
        memory: &impl Memory,
        runtime: &Runtime,
        layout: &Layout,
        state: usize,
        stack: &Range<usize>,
    ) -> Result<(), Unreadable> {
        let still = || runtime.still(layout, state);
        let others = runtime.other_states(layout, state).ok_or(Unreadable)?;
        match others.addresses() {
            [] => self.chain.read(memory, layout, state, still),
            others => {
                let states = (state, others);
                let chain = &mut self.chain;
                chain.read_several(memory, layout, states, stack, still)
            }
        }
    }

    /// Verifies the layout: reads the frames with reads that cannot fault, and checks that their code objects, texts
    /// and tables are such. A thread without frames proves nothing.
    #[cold]
    fn prove(
        &mut self,
        runtime: &Runtime,
        layout: &Layout,
        state: usize,
        stack: &Range<usize>,
    ) -> Trust {
        // The read that follows finds what this one found, and not what was located before.
        self.found_count = 0;
        let read = self.read_chain(&Checked, runtime, layout, state, stack);
        let trust = match read {
            Ok(()) if self.chain.frames().is_empty() => return Trust::Unproven,
            Ok(())
                if self
                    .chain
                    .frames()
                    .iter()
                    .take(PROOF)
                    .all(|frame| is_sane(runtime, layout, frame)) =>
            {
                Trust::Proven
            }
            _ => Trust::Refused,
        };
        if trust == Trust::Proven {
            freed::count(layout, runtime.code_type);
        }
        runtime.set_trust(trust);
        runtime.trust()
    }

    /// Finds the locations of the frames that were read.
    #[inline]
    pub(crate) fn locate(
        &mut self,
        python: &Python,
        tree: &Tree,
        sink: &mut dyn Sink,
    ) -> Result<Located, NoNumber> {
        let located = self.try_to_locate(python, tree, sink);
        if !matches!(located, Ok(Located::Changed | Located::Unchanged)) {
            self.chain.clear();
            self.found_count = 0;
        }
        located
    }

    #[inline(always)]
    fn try_to_locate(
        &mut self,
        python: &Python,
        tree: &Tree,
        sink: &mut dyn Sink,
    ) -> Result<Located, NoNumber> {
        let count = self.chain.frames().len();
        let Some(runtime) = python.runtime().filter(|_| count > 0) else {
            self.found_count = 0;
            return Ok(Located::Changed);
        };
        let Some(layout) = &runtime.layout else {
            return self.locate_by_public_api(python, runtime, tree, sink);
        };
        // SAFETY: the frames were read with this layout, and hold their code objects.
        let memory = unsafe { Direct::new() };
        let mut identities = Identities::new();
        // Most captures find the frames of the last one; each test here saves reading the code objects.
        let is_unchanged = self.chain.is_unchanged() && self.found_count == count;
        let mut located = if is_unchanged {
            Located::Unchanged
        } else {
            Located::Changed
        };
        let known = self.found_count.min(count);
        // Until all frames are done nothing counts as known, as an error below leaves the rest as it was.
        self.found_count = 0;
        let freed = freed::freed(runtime.code_type);
        let none_was_freed = freed.is_some() && freed == self.freed;
        self.freed = freed;
        let outermost_first = self.chain.frames().iter().rev();
        for (index, (frame, found)) in outermost_first.zip(self.found.iter_mut()).enumerate() {
            let is_same_frame = is_unchanged || index < known && found.frame == *frame;
            if is_same_frame && none_was_freed {
                continue;
            }
            let confirmed = freed.and_then(|freed| confirmed(&self.cache, frame.code, freed));
            let (code, identity) = match confirmed {
                Some(entry) => (entry.id, entry.identity),
                None => {
                    let Some(identity) = identities.of(&memory, layout, frame.code) else {
                        return Ok(Located::Unreadable);
                    };
                    // Another object may have the address of a freed one. Equal content is the same for all that is
                    // shown.
                    if is_same_frame && found.identity == identity {
                        continue;
                    }
                    let seen = StackedCode {
                        code: frame.code,
                        identity,
                        freed: freed.unwrap_or(0),
                    };
                    let id = match cached(&mut self.cache, &seen) {
                        Some(id) => id,
                        None => {
                            let own = (&mut self.cache[..], &mut self.scratch);
                            match number(python, runtime, layout, own, &seen, sink) {
                                Some(id) => id?,
                                None => return Ok(Located::Unreadable),
                            }
                        }
                    };
                    (id, identity)
                }
            };
            located = Located::Changed;
            let location = tree.location(LocationKind::Python, code, frame.lasti as u64, sink)?;
            *found = Found {
                frame: *frame,
                identity,
                location,
            };
        }
        self.found_count = count;
        Ok(located)
    }

    fn locate_by_public_api(
        &mut self,
        python: &Python,
        runtime: &Runtime,
        tree: &Tree,
        sink: &mut dyn Sink,
    ) -> Result<Located, NoNumber> {
        let count = self.chain.frames().len();
        for index in 0..count {
            let frame = self.chain.frames()[count - 1 - index];
            let number = |content: Content<'_>| {
                python
                    .codes
                    .number(content.key(0), |id| sink.code(&content.fact(id, 0)))
            };
            let Some(code) = public_api::with_content(runtime, frame.code, number) else {
                return Ok(Located::Unreadable);
            };
            let code = code?;
            let location = tree.location(LocationKind::Python, code, frame.lasti as u64, sink)?;
            self.found[index] = Found {
                frame,
                identity: 0,
                location,
            };
        }
        self.found_count = 0;
        Ok(Located::Changed)
    }
}

/// A code object on the thread's stack.
struct StackedCode {
    code: usize,
    identity: u64,
    /// Code objects that had been freed, 0 if they are not counted.
    freed: u64,
}

/// The entry of a code object, if none was freed since it was last confirmed.
#[inline(always)]
fn confirmed(cache: &[Cached], code: usize, freed: u64) -> Option<&Cached> {
    let set = cache.get(set_of(code)..set_of(code) + WAYS)?;
    set.iter()
        .find(|entry| entry.code == code && entry.freed == freed)
}

/// The number of a code object, if it is in the thread's cache, where it is confirmed.
#[inline(always)]
fn cached(cache: &mut [Cached], seen: &StackedCode) -> Option<u32> {
    let set = cache.get_mut(set_of(seen.code)..set_of(seen.code) + WAYS)?;
    let mut entries = set.iter_mut();
    let entry = entries.find(|one| one.code == seen.code && one.identity == seen.identity)?;
    entry.freed = seen.freed;
    Some(entry.id)
}

/// The number of a code object that is not in the thread's cache; `None` if it cannot be read.
#[cold]
fn number(
    python: &Python,
    runtime: &Runtime,
    layout: &Layout,
    (cache, scratch): (&mut [Cached], &mut Scratch),
    seen: &StackedCode,
    sink: &mut dyn Sink,
) -> Option<Result<u32, NoNumber>> {
    // SAFETY: as in `locate`.
    let memory = unsafe { Direct::new() };
    // SAFETY: a frame of the calling thread holds the code object.
    let content = unsafe { Content::read(&memory, runtime, layout, seen.code, scratch)? };
    let version = runtime.version;
    let number = python.codes.number(content.key(version), |id| {
        sink.code(&content.fact(id, version))
    });
    let Ok(id) = number else {
        return Some(number);
    };
    if let Some(set) = cache.get_mut(set_of(seen.code)..set_of(seen.code) + WAYS) {
        let place = set
            .iter()
            .position(|entry| entry.code == seen.code || entry.code == 0);
        set[place.unwrap_or(seen.identity as usize % WAYS)] = Cached {
            code: seen.code,
            identity: seen.identity,
            freed: seen.freed,
            id,
        };
    }
    Some(Ok(id))
}

/// Number of entries of the cache that one code object can be in.
const WAYS: usize = 4;

#[inline(always)]
fn set_of(code: usize) -> usize {
    let mixed = (code >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 40) % (CACHE / WAYS) * WAYS
}

/// Whether the parts of a frame are a code object and an instruction of it.
fn is_sane(runtime: &Runtime, layout: &Layout, frame: &Frame) -> bool {
    let memory = &Checked;
    let is = |object: Option<usize>, kind: usize| {
        object.is_some_and(|object| {
            memory::plausible(object) && memory.word(object + layout.object_type) == Some(kind)
        })
    };
    let part = |offset: usize| memory.word(frame.code + offset);
    let text = |offset: usize| {
        is(part(offset), runtime.text_type)
            && part(offset)
                .and_then(|text| memory.word(text + layout.text_length))
                .is_some_and(|length| length < 1 << 24)
    };
    let lines = |line: Option<u32>| line.is_some_and(|line| line < 1 << 28);
    is(Some(frame.code), runtime.code_type)
        && text(layout.code_file)
        && text(layout.code_name)
        && (layout.code_qualname == 0 || text(layout.code_qualname))
        && is(part(layout.code_line_table), runtime.bytes_type)
        && lines(memory.half(frame.code + layout.code_first_line))
        && (-1..1 << 28).contains(&frame.lasti)
}

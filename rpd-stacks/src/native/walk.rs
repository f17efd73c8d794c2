//! A thread's walk over its stack.
//!
//! A walk is a function of the registers that it starts with and of the words of the stack that it reads. The thread
//! keeps the frames of its last walk. When the new walk reaches a frame with the same registers, and the words that led
//! from there to the callers have not changed, the callers are the same; this is exact, and costs two loads per frame.

use crate::facts::{LocationKind, Sink};
use crate::flags;
use crate::interner::NoNumber;
use crate::native::cfi::{self, Context, Memory, UCONTEXT_RBP, UCONTEXT_RIP, UCONTEXT_RSP};
use crate::native::memory::{OwnStack, Readable, is_readable};
use crate::native::objects::Object;
use crate::native::registers::Registers;
use crate::native::rules::{Kind, NO_MODULE, Place, Rule, SavedBp};
use crate::native::{Native, PAGE, maps};
use crate::python::Python;
use crate::region::{Region, Zeroed};
use crate::tree::Tree;

/// Frames that a walk can have.
pub(crate) const MAX_FRAMES: usize = 1 << 16;
/// Signal frames that one walk may cross.
const MAX_SWITCHES: u32 = 64;
/// Captures after which an address outside all code is looked up again.
const NOT_CODE_FOR: u64 = 256;

/// The caller's registers did not come from the words next to its stack pointer in the usual way.
const IRREGULAR: i32 = 1;
/// The frame was reached by following the frame pointer through code without unwind information.
const GUESSED: i32 = 2;

/// A native frame.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Frame {
    /// A byte of the instruction being executed: the return address minus one, or the interrupted instruction.
    pub(crate) pc: u64,
    /// Stack pointer when the callee has returned. The frame covers the stack from here to its caller's `sp`.
    pub(crate) sp: u64,
    /// RBP in this frame.
    pub(crate) bp: u64,
    /// The location of `pc`, 0 if it could not be stored.
    pub(crate) location: u32,
    /// Where `bp` was read, in bytes from `sp`, 0 if nowhere; the low bits are [`IRREGULAR`] and [`GUESSED`].
    origin: i32,
}

// SAFETY: integers.
unsafe impl Zeroed for Frame {}

impl Frame {
    #[inline(always)]
    fn registers(&self) -> Registers {
        Registers {
            pc: self.pc,
            sp: self.sp,
            bp: self.bp,
        }
    }
}

/// How often things happened on a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Captures.
    pub captures: u64,
    /// Frames that were walked to.
    pub walked: u64,
    /// Frames that were taken over from the last walk.
    pub reused: u64,
    /// Program counters whose rule was not in the table.
    pub misses: u64,
    /// Rules that found no room in the table and have to be made at every walk.
    pub uncached: u64,
    /// Captures without a stack because a table was full or a fact could not be stored.
    pub lost: u64,
}

/// What a walk was like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walked {
    /// How many outermost frames are those of the last walk, with the same registers and locations.
    pub(crate) unchanged: usize,
    /// Flags of the capture.
    pub(crate) flags: u32,
    /// Why some frame has no location.
    pub(crate) lost: Option<NoNumber>,
}

/// A thread's walks.
pub(crate) struct Walker {
    /// Frames of the last walk, outermost first.
    frames: Region<Frame>,
    len: usize,
    /// Frames of the walk in progress, innermost first.
    fresh: Region<Frame>,
    /// Whether `frames` can be compared with.
    comparable: bool,
    /// Index of the outermost guessed frame.
    guess: usize,
    generation: u32,
    own: OwnStack,
    context: Box<Context>,
    buffer: Region<u8>,
    /// Executable mappings outside all modules.
    code: [(u64, u64); 8],
    next_code: usize,
    /// Pages without code, and the capture until which that is believed.
    not_code: [(u64, u64); 4],
    pub(crate) counts: Counts,
}

/// Where a step leads.
enum Step {
    Caller(Registers, i32),
    /// There is no caller.
    End,
    /// The caller cannot be found.
    Stuck,
}

/// What walks use besides the thread's own.
pub(crate) struct Shared<'a> {
    pub(crate) native: &'a Native,
    pub(crate) tree: &'a Tree,
    pub(crate) session: u32,
    /// Told of each module that is met, unless Python frames are not wanted.
    pub(crate) python: Option<&'a Python>,
}

impl Walker {
    /// Reserves the buffers.
    pub(crate) fn reserve() -> Walker {
        Walker {
            frames: Region::reserve(MAX_FRAMES),
            len: 0,
            fresh: Region::reserve(MAX_FRAMES),
            comparable: false,
            guess: usize::MAX,
            generation: 0,
            own: OwnStack::default(),
            context: Box::new(Context::new_in()),
            buffer: Region::reserve(1 << 16),
            code: [(0, 0); 8],
            next_code: 0,
            not_code: [(0, 0); 4],
            counts: Counts::default(),
        }
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        !self.frames.is_empty() && !self.fresh.is_empty() && !self.buffer.is_empty()
    }

    /// The frames of the last walk, outermost first.
    #[inline(always)]
    pub(crate) fn frames(&self) -> &[Frame] {
        &self.frames[..self.len]
    }

    /// Forgets the last walk.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
        self.comparable = false;
        self.guess = usize::MAX;
    }

    /// Walks from a frame outwards.
    pub(crate) fn walk(
        &mut self,
        shared: &Shared<'_>,
        start: Registers,
        sink: &mut dyn Sink,
    ) -> Walked {
        let native = shared.native;
        self.counts.captures += 1;
        let generation = native.changes.poll(|| native.modules.suspect_all());
        if generation != self.generation {
            self.generation = generation;
            self.comparable = false;
        }
        if self.own == OwnStack::default() {
            self.own = OwnStack::of_calling_thread(start.sp);
        }
        let mut readable = Readable::new(&self.own, start.sp);
        let mut comparable = !readable.foreign();
        let mut flags = if readable.foreign() {
            flags::FOREIGN_STACK
        } else {
            0
        };
        // The frames from here inwards are not candidates any more.
        let mut old = if self.comparable && comparable {
            self.len
        } else {
            0
        };
        let mut registers = start;
        let mut origin = IRREGULAR;
        let (mut fresh, mut switches, mut lost) = (0, 0, None);
        let mut guess = usize::MAX;
        let mut unchanged = 0;
        loop {
            while old > 0 && self.frames[old - 1].sp < registers.sp {
                old -= 1;
            }
            let mut reused = false;
            if old > 0 && self.frames[old - 1].registers() == registers {
                let same = self.same_callers(shared, old - 1, &mut readable);
                if same == 0 {
                    unchanged = old;
                    break;
                }
                // Its outermost frame has another caller now: the walk goes on from that frame.
                if fresh + (old - same) > MAX_FRAMES {
                    flags |= flags::TRUNCATED;
                    break;
                }
                for index in (same..old).rev() {
                    let frame = self.frames[index];
                    if frame.origin & GUESSED != 0 {
                        guess = fresh;
                    }
                    self.fresh[fresh] = frame;
                    fresh += 1;
                }
                self.counts.reused += (old - same) as u64;
                registers = self.frames[same].registers();
                old = same;
                reused = true;
            }
            let (rule, place) = match self.rule(shared, registers.pc) {
                Ok(Some(found)) => found,
                Ok(None) => {
                    flags |= flags::TRUNCATED;
                    break;
                }
                Err(full) => {
                    lost = Some(full);
                    break;
                }
            };
            if !reused {
                let location = match self.location(shared, rule, place, registers.pc, sink) {
                    Ok(location) => location,
                    Err(reason) => {
                        lost = Some(reason);
                        0
                    }
                };
                if fresh == MAX_FRAMES {
                    flags |= flags::TRUNCATED;
                    break;
                }
                if origin & GUESSED != 0 {
                    guess = fresh;
                }
                let Registers { pc, sp, bp } = registers;
                self.fresh[fresh] = Frame {
                    pc,
                    sp,
                    bp,
                    location,
                    origin,
                };
                fresh += 1;
                self.counts.walked += 1;
            }
            match self.step(shared, rule, registers, &mut readable) {
                Step::Caller(caller, from) => {
                    if caller.sp <= registers.sp {
                        comparable = false;
                    }
                    if rule.kind() == Kind::Signal {
                        switches += 1;
                        readable.switch(&self.own, caller.sp);
                        if readable.foreign() {
                            flags |= flags::FOREIGN_STACK;
                            comparable = false;
                            old = 0;
                        }
                        if switches > MAX_SWITCHES {
                            flags |= flags::TRUNCATED;
                            break;
                        }
                    }
                    (registers, origin) = (caller, from);
                }
                Step::End => break,
                Step::Stuck => {
                    flags |= flags::TRUNCATED;
                    break;
                }
            }
        }
        if unchanged + fresh > MAX_FRAMES {
            fresh = MAX_FRAMES - unchanged;
            flags |= flags::TRUNCATED;
        }
        self.counts.reused += unchanged as u64;
        self.len = unchanged + fresh;
        for (to, from) in self.frames[unchanged..self.len]
            .iter_mut()
            .zip(self.fresh[..fresh].iter().rev())
        {
            *to = *from;
        }
        if self.guess >= unchanged {
            self.guess = if guess < fresh {
                self.len - 1 - guess
            } else {
                usize::MAX
            };
        }
        if self.guess < self.len {
            flags |= flags::FRAME_POINTERS;
        }
        self.comparable = comparable && flags & flags::TRUNCATED == 0 && lost.is_none();
        Walked {
            unchanged,
            flags,
            lost,
        }
    }

    /// The outermost old frame that is known to be unchanged, given that the one at `index` is.
    #[inline(always)]
    fn same_callers(
        &mut self,
        shared: &Shared<'_>,
        mut index: usize,
        readable: &mut Readable,
    ) -> usize {
        while index > 0 {
            let caller = self.frames[index - 1];
            if caller.origin & IRREGULAR == 0 {
                let bp_at = caller.sp.wrapping_add_signed(i64::from(caller.origin & !7));
                let same = readable.word(caller.sp - 8) == Some(caller.pc.wrapping_add(1))
                    && (caller.origin & !7 == 0 || readable.word(bp_at) == Some(caller.bp));
                if !same {
                    break;
                }
            } else {
                let callee = self.frames[index].registers();
                let Ok(Some((rule, _))) = self.rule(shared, callee.pc) else {
                    break;
                };
                // A signal frame may lead to another stack: the walk decides.
                if rule.kind() == Kind::Signal {
                    break;
                }
                match self.step(shared, rule, callee, readable) {
                    Step::Caller(registers, _) if registers == caller.registers() => {}
                    _ => break,
                }
            }
            index -= 1;
        }
        index
    }

    /// From a frame to its caller.
    #[inline(always)]
    fn step(
        &mut self,
        shared: &Shared<'_>,
        rule: Rule,
        at: Registers,
        readable: &mut Readable,
    ) -> Step {
        if rule.is_frame() {
            step_by(rule, at, readable)
        } else {
            self.other_step(shared, rule, at, readable)
        }
    }

    #[cold]
    fn other_step(
        &mut self,
        shared: &Shared<'_>,
        rule: Rule,
        at: Registers,
        readable: &mut Readable,
    ) -> Step {
        if rule.kind() == Kind::End {
            return Step::End;
        }
        if rule.kind() == Kind::Signal {
            let mut word = |offset| readable.word(at.sp.wrapping_add(offset));
            return match (word(UCONTEXT_RIP), word(UCONTEXT_RSP), word(UCONTEXT_RBP)) {
                (Some(pc), Some(sp), Some(bp)) => Step::Caller(Registers { pc, sp, bp }, IRREGULAR),
                _ => Step::Stuck,
            };
        }
        if rule.kind() == Kind::Jit
            && let Some(entry) = shared.native.registered_entry(at.pc)
            && is_readable(entry)
        {
            // SAFETY: libgcc returned an entry that covers the address; whoever registered it keeps it while the code
            // runs, and it runs on this stack.
            let registered =
                unsafe { cfi::rule_from_entry(&mut self.context, entry, at.pc, NO_MODULE) };
            return match registered.map(|registered| (registered, registered.kind())) {
                Some((registered, Kind::Frame)) => match step_by(registered, at, readable) {
                    Step::Caller(caller, origin) => Step::Caller(caller, origin | IRREGULAR),
                    other => other,
                },
                Some((_, Kind::End)) => Step::End,
                _ => Step::Stuck,
            };
        }
        if rule.kind() == Kind::Jit
            && let Some(step) = stub_step(at, readable)
        {
            return step;
        }
        if at.bp < at.sp {
            return Step::Stuck;
        }
        match (readable.word(at.bp), readable.word(at.bp.wrapping_add(8))) {
            (Some(bp), Some(address)) if address != 0 => Step::Caller(
                Registers {
                    pc: address - 1,
                    sp: at.bp + 16,
                    bp,
                },
                -16 | GUESSED,
            ),
            _ => Step::Stuck,
        }
    }

    /// The rule of a program counter; `None` if there is no code.
    #[inline(always)]
    fn rule(
        &mut self,
        shared: &Shared<'_>,
        pc: u64,
    ) -> Result<Option<(Rule, Option<Place>)>, NoNumber> {
        let known = shared.native.rules.get(pc);
        if let Some((rule, place)) = known
            && shared.native.modules.is_live(rule.module())
        {
            return Ok(Some((rule, Some(place))));
        }
        self.find_rule(shared, pc, known)
    }

    #[cold]
    fn find_rule(
        &mut self,
        shared: &Shared<'_>,
        pc: u64,
        known: Option<(Rule, Place)>,
    ) -> Result<Option<(Rule, Option<Place>)>, NoNumber> {
        let native = shared.native;
        if let Some((rule, place)) = known
            && rule.kind() == Kind::Jit
            && rule.made_after(native.changes.loads())
        {
            return Ok(Some((rule, Some(place))));
        }
        if !(PAGE..1 << 47).contains(&pc) {
            return Ok(None);
        }
        self.counts.misses += 1;
        let rule = match Object::at(pc) {
            Some(object) => {
                let module = native.modules.index_of(&object).ok_or(NoNumber::Full)?;
                if let Some(python) = shared.python {
                    // SAFETY: code of the module is on this stack.
                    unsafe { python.module_met(module, || (object.bias, object.dynamic())) };
                }
                if let Some((rule, place)) = known
                    && rule.module() == module
                {
                    return Ok(Some((rule, Some(place))));
                }
                let code = native.modules.code(module);
                if !(code.code.0..code.code.1).contains(&pc) {
                    return Ok(None);
                }
                let memory = Memory {
                    start: code.frame_segment.0,
                    end: code.frame_segment.1,
                };
                let rule = match code.frame_header {
                    0 => None,
                    // SAFETY: the module has code on this stack, so it stays loaded; the segment is readable.
                    header => unsafe {
                        cfi::rule_from_header(&mut self.context, header, memory, pc, module)
                    },
                };
                // SAFETY: inside the module's code. A handler's return address is the start of the trampoline.
                let returns = || unsafe { cfi::is_signal_return(pc + 1, code.code.1) };
                rule.unwrap_or_else(|| {
                    Rule::of_kind(
                        if returns() {
                            Kind::Signal
                        } else {
                            Kind::Uncovered
                        },
                        module,
                    )
                })
            }
            None if self.is_executable(pc) => Rule::jit(native.changes.loads()),
            None => return Ok(None),
        };
        let place = native.rules.set(pc, rule);
        self.counts.uncached += u64::from(place.is_none());
        Ok(Some((rule, place)))
    }

    /// The location of a program counter.
    #[inline(always)]
    fn location(
        &mut self,
        shared: &Shared<'_>,
        rule: Rule,
        place: Option<Place>,
        pc: u64,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        let known = place.and_then(|place| shared.native.rules.location(place, rule.module()));
        match known {
            Some(location) => Ok(location),
            None => self.find_location(shared, rule.module(), place, pc, sink),
        }
    }

    #[cold]
    fn find_location(
        &mut self,
        shared: &Shared<'_>,
        module: u32,
        place: Option<Place>,
        pc: u64,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        let (native, tree) = (shared.native, shared.tree);
        let location = if module == NO_MODULE {
            tree.location(LocationKind::Jit, 0, pc, sink)?
        } else {
            if !native
                .modules
                .tell(module, pc, shared.session, &mut self.buffer, sink)
            {
                return Err(NoNumber::Refused);
            }
            let offset = pc.wrapping_sub(native.modules.bias(module));
            tree.location(LocationKind::Native, module + 1, offset, sink)?
        };
        if let Some(place) = place {
            native.rules.set_location(place, module, location);
        }
        Ok(location)
    }

    /// Whether an address outside all modules is in executable memory.
    fn is_executable(&mut self, address: u64) -> bool {
        if self
            .code
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address))
        {
            return true;
        }
        let page = address & !(PAGE - 1);
        let now = self.counts.captures;
        if self
            .not_code
            .iter()
            .any(|(known, until)| *known == page && now < *until)
        {
            return false;
        }
        match maps::mapping_at(address, &mut self.buffer) {
            Some(mapping) if mapping.executable => {
                self.code[self.next_code % self.code.len()] = (mapping.start, mapping.end);
                self.next_code += 1;
                true
            }
            _ => {
                let oldest = self.not_code.iter_mut().min_by_key(|(_, until)| *until);
                if let Some(entry) = oldest {
                    *entry = (page, now + NOT_CODE_FOR);
                }
                false
            }
        }
    }
}

/// From a stub that does nothing but call to its caller: the instructions that it executes after the call say where its
/// return address is. CPython's perf trampolines are such stubs.
fn stub_step(at: Registers, readable: &mut Readable) -> Option<Step> {
    let next = at.pc + 1;
    if !is_readable(next) || !is_readable(next + 4) {
        return None;
    }
    // SAFETY: readable by the check above.
    let code = unsafe { (next as *const [u8; 5]).read() };
    let (up, pops_bp) = match code {
        // add $up, %rsp; ret
        [0x48, 0x83, 0xc4, up @ 0..=0x7f, 0xc3] => (u64::from(up), false),
        // pop %rbp; ret
        [0x5d, 0xc3, ..] => (8, true),
        // ret
        [0xc3, ..] => (0, false),
        _ => return None,
    };
    let bp = if pops_bp {
        readable.word(at.sp)?
    } else {
        at.bp
    };
    let address = readable.word(at.sp + up)?;
    let caller = Registers {
        pc: address.checked_sub(1)?,
        sp: at.sp + up + 8,
        bp,
    };
    Some(Step::Caller(caller, IRREGULAR))
}

/// From a frame to its caller by a frame rule.
#[inline(always)]
fn step_by(rule: Rule, at: Registers, readable: &mut Readable) -> Step {
    let base = if rule.relative_to_bp() { at.bp } else { at.sp };
    let mut cfa = base.wrapping_add_signed(rule.cfa_offset());
    let mut origin = 0;
    if rule.deref() {
        origin = IRREGULAR;
        match readable.word(cfa) {
            Some(word) => cfa = word,
            None => return Step::Stuck,
        }
    }
    if cfa <= at.sp {
        return Step::Stuck;
    }
    let Some(address) = readable.word(cfa - 8) else {
        return Step::Stuck;
    };
    if address == 0 {
        return Step::End;
    }
    let place = match rule.bp() {
        SavedBp::Same => {
            return Step::Caller(
                Registers {
                    pc: address - 1,
                    sp: cfa,
                    bp: at.bp,
                },
                origin,
            );
        }
        SavedBp::AtCfa => cfa.wrapping_add_signed(rule.bp_offset()),
        SavedBp::AtBp => at.bp.wrapping_add_signed(rule.bp_offset()),
        SavedBp::Lost => {
            return Step::Caller(
                Registers {
                    pc: address - 1,
                    sp: cfa,
                    bp: 0,
                },
                IRREGULAR,
            );
        }
    };
    let Some(bp) = readable.word(place) else {
        return Step::Stuck;
    };
    match i32::try_from(place.wrapping_sub(cfa) as i64) {
        Ok(offset) if offset != 0 => origin |= offset,
        _ => origin |= IRREGULAR,
    }
    Step::Caller(
        Registers {
            pc: address - 1,
            sp: cfa,
            bp,
        },
        origin,
    )
}

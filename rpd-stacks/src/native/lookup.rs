//! Rules and locations, from the tables or, the first time, from where they come from.

use crate::facts::{LocationKind, Sink};
use crate::interner::NoNumber;
use crate::native::cfi::{self, Context, Memory};
use crate::native::counts::Counts;
use crate::native::objects::Object;
use crate::native::registered::RegisteredCode;
use crate::native::rules::{NO_MODULE, Place, Rule, RuleKind};
use crate::native::{PAGE, SharedWalk, maps};
use crate::region::Region;

/// Captures after which an address outside all code is looked up again.
const NOT_CODE_FOR: u64 = 256;

/// Per-thread state of lookups.
pub(super) struct Lookup {
    pub(super) context: Box<Context>,
    buffer: Region<u8>,
    pub(super) registered: RegisteredCode,
    /// Executable mappings outside all modules.
    code: [(u64, u64); 8],
    next_code: usize,
    /// Pages without code, and the capture until which that is taken for granted.
    not_code: [(u64, u64); 4],
}

impl Lookup {
    /// Reserves the buffers of a thread's lookups.
    pub(super) fn reserve() -> Lookup {
        Lookup {
            context: Box::new(Context::new_in()),
            buffer: Region::reserve(1 << 16),
            registered: RegisteredCode::reserve(),
            code: [(0, 0); 8],
            next_code: 0,
            not_code: [(0, 0); 4],
        }
    }

    /// Whether its memory could be reserved.
    pub(super) fn usable(&self) -> bool {
        !self.buffer.is_empty() && self.registered.usable()
    }

    /// The rule of a program counter; `None` if there is no code.
    #[inline(always)]
    pub(super) fn rule(
        &mut self,
        shared: &SharedWalk<'_>,
        pc: u64,
        counts: &mut Counts,
    ) -> Result<Option<(Rule, Option<Place>)>, NoNumber> {
        let known = shared.native.rules.get(pc);
        if let Some((rule, place)) = known
            && shared.native.modules.is_live(rule.module())
        {
            return Ok(Some((rule, Some(place))));
        }
        self.find_rule(shared, pc, known, counts)
    }

    #[cold]
    fn find_rule(
        &mut self,
        shared: &SharedWalk<'_>,
        pc: u64,
        known: Option<(Rule, Place)>,
        counts: &mut Counts,
    ) -> Result<Option<(Rule, Option<Place>)>, NoNumber> {
        let native = shared.native;
        if let Some((rule, place)) = known
            && rule.kind() == RuleKind::Jit
            && rule.made_after(native.changes.loads())
        {
            return Ok(Some((rule, Some(place))));
        }
        if !(PAGE..1 << 47).contains(&pc) {
            return Ok(None);
        }
        counts.misses += 1;
        let rule = match Object::at(pc) {
            Some(object) => {
                let module = native.modules.index_of(&object).ok_or(NoNumber::Full)?;
                if let Some(observer) = shared.observer {
                    // SAFETY: code of the module is on this stack.
                    unsafe { observer.module_met(module, &object) };
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
                    Rule::from_kind(
                        if returns() {
                            RuleKind::Signal
                        } else {
                            RuleKind::Uncovered
                        },
                        module,
                    )
                })
            }
            None if self.is_executable(pc, counts.captures) => Rule::jit(native.changes.loads()),
            None => return Ok(None),
        };
        let place = native.rules.set(pc, rule);
        counts.uncached += u64::from(place.is_none());
        Ok(Some((rule, place)))
    }

    /// The location of a program counter.
    #[inline(always)]
    pub(super) fn location(
        &mut self,
        shared: &SharedWalk<'_>,
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

    /// The location of a program counter whose frame is a guess. Guesses are rare, so it is not kept in the table of rules.
    #[cold]
    pub(super) fn guessed_location(
        &mut self,
        shared: &SharedWalk<'_>,
        rule: Rule,
        pc: u64,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        match rule.module() {
            NO_MODULE => self.find_location(shared, NO_MODULE, None, pc, sink),
            module => self.location_in(shared, module, LocationKind::Guessed, pc, sink),
        }
    }

    #[cold]
    fn find_location(
        &mut self,
        shared: &SharedWalk<'_>,
        module: u32,
        place: Option<Place>,
        pc: u64,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        let (native, tree) = (shared.native, shared.tree);
        if module == NO_MODULE {
            let original = shared.observer.and_then(|known| known.original_of(pc));
            if let Some((module, pc)) = original {
                return self.location_in(shared, module, LocationKind::Native, pc, sink);
            }
            let (registry, changes) = (&native.registry, &native.changes);
            let (buffer, registered) = (&mut self.buffer, &mut self.registered);
            let object = registered.object_at(registry, changes, pc, buffer, sink)?;
            // Other code may be made at this address: the location is found anew in every walk.
            return tree.location(LocationKind::Jit, object, pc, sink);
        }
        let location = self.location_in(shared, module, LocationKind::Native, pc, sink)?;
        if let Some(place) = place {
            native.rules.set_location(place, module, location);
        }
        Ok(location)
    }

    /// The location of a program counter in a module, which is reported before.
    fn location_in(
        &mut self,
        shared: &SharedWalk<'_>,
        module: u32,
        kind: LocationKind,
        pc: u64,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        let modules = &shared.native.modules;
        if !modules.report(module, pc, shared.session, &mut self.buffer, sink) {
            return Err(NoNumber::Refused);
        }
        let offset = pc.wrapping_sub(modules.bias(module));
        shared.tree.location(kind, module + 1, offset, sink)
    }

    /// Whether an address outside all modules is in executable memory. `now` counts captures.
    fn is_executable(&mut self, address: u64, now: u64) -> bool {
        if self
            .code
            .iter()
            .any(|(start, end)| (*start..*end).contains(&address))
        {
            return true;
        }
        let page = address & !(PAGE - 1);
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

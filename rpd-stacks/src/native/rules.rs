//! Unwind rules, one word per program counter, in a table that all threads read without locks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::region::{Region, Zeroed};

/// Unwind rule: how to get from a frame to its caller.
///
/// | bits | |
/// |---|---|
/// | 0..3 | [`RuleKind`] |
/// | 3 | the canonical frame address (CFA) is relative to RBP, not RSP |
/// | 4 | the CFA is the word at that address |
/// | 5..7 | [`SavedBp`] |
/// | 7 | the rule is [usual](Rule::is_usual) |
/// | 8..24 | offset of the saved RBP in words, signed |
/// | 24..49 | offset of the CFA in words, signed; of a JIT rule the count of loads |
/// | 49..64 | index of the module, [`NO_MODULE`] if there is none |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule(u64);

/// Module index of code outside all modules.
pub(crate) const NO_MODULE: u32 = 0x7fff;
const LOADS_MASK: u64 = (1 << 25) - 1;

/// Kind of an unwind rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RuleKind {
    /// No rule yet: the slot is being filled.
    Empty = 0,
    /// The return address is in the word below the CFA.
    Frame = 1,
    /// The frame is an outermost one.
    End = 2,
    /// The return trampoline of a signal handler: the caller's registers are in the `ucontext` that RSP points to.
    Signal = 3,
    /// A module's code without usable unwind information: the frame pointer may help.
    Uncovered = 4,
    /// Code in no module: registered unwind information or the frame pointer may help.
    Jit = 5,
    /// The CFA depends on another register than RSP and RBP, whose value the frames further in lead to.
    OtherRegister = 6,
}

/// Location of the caller's RBP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum SavedBp {
    /// RBP still has the caller's value.
    Same = 0,
    /// The value is in a word relative to the CFA.
    AtCfa = 1,
    /// The value is in a word relative to RBP.
    AtBp = 2,
    /// The value is lost.
    Lost = 3,
}

impl Rule {
    /// A rule that needs nothing but its kind.
    pub(crate) fn from_kind(kind: RuleKind, module: u32) -> Rule {
        Rule(kind as u64 | u64::from(module) << 49)
    }

    /// A rule for code in no module, found after this many loads.
    pub(crate) fn jit(loads: u64) -> Rule {
        Rule(RuleKind::Jit as u64 | (loads & LOADS_MASK) << 24 | u64::from(NO_MODULE) << 49)
    }

    /// A frame rule; `None` if an offset does not fit or is not a multiple of the word.
    pub(crate) fn frame(
        from_bp: bool,
        deref: bool,
        cfa: i64,
        bp: SavedBp,
        bp_offset: i64,
        module: u32,
    ) -> Option<Rule> {
        let fits = cfa % 8 == 0 && bp_offset % 8 == 0 && (cfa / 8).unsigned_abs() < 1 << 24;
        let bp_words = i16::try_from(bp_offset / 8).ok()?;
        let usual = !deref
            && match bp {
                SavedBp::Same => true,
                SavedBp::AtCfa => bp_offset != 0,
                SavedBp::AtBp | SavedBp::Lost => false,
            };
        fits.then(|| {
            Rule(
                RuleKind::Frame as u64
                    | u64::from(from_bp) << 3
                    | u64::from(deref) << 4
                    | (bp as u64) << 5
                    | u64::from(usual) << 7
                    | u64::from(bp_words as u16) << 8
                    | ((cfa / 8) as u64 & LOADS_MASK) << 24
                    | u64::from(module) << 49,
            )
        })
    }

    /// Whether the slot is still empty.
    #[inline(always)]
    fn is_empty(self) -> bool {
        self.0 & 7 == RuleKind::Empty as u64
    }

    /// Whether the rule is a frame rule that computes the CFA from a register alone, and that has the caller's RBP in
    /// RBP or relative to the CFA but not at it.
    #[inline(always)]
    pub(crate) fn is_usual(self) -> bool {
        self.0 & 1 << 7 != 0
    }

    /// Whether a usual rule has the caller's RBP on the stack.
    #[inline(always)]
    pub(crate) fn saves_bp(self) -> bool {
        self.0 & 1 << 5 != 0
    }

    #[inline(always)]
    pub(crate) fn kind(self) -> RuleKind {
        match self.0 & 7 {
            1 => RuleKind::Frame,
            2 => RuleKind::End,
            3 => RuleKind::Signal,
            4 => RuleKind::Uncovered,
            5 => RuleKind::Jit,
            6 => RuleKind::OtherRegister,
            _ => RuleKind::Empty,
        }
    }

    #[inline(always)]
    pub(crate) fn relative_to_bp(self) -> bool {
        self.0 & 8 != 0
    }

    #[inline(always)]
    pub(crate) fn deref(self) -> bool {
        self.0 & 16 != 0
    }

    #[inline(always)]
    pub(crate) fn bp(self) -> SavedBp {
        match self.0 >> 5 & 3 {
            0 => SavedBp::Same,
            1 => SavedBp::AtCfa,
            2 => SavedBp::AtBp,
            _ => SavedBp::Lost,
        }
    }

    /// Offset of the saved RBP in bytes.
    #[inline(always)]
    pub(crate) fn bp_offset(self) -> i64 {
        i64::from((self.0 >> 8) as i16) * 8
    }

    /// Offset of the CFA in bytes.
    #[inline(always)]
    pub(crate) fn cfa_offset(self) -> i64 {
        ((self.0 << 15) as i64 >> 39) * 8
    }

    #[inline(always)]
    pub(crate) fn module(self) -> u32 {
        (self.0 >> 49) as u32
    }

    /// Whether a JIT rule was made after the same number of loads.
    #[inline(always)]
    pub(crate) fn made_after(self, loads: u64) -> bool {
        self.0 >> 24 & LOADS_MASK == loads & LOADS_MASK
    }
}

/// Number of slots that one cache line holds.
const GROUP: usize = 4;
/// Log2 of the number of slots per level.
const LEVELS: [u32; 3] = [13, 16, 19];
/// Number of slots of a level that are probed before the next level.
const PROBES: [usize; LEVELS.len()] = [GROUP, GROUP, 32 * GROUP];

/// Entries of the table of locations: one for each slot, and more up to a power of two.
const SLOTS: usize = 1 << 20;

/// A program counter and its rule.
#[derive(Default)]
struct Slot {
    pc: AtomicU64,
    rule: AtomicU64,
}

// SAFETY: two integers.
unsafe impl Zeroed for Slot {}

/// Slot of a program counter: its number over all levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place(u32);

/// Rules by program counter. Slots are never emptied; the rule of a program counter whose module has gone is replaced.
pub(crate) struct Rules {
    levels: [Region<Slot>; LEVELS.len()],
    /// Per slot: module index and location id.
    locations: Region<AtomicU64>,
}

impl Rules {
    /// Reserves the table of rules.
    pub(crate) fn reserve() -> Rules {
        let rules = Rules {
            levels: LEVELS.map(|bits| Region::reserve(1 << bits)),
            locations: Region::reserve(SLOTS),
        };
        rules.levels[0].populate(0..1 << LEVELS[0]);
        rules.locations.populate(0..1 << LEVELS[0]);
        rules
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        !self.locations.is_empty() && self.levels.iter().all(|level| !level.is_empty())
    }

    /// The table with its first level at hand, for several look-ups.
    #[inline(always)]
    pub(crate) fn reader(&self) -> Reader<'_> {
        Reader {
            rules: self,
            slots: self.levels[0].first(),
            locations: self.locations.first(),
        }
    }

    /// The rule of a program counter and its place.
    #[inline(always)]
    pub(crate) fn get(&self, pc: u64) -> Option<(Rule, Place)> {
        self.reader().get(pc)
    }

    /// Looks in the levels after the first.
    #[inline(never)]
    fn get_further(&self, pc: u64) -> Option<(Rule, Place)> {
        let mut first = self.levels[0].len();
        for (level, slots) in self.levels.iter().enumerate().skip(1) {
            let group = group_of(pc, level, slots.len());
            for offset in 0..PROBES[level] {
                let at = (group + offset) % slots.len();
                let slot = &slots[at];
                let key = slot.pc.load(Ordering::Acquire);
                if key == pc {
                    let rule = Rule(slot.rule.load(Ordering::Acquire));
                    return (!rule.is_empty()).then_some((rule, Place((first + at) as u32)));
                }
                if key == 0 {
                    return None;
                }
            }
            first += slots.len();
        }
        None
    }

    /// Stores the rule of a program counter, over an older one if there is one. `None` if the table is full there.
    pub(crate) fn set(&self, pc: u64, rule: Rule) -> Option<Place> {
        let mut first = 0;
        for (level, slots) in self.levels.iter().enumerate() {
            let group = group_of(pc, level, slots.len());
            for offset in 0..PROBES[level] {
                let at = (group + offset) % slots.len();
                let slot = &slots[at];
                let key = match slot
                    .pc
                    .compare_exchange(0, pc, Ordering::AcqRel, Ordering::Acquire)
                {
                    Ok(_) => pc,
                    Err(key) => key,
                };
                if key == pc {
                    slot.rule.store(rule.0, Ordering::Release);
                    return Some(Place((first + at) as u32));
                }
            }
            first += slots.len();
        }
        None
    }

    /// The location of the code at a place, if it is known for this module.
    #[inline(always)]
    pub(crate) fn location(&self, place: Place, module: u32) -> Option<u32> {
        self.reader().location(place, module)
    }

    /// Stores the location of the code at a place.
    pub(crate) fn set_location(&self, place: Place, module: u32, location: u32) {
        self.locations[place.0 as usize].store(
            u64::from(module) << 32 | u64::from(location),
            Ordering::Release,
        );
    }

    /// Removes all locations; rules stay. No other thread may use the table meanwhile.
    pub(crate) fn clear_locations(&self) {
        self.locations.discard();
    }
}

/// Reads a table of rules.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    rules: &'a Rules,
    slots: &'a [Slot; 1 << LEVELS[0]],
    locations: &'a [AtomicU64; SLOTS],
}

impl Reader<'_> {
    /// The rule of a program counter and its place.
    #[inline(always)]
    pub(crate) fn get(self, pc: u64) -> Option<(Rule, Place)> {
        let group = group_of(pc, 0, self.slots.len());
        for offset in 0..GROUP {
            let slot = &self.slots[group + offset];
            let key = slot.pc.load(Ordering::Acquire);
            if key == pc {
                let rule = Rule(slot.rule.load(Ordering::Acquire));
                return (!rule.is_empty()).then_some((rule, Place((group + offset) as u32)));
            }
            if key == 0 {
                return None;
            }
        }
        self.rules.get_further(pc)
    }

    /// The location of the code at a place, if it is known for this module.
    #[inline(always)]
    pub(crate) fn location(self, place: Place, module: u32) -> Option<u32> {
        let location = self.locations[place.0 as usize % SLOTS].load(Ordering::Acquire);
        (location != 0 && location >> 32 == u64::from(module)).then_some(location as u32)
    }
}

/// First slot of the group of a program counter in a level. The look-up of a caller waits for that of the callee, so
/// that of the first level is a short computation.
#[inline(always)]
fn group_of(pc: u64, level: usize, slots: usize) -> usize {
    let hash = match level {
        0 => pc << 1 ^ pc >> 11,
        _ => pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40,
    };
    hash as usize & (slots - GROUP)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn rule_keeps_its_parts_in_one_word() {
        for (from_bp, deref, cfa, bp, bp_offset, module) in [
            (false, false, 8, SavedBp::Same, 0, 0),
            (true, false, 16, SavedBp::AtCfa, -16, 5),
            (true, true, -8, SavedBp::AtBp, 0, NO_MODULE - 1),
            (false, false, (1 << 27) - 8, SavedBp::Lost, -262_144, 77),
        ] {
            let rule = Rule::frame(from_bp, deref, cfa, bp, bp_offset, module).unwrap();
            assert_eq!(rule.kind(), RuleKind::Frame);
            assert_eq!(
                (
                    rule.relative_to_bp(),
                    rule.deref(),
                    rule.cfa_offset(),
                    rule.bp(),
                    rule.bp_offset(),
                    rule.module()
                ),
                (from_bp, deref, cfa, bp, bp_offset, module)
            );
        }
        assert_eq!(Rule::frame(false, false, 12, SavedBp::Same, 0, 0), None);
        assert_eq!(
            Rule::frame(false, false, 1 << 27, SavedBp::Same, 0, 0),
            None
        );
        assert_eq!(
            Rule::frame(false, false, 8, SavedBp::AtCfa, 1 << 18, 0),
            None
        );
        assert!(Rule::jit(5).made_after(5) && !Rule::jit(5).made_after(6));
    }

    #[test]
    fn rules_table_finds_replaces_and_refuses_rules() {
        let rules = Rules::reserve();
        let rule = |module| Rule::from_kind(RuleKind::End, module);
        let mut stored = 0;
        for pc in 1..=1_000_000u64 {
            if rules.set(pc, rule((pc % 100) as u32)).is_some() {
                stored += 1;
            }
        }
        assert!((500_000..620_000).contains(&stored), "{stored}");
        let found = (1..=1_000_000u64).filter(|&pc| {
            rules
                .get(pc)
                .is_some_and(|(found, _)| found == rule((pc % 100) as u32))
        });
        assert_eq!(found.count(), stored);
        let place = rules.set(1, rule(101)).unwrap();
        assert_eq!(rules.get(1), Some((rule(101), place)));
        rules.set_location(place, 101, 9);
        assert_eq!(
            (rules.location(place, 101), rules.location(place, 1)),
            (Some(9), None)
        );
    }
}

//! Stitching: finds the instruction of the code object for each traced instruction.
//!
//! Tokens carry kinds of instructions and no addresses: the code is walked from the wave's entry point, and each token is
//! matched with the next line that writes such a token.

use std::collections::HashMap;
use std::ops::Range;

use rpd_gfx::disasm::{self, Flow};

use crate::barrier;
use crate::header::Generation;
use crate::line::{Class, Line};
use crate::pending::{Anchor, Pending};
use crate::record::{Category, Instruction, Pc};

/// Number of consecutive lines that do not match after which a wave is given up until its next known address.
const MAX_FAILED: u32 = 1000;
/// Number of instructions that have to match at a place where matching is resumed.
const CONFIRM: usize = 4;
/// Number of instructions among which a place to resume matching is searched for.
const SEARCH: usize = 256;

/// Instructions by address, for matching tokens with code.
pub trait Code {
    /// The instruction at `pc`; `None` where there is no code.
    fn instruction(&mut self, pc: Pc) -> Option<disasm::Instruction>;
}

/// A source of code that has none: addresses stay unknown.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCode;

impl Code for NoCode {
    fn instruction(&mut self, _: Pc) -> Option<disasm::Instruction> {
        None
    }
}

/// Position at which matching stopped, in a wave that is reported in parts.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    next: Option<Pc>,
    failed: u32,
}

/// Number of lines of a page of code, 4 bytes each.
const PAGE: usize = 1024;

#[derive(Debug, Clone, Copy)]
enum Slot {
    NotAsked,
    Missing,
    Line(Line),
}

/// Lines of code, which are requested when they are first needed.
struct Lines<'a> {
    code: &'a mut dyn Code,
    /// Slots of lines by address, [`PAGE`] in each page.
    pages: Vec<Vec<Slot>>,
    by_address: HashMap<(u64, u64), usize>,
    last: Option<((u64, u64), usize)>,
}

impl Lines<'_> {
    #[inline]
    fn at(&mut self, pc: Pc) -> Option<Line> {
        let key = (pc.code_object, pc.address / (4 * PAGE as u64));
        let page = match self.last {
            Some((last, page)) if last == key => page,
            _ => self.page(key),
        };
        match self.pages[page][(pc.address / 4) as usize % PAGE] {
            Slot::Line(line) => Some(line),
            Slot::Missing => None,
            Slot::NotAsked => self.ask(page, pc),
        }
    }

    /// The number of the page with this key.
    #[cold]
    fn page(&mut self, key: (u64, u64)) -> usize {
        let pages = &mut self.pages;
        let page = *self.by_address.entry(key).or_insert_with(|| {
            pages.push(vec![Slot::NotAsked; PAGE]);
            pages.len() - 1
        });
        self.last = Some((key, page));
        page
    }

    /// Requests a line that has not been requested before.
    #[cold]
    fn ask(&mut self, page: usize, pc: Pc) -> Option<Line> {
        // Instructions without a size would be walked forever.
        let instruction = self.code.instruction(pc).filter(|found| found.bytes > 0);
        let line = instruction.map(|instruction| Line::from_instruction(&instruction));
        self.pages[page][(pc.address / 4) as usize % PAGE] = line.map_or(Slot::Missing, Slot::Line);
        line
    }
}

/// Result of stitching a wave.
pub(crate) struct Stitched {
    /// Number of instructions to report, with the waits that were added.
    pub(crate) count: usize,
    /// Number of instructions to report for which no line of the code was found.
    pub(crate) missing: usize,
}

/// Matches waves with code.
pub(crate) struct Stitcher<'a> {
    lines: Lines<'a>,
    generation: Generation,
    exclude_barrier_wait: bool,
}

fn behind(pc: Pc, line: &Line) -> Pc {
    Pc {
        address: pc.address.wrapping_add(u64::from(line.size)),
        ..pc
    }
}

/// Address after a line that matched a token of this category.
fn follow(pc: Pc, line: &Line, category: Category) -> Option<Pc> {
    match line.flow {
        // A call is not a branch in the trace, which has its target.
        Flow::Branch(target) | Flow::Conditional(target)
            if category == Category::Jump || line.class != Class::Branch =>
        {
            Some(Pc {
                address: target,
                ..pc
            })
        }
        Flow::Next | Flow::Branch(_) | Flow::Conditional(_) => Some(behind(pc, line)),
        Flow::Indirect | Flow::End => None,
    }
}

/// Extends matrix instructions with scales by the loading of scales, with which they begin: four cycles before the
/// token, and four more after an LDS instruction.
fn include_scaling(instructions: &mut [Instruction], at: usize, during: &Range<i64>) {
    let before = match at.checked_sub(1).map(|before| &instructions[before]) {
        Some(before) => before.time + i64::from(before.duration),
        None => during.start,
    };
    let after = instructions
        .get(at + 1)
        .map_or(during.end, |after| after.time);
    let instruction = &mut instructions[at];
    let end = instruction.time + i64::from(instruction.duration);
    if instruction.time > before {
        instruction.time -= 4;
        instruction.duration += if end < after { 8 } else { 4 };
    } else if end + 4 <= after {
        instruction.duration += 4;
    }
}

impl<'a> Stitcher<'a> {
    pub(crate) fn new(
        code: &'a mut dyn Code,
        generation: Generation,
        exclude_barrier_wait: bool,
    ) -> Self {
        Self {
            lines: Lines {
                code,
                pages: Vec::new(),
                by_address: HashMap::new(),
                last: None,
            },
            generation,
            exclude_barrier_wait,
        }
    }

    fn matches(&self, category: Category, class: Class) -> bool {
        match (category, class) {
            (Category::Valu, Class::Valu)
            | (Category::Jump | Category::Next, Class::Branch)
            | (
                Category::Immed | Category::Message,
                Class::Immed | Class::Barrier | Class::BarrierWait,
            )
            | (Category::Smem, Class::Smem | Class::Clock)
            | (Category::Vmem, Class::Vmem)
            | (Category::Flat, Class::Flat | Class::Vmem)
            | (Category::Lds, Class::Lds)
            | (Category::Bvh, Class::Bvh)
            | (Category::Salu, Class::Salu | Class::Clock) => true,
            // What a wave without active lanes does not execute is an immediate there.
            (
                Category::Immed,
                Class::Valu | Class::Vmem | Class::Flat | Class::Lds | Class::Smem,
            ) => self.generation != Generation::Gfx9,
            _ => false,
        }
    }

    /// The first line at or after `pc` that writes a token.
    fn next_line(&mut self, mut pc: Pc) -> Option<(Pc, Line)> {
        for _ in 0..MAX_FAILED {
            let line = self.lines.at(pc)?;
            if line.class != Class::Skip {
                return Some((pc, line));
            }
            pc = behind(pc, &line);
        }
        None
    }

    /// Whether the first few instructions match the code from `pc` on.
    fn confirm(&mut self, instructions: &[Instruction], pc: Option<Pc>) -> bool {
        let mut next = pc;
        let mut confirmed = 0;
        for instruction in instructions.iter().take(CONFIRM) {
            let Some((pc, line)) = next.and_then(|pc| self.next_line(pc)) else {
                // The trace has the next address.
                return confirmed > 0;
            };
            if !self.matches(instruction.category, line.class) {
                return false;
            }
            confirmed += 1;
            next = follow(pc, &line, instruction.category);
        }
        confirmed > 0
    }

    /// Gives the first `count` instructions of a wave their addresses (one more when two are reported in each other's
    /// place), and adds the waits for barriers that have no token.
    pub(crate) fn stitch(&mut self, wave: &mut Pending, count: usize) -> Stitched {
        // An address may come in the stream after that of a later instruction.
        wave.anchors.sort_by_key(|anchor| anchor.index);
        let during = wave.begin..wave.end;
        let Pending {
            instructions,
            anchors,
            cursor,
            ..
        } = wave;
        let mut waits = Vec::new();
        let (looked_at, matched) =
            self.walk(instructions, anchors, cursor, count, during, &mut waits);
        let missing = match looked_at - matched {
            0 => 0,
            missing if !wave.has_others => missing,
            // Instructions that no line of the code is are not missing.
            _ => wave.instructions[..looked_at]
                .iter()
                .filter(|i| {
                    !i.pc.is_known() && !matches!(i.category, Category::Context | Category::None)
                })
                .count(),
        };
        Stitched {
            count: looked_at + barrier::insert_waits(wave, &waits),
            missing,
        }
    }

    fn walk(
        &mut self,
        instructions: &mut [Instruction],
        anchors: &[Anchor],
        cursor: &mut Cursor,
        count: usize,
        during: Range<i64>,
        waits: &mut Vec<(usize, Pc)>,
    ) -> (usize, usize) {
        let mut anchors = anchors.iter().peekable();
        let mut next = cursor.next.take();
        let mut failed = cursor.failed;
        let (mut i, mut matched) = (0, 0);
        while i < count {
            let mut has_anchor = false;
            while let Some(anchor) = anchors.next_if(|anchor| anchor.index <= i) {
                if anchor.index == i {
                    // One that is not known does not make another unknown.
                    if anchor.pc.is_known() || !has_anchor {
                        next = Some(anchor.pc).filter(|pc| pc.is_known());
                    }
                    has_anchor = true;
                    failed = 0;
                }
            }
            let category = instructions[i].category;
            // Handlers are not in the program's code, which goes on where it was.
            if category == Category::Context {
                i += 1;
                continue;
            }
            // What was issued and never completed has no kind, and could be any line.
            let known = next.filter(|_| category != Category::None);
            let Some((pc, line)) = known.and_then(|pc| self.next_line(pc)) else {
                // On from the next address in the trace.
                next = None;
                i = anchors
                    .peek()
                    .map_or(count, |anchor| anchor.index.min(count));
                continue;
            };
            // With this setting the wait has no token: it is taken for done, if what follows in the code agrees.
            if self.exclude_barrier_wait
                && line.class == Class::BarrierWait
                && (!matches!(category, Category::Immed)
                    || self.confirm(&instructions[i..], Some(behind(pc, &line))))
            {
                waits.push((i, pc));
                next = Some(behind(pc, &line));
                continue;
            }
            if self.matches(category, line.class) {
                instructions[i].pc = pc;
                if line.scales && self.generation == Generation::Gfx9 {
                    include_scaling(instructions, i, &during);
                }
                next = follow(pc, &line, category);
                failed = 0;
                i += 1;
                matched += 1;
                // A barrier of GFX9 is a message when the wave comes to it and an immediate when it goes on.
                if self.generation == Generation::Gfx9
                    && line.class == Class::Barrier
                    && category == Category::Message
                    && let Some(second) = instructions.get_mut(i)
                    && second.category == Category::Immed
                {
                    second.pc = pc;
                    i += 1;
                    matched += 1;
                }
                continue;
            }
            // GFX9 may report two neighbours of different units in each other's place.
            if self.generation == Generation::Gfx9
                && let Some(after) = instructions.get(i + 1).copied()
                && self.matches(after.category, line.class)
                && let Some((second, second_line)) =
                    follow(pc, &line, after.category).and_then(|pc| self.next_line(pc))
                && self.matches(category, second_line.class)
            {
                // From here on they stand in the order of the program.
                instructions.swap(i, i + 1);
                instructions[i].pc = pc;
                instructions[i + 1].pc = second;
                next = follow(second, &second_line, category);
                failed = 0;
                i += 2;
                matched += 2;
                continue;
            }
            failed += 1;
            // The line may have written no token: the one behind it may match.
            if line.class != Class::Branch && !line.anchor && failed < MAX_FAILED {
                next = Some(behind(pc, &line));
                continue;
            }
            // At a branch the way is not known, and after many failures the place is not either.
            (i, next) = self.again(&instructions[..count], i, pc);
            failed = 0;
        }
        cursor.next = next;
        cursor.failed = failed;
        (i.min(instructions.len()), matched)
    }

    /// Position at which matching continues after a failure at instruction `i` and the line at `pc`: after the next
    /// branch in both.
    fn again(&mut self, instructions: &[Instruction], i: usize, pc: Pc) -> (usize, Option<Pc>) {
        let mut at = Some(pc);
        for _ in 0..SEARCH {
            let Some((pc, line)) = at.and_then(|pc| self.next_line(pc)) else {
                break;
            };
            at = Some(behind(pc, &line));
            if line.class != Class::Branch {
                continue;
            }
            let jump =
                |inst: &Instruction| matches!(inst.category, Category::Jump | Category::Next);
            let window = &instructions[i..instructions.len().min(i + SEARCH)];
            if let Some(branch) = window.iter().position(jump) {
                let next = follow(pc, &line, window[branch].category);
                if self.confirm(&instructions[i + branch + 1..], next) {
                    return (i + branch + 1, next);
                }
            }
        }
        // Not before the next address in the trace.
        (i, None)
    }
}

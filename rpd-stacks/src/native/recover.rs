//! The caller of a frame whose layout depends on a register that walks do not follow.
//!
//! Walks follow RSP and RBP alone, since nearly all frames need no other register. Where one does (code that realigns
//! the stack by hand, the loader's entry for lazy binding), the registers are recovered by going over the frames of the
//! walk again, from the innermost, with all that their call frame information says.

use crate::native::Native;
use crate::native::cfi::{self, Context, Memory, Row};
use crate::native::frames::{Frame, IRREGULAR};
use crate::native::memory::Readable;
use crate::native::registers::{R12, RBP, RBX, REGISTERS, RSP, RegisterFile, Registers, Start};
use crate::native::rules::{Rule, RuleKind};
use crate::native::step::Step;

/// Registers that a function preserves for its caller, except RSP.
const PRESERVED: [u16; 6] = [RBX, RBP, R12, R12 + 1, R12 + 2, R12 + 3];
/// Offsets of the registers in the `ucontext` of a signal, in the order of call frame information.
const UCONTEXT: [u64; REGISTERS] = [
    144, 136, 152, 128, 112, 104, 120, 160, 40, 48, 56, 64, 72, 80, 88, 96,
];

/// A step from the last of `frames`, which are those of a walk from `start`, innermost first, to its caller.
pub(super) fn step_by_registers<'a>(
    native: &Native,
    context: &mut Context,
    start: &Start,
    frames: impl Iterator<Item = &'a Frame>,
    readable: &mut Readable,
) -> Step {
    let mut file = RegisterFile::at_start(start);
    let mut frames = frames.peekable();
    // RSP and RBP of every frame are known from the walk; only the others have to be followed through all frames.
    while let Some(frame) = frames.next() {
        file.set(RSP, Some(frame.sp));
        file.set(RBP, Some(frame.bp));
        let rule = native.rules.get(frame.pc).map(|(rule, _)| rule);
        let caller = frames.peek().copied();
        file = match (rule.map(|rule| (rule, rule.kind())), caller) {
            (Some((_, RuleKind::Signal)), Some(_)) => interrupted(frame, readable),
            (Some((rule, RuleKind::Frame | RuleKind::OtherRegister)), _) => {
                let word = &mut |address| readable.word(address);
                let read = |row: Option<&Row<'_>>| {
                    let row = row?;
                    // The walk has found the CFA of all frames but the last, which is what this is for.
                    let cfa = match caller {
                        Some(caller) => caller.sp,
                        None => row.cfa(&file, word)?,
                    };
                    let is_whole = caller.is_some() || row.returns_below_cfa();
                    is_whole.then(|| caller_of(row, cfa, &file, word))
                };
                match with_row(native, context, rule, frame.pc, read) {
                    Some(file) => file,
                    // Registers of an inner frame that are not known may be saved again by a frame further out.
                    None if caller.is_none() => return Step::Stuck,
                    None => RegisterFile::default(),
                }
            }
            // A frame without call frame information may have changed any register.
            _ => RegisterFile::default(),
        };
        if caller.is_none() {
            return caller_step(frame, &file, readable);
        }
    }
    Step::Stuck
}

/// A step from the last frame to its caller with these registers.
fn caller_step(frame: &Frame, file: &RegisterFile, readable: &mut Readable) -> Step {
    let Some(sp) = file.get(RSP).filter(|sp| *sp > frame.sp) else {
        return Step::Stuck;
    };
    match readable.word(sp - 8) {
        None => Step::Stuck,
        Some(0) => Step::End,
        Some(address) => Step::Caller(
            Registers {
                pc: address - 1,
                sp,
                bp: file.get(RBP).unwrap_or(0),
            },
            IRREGULAR,
        ),
    }
}

/// The registers of the code that a signal interrupted.
fn interrupted(frame: &Frame, readable: &mut Readable) -> RegisterFile {
    let mut file = RegisterFile::default();
    for (number, offset) in (0..).zip(UCONTEXT) {
        file.set(number, readable.word(frame.sp.wrapping_add(offset)));
    }
    file
}

/// The registers of the caller of a frame with this row, CFA and registers.
fn caller_of(
    row: &Row<'_>,
    cfa: u64,
    file: &RegisterFile,
    word: &mut dyn FnMut(u64) -> Option<u64>,
) -> RegisterFile {
    let mut caller = RegisterFile::default();
    for number in PRESERVED {
        caller.set(number, row.register_of_caller(number, cfa, file, word));
    }
    caller.set(RSP, Some(cfa));
    caller
}

/// Calls `read` with the row of an address whose rule is known. `None` if there is no row, or `read` returned it.
fn with_row<T>(
    native: &Native,
    context: &mut Context,
    rule: Rule,
    pc: u64,
    read: impl FnOnce(Option<&Row<'_>>) -> Option<T>,
) -> Option<T> {
    if !native.modules.is_live(rule.module()) {
        return None;
    }
    let code = native.modules.code(rule.module());
    let memory = Memory {
        start: code.frame_segment.0,
        end: code.frame_segment.1,
    };
    match code.frame_header {
        0 => None,
        // SAFETY: the module has code on this stack, so it stays loaded; the segment is readable.
        header => unsafe { cfi::with_row_from_header(context, header, memory, pc, read) }?,
    }
}

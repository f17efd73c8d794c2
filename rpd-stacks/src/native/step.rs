//! Steps of a walk from a frame to its caller.

use crate::native::Native;
use crate::native::cfi::{self, Context, UCONTEXT_RBP, UCONTEXT_RIP, UCONTEXT_RSP};
use crate::native::frames::{GUESSED, IRREGULAR};
use crate::native::memory::{Readable, is_readable};
use crate::native::registers::Registers;
use crate::native::rules::{NO_MODULE, Rule, RuleKind, SavedBp};

/// Result of a step.
pub(super) enum Step {
    /// The caller's registers, and how they came about, as in a frame's `origin`.
    Caller(Registers, i32),
    /// The frame is the outermost one.
    End,
    /// The caller cannot be found.
    Stuck,
}

/// Computes the registers of a frame's caller.
pub(super) fn step(
    native: &Native,
    context: &mut Context,
    rule: Rule,
    at: Registers,
    readable: &mut Readable,
) -> Step {
    match rule.kind() {
        RuleKind::Frame => step_by(rule, at, readable),
        RuleKind::End => Step::End,
        RuleKind::Signal => {
            let mut word = |offset| readable.word(at.sp.wrapping_add(offset));
            match (word(UCONTEXT_RIP), word(UCONTEXT_RSP), word(UCONTEXT_RBP)) {
                (Some(pc), Some(sp), Some(bp)) => Step::Caller(Registers { pc, sp, bp }, IRREGULAR),
                _ => Step::Stuck,
            }
        }
        RuleKind::Jit => jit_step(native, context, at, readable)
            .unwrap_or_else(|| frame_pointer_step(at, readable)),
        RuleKind::Uncovered => {
            stub_step(at, readable).unwrap_or_else(|| frame_pointer_step(at, readable))
        }
        // Other registers are recovered from all frames of the walk (`recover`); a slot that is being filled has no rule.
        RuleKind::OtherRegister | RuleKind::Empty => frame_pointer_step(at, readable),
    }
}

/// A step from code that was made at run time, if there is another rule than the frame pointer.
fn jit_step(
    native: &Native,
    context: &mut Context,
    at: Registers,
    readable: &mut Readable,
) -> Option<Step> {
    match native.registered_entry(at.pc) {
        Some(entry) if is_readable(entry) => {
            // SAFETY: libgcc returned an entry that covers the address; its owner keeps it while the code
            // runs, and it runs on this stack.
            let rule = unsafe { cfi::rule_from_entry(context, entry, at.pc, NO_MODULE) };
            Some(match rule.map(|rule| (rule, rule.kind())) {
                Some((rule, RuleKind::Frame)) => match step_by(rule, at, readable) {
                    Step::Caller(caller, origin) => Step::Caller(caller, origin | IRREGULAR),
                    other => other,
                },
                Some((_, RuleKind::End)) => Step::End,
                _ => Step::Stuck,
            })
        }
        _ => stub_step(at, readable),
    }
}

/// Computes the caller's registers on the assumption that the frame's code keeps a frame pointer.
fn frame_pointer_step(at: Registers, readable: &mut Readable) -> Step {
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

/// A step to the caller of a stub that does nothing but call: the instructions that it executes after the call
/// determine where its return address is. CPython's perf trampolines are such stubs, and so is much code that is
/// written in assembler.
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

/// A step from a frame to its caller by a frame rule.
#[inline(always)]
pub(super) fn step_by(rule: Rule, at: Registers, readable: &mut Readable) -> Step {
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
    // Stacks grow down: a caller further in is wrong unwind information, and the walk would not end.
    if cfa <= at.sp {
        return Step::Stuck;
    }
    let Some(address) = readable.word(cfa - 8) else {
        return Step::Stuck;
    };
    // The outermost frame of a thread has a return address of 0 by convention of the ABI.
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
    // The offset tells a later walk which word to compare; where it does not fit the word is read by the rule again.
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

//! SOPP: branches, waits, messages, and the end of a wave.

use super::Fault;
use super::exec::{Exec, WaveState};
use super::inst::{Handler, Inst};

/// Branches to an offset from the next instruction.
#[inline(always)]
pub(super) fn branch(x: &mut Exec<'_>, i: &Inst) {
    x.w.pc = x.w.pc.wrapping_add_signed(i.offset() * 4);
}

#[inline(always)]
fn branch_if(x: &mut Exec<'_>, i: &Inst, condition: bool) {
    if condition {
        branch(x, i);
    }
}

/// The operation of a SOPP opcode.
pub(super) fn handler(opcode: u32) -> Option<Handler> {
    let handler: Handler = match opcode {
        // No-ops, priorities, cache and performance hints have no effect.
        0x00 | 0x03 | 0x0f | 0x13..=0x16 => |_, _| {},
        // Results are available at once. A wait only has to order earlier stores.
        0x0c => |x, i| {
            let vmcnt = i.literal & 15 | i.literal >> 10 & 0x30;
            if vmcnt != 63 {
                x.order_stores();
            }
        },
        0x01 | 0x1b | 0x1e => |x, _| x.w.state = WaveState::Ended,
        0x02 => branch,
        0x04 => |x, i| branch_if(x, i, !x.w.scc),
        0x05 => |x, i| branch_if(x, i, x.w.scc),
        0x06 => |x, i| branch_if(x, i, x.vcc() == 0),
        0x07 => |x, i| branch_if(x, i, x.vcc() != 0),
        0x08 => |x, i| branch_if(x, i, x.exec() == 0),
        0x09 => |x, i| branch_if(x, i, x.exec() != 0),
        0x0a => |x, _| x.w.state = WaveState::Barrier,
        // A halted wave waits for a debugger, and there is none.
        0x0d => |x, i| {
            if i.literal & 1 != 0 {
                trap(x, i, 0);
            }
        },
        0x0e => |x, _| x.w.state = WaveState::Yield,
        0x10 => |x, i| {
            if i.literal & 15 == 1 {
                let event = x.m0();
                x.mem.memory().interrupt(event);
            }
        },
        0x12 => |x, i| trap(x, i, i.literal & 0xff),
        // Branches that are taken when a debugger is attached.
        0x17..=0x1a => |_, _| {},
        0x1c => |x, _| x.w.index_mode = 0,
        0x1d => |x, i| x.w.index_mode = (i.literal & 15) as u8,
        _ => return None,
    };
    Some(handler)
}

/// Executes `s_trap`. Traps for the debugger (3) are ignored; all others end the dispatch.
fn trap(x: &mut Exec<'_>, i: &Inst, id: u32) {
    if id == 3 {
        return;
    }
    let site = x.site(x.address_of(i), x.exec());
    x.fail(Fault::Trap { id, site });
}

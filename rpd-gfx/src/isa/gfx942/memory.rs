//! Atomics of packed numbers in LDS.

use crate::isa::atomics::{add_bf16_pairs, add_halves};
use crate::isa::ds::modify32;
use crate::isa::inst::Handler;

/// The operation of a DS opcode.
pub(super) fn lds(opcode: u32) -> Option<Handler> {
    Some(match opcode {
        0x17 => |x, i| modify32(x, i, false, |old, data, _| add_halves(old, data)),
        0x18 => |x, i| modify32(x, i, false, |old, data, _| add_bf16_pairs(old, data)),
        0xb7 => |x, i| modify32(x, i, true, |old, data, _| add_halves(old, data)),
        0xb8 => |x, i| modify32(x, i, true, |old, data, _| add_bf16_pairs(old, data)),
        _ => return None,
    })
}

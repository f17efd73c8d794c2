//! Decodes arbitrary bytes as a thread trace, after a valid header of each generation. Decoding must end, and what it
//! reports must be consistent.
//!
//! The first byte of the input selects the generation. The traced code has a loop, a branch and a call.

use rpd_att::{Code, Pc, Record, decode};
use rpd_gfx::disasm::Instruction;

use super::assert_one_line;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "thread-trace",
    run,
    seeds,
    longest: 4096,
    mutations: 3000,
};

/// Headers: an MI300, and versions 2, 3 and 4 of the hardware's.
const HEADERS: [[u8; 8]; 4] = [
    [0x11, 0xa0, 0x1f, 0, 0, 0, 0, 0],
    [0x11, 0x81, 0, 0, 0, 0, 0, 0],
    [0x91, 0x81, 0, 0, 0, 0, 0, 0],
    [0x11, 0x82, 0, 0, 0, 0, 0, 0],
];

/// Register writes that announce code object 3 and a kernel in it, and the start of a wave, for GFX9 and for GFX11.
const GFX9: &[u8] = &[
    0x02, 0x00, 0x42, 0xc3, 0x00, 0x52, 0x4f, 0x43, 0x02, 0x00, 0x42, 0xc3, 0x04, 0x01, 0x00, 0x00,
    0x02, 0x00, 0x42, 0xc3, 0x00, 0x00, 0x01, 0x00, 0x02, 0x00, 0x42, 0xc3, 0x04, 0x00, 0x00, 0x00,
    0x02, 0x00, 0x42, 0xc3, 0x0e, 0x00, 0x00, 0x00, 0x0f, 0x18, 0x10, 0x00, 0x00, 0x00, 0x43, 0x00,
    0x04, 0x00, 0x0d, 0x02, 0x00, 0x00, 0x1a, 0x00, 0x1d, 0x03, 0x00, 0x00, 0x1d, 0x02, 0x00, 0x00,
    0x1a, 0x28, 0x56, 0x00,
];
const GFX11: &[u8] = &[
    0x09, 0x02, 0x42, 0xc3, 0x00, 0x52, 0x4f, 0x43, 0x09, 0x82, 0x0c, 0x00, 0x10, 0x00, 0x00, 0x00,
    0x09, 0x82, 0x0d, 0x00, 0x7f, 0x00, 0x00, 0x00, 0x6c, 0x44, 0x80, 0x00, 0x68, 0x22, 0x22, 0xd0,
    0x15, 0x94, 0x04, 0x00, 0x33, 0x51, 0x8f, 0x10,
];

fn seeds() -> Vec<Vec<u8>> {
    let with = |generation: u8, bytes: &[u8]| [&[generation], bytes].concat();
    vec![
        with(0, GFX9),
        with(1, GFX11),
        with(2, GFX11),
        with(3, GFX11),
        // A reset of the clock without a time stamp, and one with it.
        with(0, &[0x00, 0x20, 0x00, 0x20, 0x01, 0, 1, 2, 3, 4, 5, 6]),
        with(0, &[]),
    ]
}

/// Code in which the same eight instructions repeat endlessly.
struct Lines;

impl Code for Lines {
    fn instruction(&mut self, pc: Pc) -> Option<Instruction> {
        let text = match pc.address / 4 % 8 {
            0 => "s_load_dword s0, s[0:1], 0x0",
            1 => "v_add_u32_e32 v0, v0, v1",
            2 => "s_waitcnt vmcnt(0)",
            3 => "s_cbranch_scc1 65531",
            4 => "s_swappc_b64 s[30:31], s[0:1]",
            5 => "s_barrier",
            6 => "global_load_dword v0, v1, s[0:1]",
            _ => "s_nop 0",
        };
        (pc.address < 1 << 20).then(|| Instruction::from_text(text, 4, pc.address))
    }
}

fn run(input: &[u8]) {
    let Some((generation, bytes)) = input.split_first() else {
        return;
    };
    let header = HEADERS[usize::from(*generation) % HEADERS.len()];
    let stream = [&header[..], bytes].concat();
    let mut instructions = 0;
    let mut sink = |record: Record<'_>| {
        if let Record::Wave(wave) = record {
            assert!(wave.begin <= wave.end, "{wave:?}");
            instructions += wave.instructions.len();
            for instruction in wave.instructions {
                assert!(instruction.duration >= 0, "{instruction:?}");
            }
        }
    };
    match decode(&stream[..], &mut Lines, &mut sink) {
        Ok(diagnosis) => {
            assert_eq!(diagnosis.bytes, stream.len() as u64);
            diagnosis.to_string().lines().for_each(assert_one_line);
            // The shortest token that adds instructions has two bytes, and adds at most 16 waves.
            assert!(instructions <= 16 * stream.len(), "{instructions}");
        }
        Err(error) => assert_one_line(&error.to_string()),
    }
}

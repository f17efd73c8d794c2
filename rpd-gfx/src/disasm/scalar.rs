//! Text of scalar instructions and scalar memory instructions.

use super::Printer;
use super::gfx11;
use super::table::{Encoding, Field, Generation, Operand};
use super::text::{counts_text, small_or_hexadecimal};

/// Names of the hardware registers that `s_getreg_b32` reads, by number.
const HARDWARE_REGISTERS: [&str; 20] = [
    "",
    "MODE",
    "STATUS",
    "TRAPSTS",
    "HW_ID",
    "GPR_ALLOC",
    "LDS_ALLOC",
    "IB_STS",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "SH_MEM_BASES",
    "TBA_LO",
    "TBA_HI",
    "TMA_LO",
    "TMA_HI",
];

impl Printer {
    /// Prints SOP1, SOP2, SOPK, SOPC and SOPP.
    pub(super) fn scalar(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        let gfx11 = self.generation == Generation::Gfx11;
        let low = if self.row.encoding == Encoding::Sopk {
            0
        } else {
            8
        };
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Sdst => self.scalar_register(self.bits(16, 7), operand.width)?,
                Field::Src0 => self.scalar_source(self.bits(0, 8), operand)?,
                Field::Src1 => self.scalar_source(self.bits(8, 8), operand)?,
                Field::Imm16 => match self.immediate() {
                    Some(text) => text,
                    None => continue,
                },
                Field::Label => self.bits(0, 16).to_string(),
                Field::Hwreg => self.hardware_register(),
                Field::GprIdx if self.row.encoding == Encoding::Sopc => {
                    index_mode(self.bits(low, 8))
                }
                Field::GprIdx => index_mode(self.bits(0, 16)),
                Field::Hex16 => format!("{:#x}", self.bits(0, 16)),
                Field::Version => gfx11::version(self.bits(0, 16)),
                Field::Waitcnt if gfx11 => gfx11::wait_counts(self.bits(0, 16)),
                Field::Waitcnt => wait_counts(self.bits(0, 16)),
                Field::Depctr => gfx11::dependency_counts(self.bits(0, 16)),
                Field::Delay => gfx11::delay(self.bits(0, 16))?,
                Field::Sendmsg if gfx11 => gfx11::message(self.bits(0, 16)),
                Field::Sendmsg => message(self.bits(0, 16)),
                Field::Rtnmsg => gfx11::message(self.bits(0, 8)),
                Field::Literal => self.long_literal(),
                Field::Fixed(text) => text.to_owned(),
                _ => return None,
            };
            self.operand(&text);
        }
        Some(())
    }

    fn scalar_source(&mut self, code: u32, operand: &Operand) -> Option<String> {
        // Codes of control dwords (SDWA, DPP) and of LDS are not valid here.
        if matches!(code, 249 | 250 | 254) {
            return None;
        }
        self.source(code, operand).map(|source| source.text)
    }

    /// The literal of an instruction whose encoding always has one.
    fn long_literal(&mut self) -> String {
        self.literal(super::table::Type::Word)
    }

    /// The 16-bit immediate of SOPK and SOPP.
    fn immediate(&self) -> Option<String> {
        let value = self.bits(0, 16);
        Some(match self.row.mnemonic {
            _ if self.row.encoding == Encoding::Sopk => format!("{value:#x}"),
            "s_endpgm" if value == 0 => return None,
            "s_endpgm" => value.to_string(),
            _ => small_or_hexadecimal(value),
        })
    }

    fn hardware_register(&self) -> String {
        let (id, offset, size) = (self.bits(0, 6), self.bits(6, 5), self.bits(11, 5) + 1);
        let added = match (self.generation, id) {
            (Generation::Gfx940, 20) => Some(&"XCC_ID"),
            (Generation::Gfx940, 21) => Some(&"SQ_PERF_SNAPSHOT_DATA"),
            (Generation::Gfx940, 22) => Some(&"SQ_PERF_SNAPSHOT_DATA1"),
            (Generation::Gfx940, 23) => Some(&"SQ_PERF_SNAPSHOT_PC_LO"),
            (Generation::Gfx940, 24) => Some(&"SQ_PERF_SNAPSHOT_PC_HI"),
            (Generation::Gfx11, _) => gfx11::HARDWARE_REGISTERS.get(id as usize).or(Some(&"")),
            _ => None,
        };
        let name = match added.or(HARDWARE_REGISTERS.get(id as usize)) {
            Some(name) if !name.is_empty() => format!("HW_REG_{name}"),
            _ => id.to_string(),
        };
        if offset == 0 && size == 32 {
            format!("hwreg({name})")
        } else {
            format!("hwreg({name}, {offset}, {size})")
        }
    }

    /// Prints SMEM.
    pub(super) fn scalar_memory(&mut self) -> Option<()> {
        self.push(self.row.mnemonic);
        for operand in self.row.operands {
            let text = match operand.field {
                Field::Sdata => self.scalar_register(self.bits(6, 7), operand.width)?,
                Field::Sbase => self.scalar_register(self.bits(0, 6) << 1, operand.width)?,
                Field::Probe => small_or_hexadecimal(self.bits(6, 7)),
                Field::Soffset => self.scalar_offset()?,
                _ => return None,
            };
            self.operand(&text);
        }
        if self.row.operand(Field::Sdata).is_some() && self.row.operand(Field::Sbase).is_some() {
            self.flag(16, " glc");
        }
        Some(())
    }

    fn scalar_offset(&self) -> Option<String> {
        let (immediate, both) = (self.bits(17, 1) != 0, self.bits(14, 1) != 0);
        let number = || {
            let value = ((self.bits(32, 21) << 11) as i32) >> 11;
            let sign = if value < 0 { "-" } else { "" };
            format!("{sign}{:#x}", value.unsigned_abs())
        };
        Some(match (immediate, both) {
            (true, false) => number(),
            (false, false) => self.scalar_register(self.bits(32, 7), 1)?,
            (false, true) => self.scalar_register(self.bits(32 + 25, 7), 1)?,
            (true, true) => format!(
                "{} offset:{}",
                self.scalar_register(self.bits(32 + 25, 7), 1)?,
                number()
            ),
        })
    }
}

/// Text of the operands that `s_set_gpr_idx_on` indexes.
fn index_mode(value: u32) -> String {
    if value > 15 {
        return format!("{value:#x}");
    }
    let names = ["SRC0", "SRC1", "SRC2", "DST"];
    let on: Vec<_> = names
        .iter()
        .enumerate()
        .filter(|(n, _)| value >> n & 1 != 0)
        .map(|(_, name)| *name)
        .collect();
    format!("gpr_idx({})", on.join(","))
}

/// Text of the counters that `s_waitcnt` of GFX9 waits for. Counters with the maximum are omitted, unless all have
/// it.
fn wait_counts(value: u32) -> String {
    counts_text(&[
        ("vmcnt", value & 15 | value >> 10 & 0x30, 63),
        ("expcnt", value >> 4 & 7, 7),
        ("lgkmcnt", value >> 8 & 15, 15),
    ])
}

/// Text of the message of `s_sendmsg` of GFX9.
fn message(value: u32) -> String {
    let (id, operation, stream) = (value & 15, value >> 4 & 7, value >> 8 & 3);
    let plain = [
        "",
        "MSG_INTERRUPT",
        "",
        "",
        "MSG_SAVEWAVE",
        "MSG_STALL_WAVE_GEN",
        "MSG_HALT_WAVES",
        "MSG_ORDERED_PS_DONE",
        "MSG_EARLY_PRIM_DEALLOC",
        "MSG_GS_ALLOC_REQ",
        "MSG_GET_DOORBELL",
    ];
    let geometry =
        ["GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"].get(operation as usize);
    let system = match operation {
        1 => Some("SYSMSG_OP_ECC_ERR_INTERRUPT"),
        2 => Some("SYSMSG_OP_REG_RD"),
        4 => Some("SYSMSG_OP_TTRACE_PC"),
        _ => None,
    };
    match (id, plain.get(id as usize), geometry, system) {
        (1 | 4.., Some(name), ..) if !name.is_empty() && operation | stream == 0 => {
            format!("sendmsg({name})")
        }
        (3, _, Some(name), _) if operation | stream == 0 => format!("sendmsg(MSG_GS_DONE, {name})"),
        (2, _, Some(name), _) if operation != 0 => format!("sendmsg(MSG_GS, {name}, {stream})"),
        (3, _, Some(name), _) if operation != 0 => {
            format!("sendmsg(MSG_GS_DONE, {name}, {stream})")
        }
        (15, _, _, Some(name)) if stream == 0 => format!("sendmsg(MSG_SYSMSG, {name})"),
        _ if value & !0x37f != 0 => value.to_string(),
        _ => format!("sendmsg({id}, {operation}, {stream})"),
    }
}

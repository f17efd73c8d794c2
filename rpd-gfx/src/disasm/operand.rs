//! Text of registers and constants.

use super::Printer;
use super::table::{Generation, Operand, Type};

/// Text of one or several consecutive registers: `v4`, `v[4:5]`.
pub(super) fn registers(class: &str, first: u32, width: u8) -> String {
    match width {
        1 => format!("{class}{first}"),
        _ => format!("{class}[{first}:{}]", first + u32::from(width) - 1),
    }
}

/// Text of the registers of a resource descriptor or sampler. The field counts in units of four registers.
pub(super) fn descriptor(generation: Generation, number: u32, width: u8) -> Option<String> {
    let first = number << 2;
    match first {
        0..=101 | 104 if first <= 101 || generation == Generation::Gfx11 => {
            Some(registers("s", first, width))
        }
        108..=123 => Some(registers("ttmp", first - 108, width)),
        124 if generation == Generation::Gfx11 => Some("null".to_owned()),
        _ => None,
    }
}

/// Text of a scalar register; `None` if the code is not that of one.
pub(super) fn scalar_register(generation: Generation, code: u32, width: u8) -> Option<String> {
    let gfx11 = generation == Generation::Gfx11;
    let named = |low: &str| {
        let names = match (code - if width == 1 { code & 1 } else { 0 }, low) {
            (102, _) => "flat_scratch",
            (104, _) => "xnack_mask",
            (106, _) => "vcc",
            (126, _) => "exec",
            _ => return None,
        };
        Some(format!("{names}{low}"))
    };
    // Tuples begin at multiples of their size, at most of four registers.
    let aligned = |number: u32| number & !(u32::from(width).next_power_of_two().min(4) - 1);
    match code {
        0..=105 if gfx11 || code <= 101 => {
            // LLVM prints a tuple that begins with the last registers as if there were more registers.
            Some(registers("s", aligned(code), width))
        }
        102..=107 | 126 | 127 => match width {
            1 => named(if code.is_multiple_of(2) { "_lo" } else { "_hi" }),
            2 => named("").or_else(|| match code & 1 {
                // On GFX11, tuples begin at even registers.
                1 if !gfx11 => scalar_register(generation, code & !1, width),
                _ => None,
            }),
            _ => None,
        },
        108..=123 => {
            let first = aligned(code - 108);
            (first + u32::from(width) <= 16).then(|| registers("ttmp", first, width))
        }
        124 | 125 if (code == 125) != gfx11 => Some("null".to_owned()),
        124 | 125 if width == 1 => Some("m0".to_owned()),
        _ => None,
    }
}

/// Text of an inline constant; `None` if the code is not that of one.
fn inline_constant(code: u32, kind: Type) -> Option<String> {
    let float = |text: &str, half: &str| match kind {
        Type::Short | Type::Part => half.to_owned(),
        _ => text.to_owned(),
    };
    Some(match code {
        128..=192 => (code - 128).to_string(),
        193..=208 => format!("-{}", code - 192),
        235 => "src_shared_base".to_owned(),
        236 => "src_shared_limit".to_owned(),
        237 => "src_private_base".to_owned(),
        238 => "src_private_limit".to_owned(),
        239 => "src_pops_exiting_wave_id".to_owned(),
        240 => float("0.5", "0x3800"),
        241 => float("-0.5", "0xb800"),
        242 => float("1.0", "0x3c00"),
        243 => float("-1.0", "0xbc00"),
        244 => float("2.0", "0x4000"),
        245 => float("-2.0", "0xc000"),
        246 => float("4.0", "0x4400"),
        247 => float("-4.0", "0xc400"),
        248 if matches!(kind, Type::Double | Type::Long) => "0.15915494309189532".to_owned(),
        248 => float("0.15915494", "0x3118"),
        251 => "src_vccz".to_owned(),
        252 => "src_execz".to_owned(),
        253 => "src_scc".to_owned(),
        254 => "src_lds_direct".to_owned(),
        _ => return None,
    })
}

/// Text of a 32-bit value for which there is an inline constant; `None` for other values.
fn inlinable(value: u32) -> Option<&'static str> {
    Some(match value {
        0x3f00_0000 => "0.5",
        0xbf00_0000 => "-0.5",
        0x3f80_0000 => "1.0",
        0xbf80_0000 => "-1.0",
        0x4000_0000 => "2.0",
        0xc000_0000 => "-2.0",
        0x4080_0000 => "4.0",
        0xc080_0000 => "-4.0",
        0x3e22_f983 => "0.15915494",
        _ => return None,
    })
}

/// Text of a 16-bit value for which there is an inline constant; `None` for other values.
fn inlinable_half(value: u32) -> Option<&'static str> {
    Some(match value {
        0x3800 => "0.5",
        0xb800 => "-0.5",
        0x3c00 => "1.0",
        0xbc00 => "-1.0",
        0x4000 => "2.0",
        0xc000 => "-2.0",
        0x4400 => "4.0",
        0xc400 => "-4.0",
        0x3118 => "0.15915494",
        _ => return None,
    })
}

/// Text of a literal. Values for which there are inline constants are printed like these.
pub(super) fn literal(value: u32, kind: Type) -> String {
    let small = |value: i32| (-16..=64).contains(&value).then(|| value.to_string());
    match kind {
        Type::Half => {
            let half = value & 0xffff;
            small(i32::from(half as u16 as i16))
                .or_else(|| inlinable_half(half).map(str::to_owned))
                .unwrap_or_else(|| format!("{half:#x}"))
        }
        Type::Halves => small(value as i32)
            .or_else(|| inlinable_half(value).map(str::to_owned))
            .unwrap_or_else(|| format!("{value:#x}")),
        Type::Bf16Pair => small(value as i32).unwrap_or_else(|| format!("{value:#x}")),
        Type::Short | Type::Part => small(value as i32)
            .or_else(|| inlinable(value).map(str::to_owned))
            .unwrap_or_else(|| format!("{:#x}", value & 0xffff)),
        Type::Long if value <= 64 => value.to_string(),
        Type::Double if value == 0 => value.to_string(),
        Type::Long | Type::Double => format!("{value:#x}"),
        _ => small(value as i32)
            .or_else(|| inlinable(value).map(str::to_owned))
            .unwrap_or_else(|| format!("{value:#x}")),
    }
}

/// Text of a source operand.
pub(super) struct Source {
    pub(super) text: String,
    /// Whether the source is a constant, not a register.
    pub(super) constant: bool,
}

/// Text of one half of one of the first 128 vector registers.
pub(super) fn part(code: u32) -> String {
    let half = if code & 0x80 == 0 { "l" } else { "h" };
    format!("v{}.{half}", code & 0x7f)
}

impl Printer {
    /// Text of a scalar register; `None` if the code is not that of one.
    pub(super) fn scalar_register(&self, code: u32, width: u8) -> Option<String> {
        scalar_register(self.generation, code, width)
    }

    /// The source with this nine-bit code. A literal is read from the dword after the instruction.
    pub(super) fn source(&mut self, code: u32, operand: &Operand) -> Option<Source> {
        let (text, constant) = match code {
            256.. if operand.kind == Type::Accumulation => {
                (registers("a", code - 256, operand.width), false)
            }
            256.. if operand.kind == Type::Part => (part(code - 256), false),
            256.. => (registers("v", code - 256, operand.width), false),
            255 => {
                let at = self.row.dwords();
                self.length = at + 1;
                (self.literal(operand.kind), true)
            }
            _ => match self.scalar_register(code, operand.width) {
                Some(text) => (text, false),
                None => (
                    inline_constant(code, operand.kind)?,
                    (128..=208).contains(&code) || (240..=248).contains(&code),
                ),
            },
        };
        Some(Source { text, constant })
    }

    /// Reads the literal after the instruction.
    pub(super) fn literal(&mut self, kind: Type) -> String {
        let at = self.row.dwords();
        self.length = at + 1;
        literal(self.words[at as usize], kind)
    }
}

//! Tokens of RDNA: multiples of four bits, the first bit lowest; up to eight bits tell the type.

use std::io::Read;

use crate::header::Generation;
use crate::window::Window;

/// Types of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum RdnaKind {
    Inst,
    ValuInst,
    ImmOne,
    Immediate,
    WaveReady,
    NewPc,
    WaveStart,
    WaveStartExt,
    WaveAlloc,
    WaveEnd,
    ShaderData,
    ShaderDataShort,
    UtilCounter,
    Time,
    Nop,
    Misc,
    Event,
    EventSync,
    Register,
    RegisterInit,
    Timestamp,
    Header,
    ExecPopcount1,
    ExecPopcount3,
    VmemExec,
    AluExec,
}

/// Bit pattern and length of a type of token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenForm {
    /// Type of the token.
    pub(crate) kind: RdnaKind,
    /// Value of the lowest `pattern_bits` bits.
    pub(crate) pattern: u8,
    /// Bits of the pattern.
    pub(crate) pattern_bits: u8,
    /// Bits of the token.
    pub(crate) bits: u8,
    /// First bit of the time that passes before the token.
    pub(crate) time_from: u8,
    /// Bits of that time.
    pub(crate) time_bits: u8,
}

const fn form(
    kind: RdnaKind,
    pattern: u8,
    pattern_bits: u8,
    bits: u8,
    time_from: u8,
    time_bits: u8,
) -> TokenForm {
    TokenForm {
        kind,
        pattern,
        pattern_bits,
        bits,
        time_from,
        time_bits,
    }
}

/// The tokens of GFX10; later generations replace some.
const GFX10: &[TokenForm] = &[
    form(RdnaKind::Inst, 0b010, 3, 20, 4, 3),
    form(RdnaKind::ValuInst, 0b011, 3, 12, 3, 3),
    form(RdnaKind::ImmOne, 0b1101, 4, 12, 4, 3),
    form(RdnaKind::Immediate, 0b0_0100, 5, 24, 5, 3),
    form(RdnaKind::WaveReady, 0b1_0100, 5, 24, 5, 3),
    form(RdnaKind::NewPc, 0b010_0001, 7, 64, 8, 3),
    form(RdnaKind::WaveStart, 0b0_1100, 5, 32, 5, 2),
    form(RdnaKind::WaveStartExt, 0b1_1100, 5, 48, 5, 2),
    form(RdnaKind::WaveAlloc, 0b0_0101, 5, 20, 5, 3),
    form(RdnaKind::WaveEnd, 0b1_0101, 5, 20, 5, 3),
    form(RdnaKind::ShaderData, 0b0_0110, 5, 52, 5, 3),
    form(RdnaKind::ShaderDataShort, 0b1_0110, 5, 28, 5, 3),
    form(RdnaKind::UtilCounter, 0b011_0001, 7, 64, 7, 2),
    form(RdnaKind::Time, 0b1000, 4, 8, 4, 4),
    form(RdnaKind::Nop, 0b0000, 4, 4, 0, 0),
    form(RdnaKind::Misc, 0b101_0001, 7, 24, 7, 9),
    form(RdnaKind::Event, 0b0110_0001, 8, 24, 8, 3),
    form(RdnaKind::EventSync, 0b1110_0001, 8, 32, 8, 3),
    form(RdnaKind::Register, 0b1001, 4, 64, 4, 3),
    form(RdnaKind::RegisterInit, 0b111_0001, 7, 64, 7, 3),
    form(RdnaKind::Timestamp, 0b000_0001, 7, 64, 16, 48),
    form(RdnaKind::Header, 0b001_0001, 7, 64, 0, 0),
    form(RdnaKind::VmemExec, 0b1111, 4, 8, 4, 2),
    form(RdnaKind::AluExec, 0b1110, 4, 8, 4, 2),
];

/// Forms of GFX11 that replace those of GFX10.
const GFX11: &[TokenForm] = &[
    form(RdnaKind::UtilCounter, 0b011_0001, 7, 48, 7, 2),
    form(RdnaKind::Timestamp, 0b000_0001, 7, 48, 12, 36),
];

/// Forms of GFX12 that replace those of GFX11.
const GFX12: &[TokenForm] = &[
    form(RdnaKind::Inst, 0b010, 3, 20, 3, 3),
    form(RdnaKind::ShaderData, 0b000_0110, 7, 56, 7, 3),
    form(RdnaKind::ShaderDataShort, 0b100_0110, 7, 32, 7, 3),
    form(RdnaKind::ExecPopcount1, 0b110_0110, 7, 24, 7, 3),
    form(RdnaKind::ExecPopcount3, 0b01_0110, 6, 48, 6, 3),
    form(RdnaKind::NewPc, 0b010_0001, 7, 72, 8, 3),
    form(RdnaKind::WaveStartExt, 0b1_1100, 5, 40, 5, 2),
    form(RdnaKind::WaveAlloc, 0b0_0101, 5, 24, 5, 3),
    form(RdnaKind::Timestamp, 0b000_0001, 7, 64, 12, 52),
];

/// All types of token that a generation has.
pub(crate) fn forms(generation: Generation) -> Vec<TokenForm> {
    let mut forms = GFX10.to_vec();
    let mut replace = |with: &[TokenForm]| {
        for form in with {
            match forms.iter_mut().find(|known| known.kind == form.kind) {
                Some(known) => *known = *form,
                None => forms.push(*form),
            }
        }
    };
    if generation >= Generation::Gfx11 {
        replace(GFX11);
    }
    if generation >= Generation::Gfx12 {
        replace(GFX12);
    }
    forms
}

/// Forms by the lowest eight bits.
type Table = [Option<TokenForm>; 256];

fn table(generation: Generation) -> Table {
    let mut table = [None; 256];
    for form in forms(generation) {
        let step = 1usize << form.pattern_bits;
        for entry in table
            .iter_mut()
            .skip(usize::from(form.pattern))
            .step_by(step)
        {
            *entry = Some(form);
        }
    }
    table
}

/// One token, with the time at which it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RdnaToken {
    /// Type.
    pub(crate) kind: RdnaKind,
    /// The token's first 64 bits; for NEW_PC of GFX12 the 64 bits after the first eight.
    pub(crate) word: u64,
    /// Cycles.
    pub(crate) time: i64,
    /// Offset in the stream, in bytes.
    pub(crate) offset: u64,
}

/// A field of a word.
#[inline]
pub(super) fn bits(word: u64, low: u32, count: u32) -> u64 {
    (word >> low) & ((1 << count) - 1)
}

/// Role of a time stamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    Delta(u64),
    Realtime(u64),
    Lost(Option<u64>),
    Other,
}

/// Cuts a stream into tokens.
pub(crate) struct Tokens<'w, R> {
    window: &'w mut Window<R>,
    generation: Generation,
    table: Box<Table>,
    time: i64,
    /// Whether the next token begins in the upper half of a byte.
    odd: bool,
    /// Behind WAVE_START_EXT of GFX12.
    extended: bool,
    pub(super) lost: bool,
    pub(super) realtime: Option<u64>,
    pub(super) truncated: Option<u64>,
    pub(super) unknown: u64,
    pub(super) first_unknown: Option<u64>,
    pub(super) count: u64,
}

impl<'w, R: Read> Tokens<'w, R> {
    pub(crate) fn new(window: &'w mut Window<R>, generation: Generation) -> Self {
        Self {
            window,
            generation,
            table: Box::new(table(generation)),
            time: 0,
            odd: false,
            extended: false,
            lost: false,
            realtime: None,
            truncated: None,
            unknown: 0,
            first_unknown: None,
            count: 0,
        }
    }

    pub(super) fn time(&self) -> i64 {
        self.time
    }

    /// The 64 bits at the cursor, `bytes` further on.
    #[inline]
    fn peek(&self, bytes: usize) -> u64 {
        let word = self.window.word(bytes);
        if self.odd {
            word >> 4 | self.window.word(bytes + 8) << 60
        } else {
            word
        }
    }

    /// Bits that are left.
    #[inline]
    fn left(&self) -> usize {
        self.window.available() * 8 - if self.odd { 4 } else { 0 }
    }

    #[inline]
    fn skip(&mut self, bits: usize) {
        let from = if self.odd { 4 } else { 0 } + bits;
        self.window.advance(from / 8);
        self.odd = !from.is_multiple_of(8);
    }

    fn stamp(&self, word: u64) -> Stamp {
        match self.generation {
            Generation::Gfx12 => match (bits(word, 7, 1), bits(word, 8, 1)) {
                (0, 0) => Stamp::Delta(word >> 12),
                (0, _) => Stamp::Lost(Some(word >> 12)),
                (_, 0) => Stamp::Realtime(word >> 12),
                _ => Stamp::Other,
            },
            Generation::Gfx11 => {
                let value = bits(word, 12, 36);
                match (bits(word, 9, 1), bits(word, 8, 1)) {
                    (0, 0) => Stamp::Delta(value),
                    (1, 0) => Stamp::Realtime(value),
                    _ => Stamp::Lost(Some(value)),
                }
            }
            _ => match bits(word, 14, 2) {
                1 => Stamp::Delta(word >> 16),
                2 => Stamp::Realtime(word >> 16),
                _ => Stamp::Other,
            },
        }
    }

    /// The next token that is not about time alone.
    #[inline]
    pub(crate) fn next_token(&mut self) -> Option<RdnaToken> {
        loop {
            // A token of 72 bits from the middle of a byte on.
            self.window.has(32);
            let left = self.left();
            if left < 4 {
                return None;
            }
            let word = self.peek(0);
            if self.extended {
                if word & 1 == 1 && left >= 8 {
                    self.skip(8);
                    continue;
                }
                self.extended = false;
            }
            if word == 0 {
                self.skip(left.min(64));
                continue;
            }
            let Some(form) = self.table[(word & 0xFF) as usize] else {
                self.unknown += 1;
                self.first_unknown.get_or_insert(self.window.offset());
                self.skip(4);
                continue;
            };
            if form.kind == RdnaKind::Nop {
                self.skip(4);
                continue;
            }
            let offset = self.window.offset();
            if usize::from(form.bits) > left {
                self.truncated = Some(offset);
                self.skip(left);
                return None;
            }
            let kind = form.kind;
            let content = if form.bits == 72 { self.peek(1) } else { word };
            self.skip(usize::from(form.bits));
            self.count += 1;
            if kind == RdnaKind::Timestamp {
                match self.stamp(word) {
                    Stamp::Delta(cycles) => self.pass(cycles),
                    Stamp::Lost(cycles) => {
                        self.pass(cycles.unwrap_or(0));
                        self.lost = true;
                    }
                    Stamp::Realtime(clock) => {
                        self.realtime = Some(clock);
                        // Delivered, so that the pair of clocks is.
                        return Some(RdnaToken {
                            kind,
                            word,
                            time: self.time,
                            offset,
                        });
                    }
                    Stamp::Other => {}
                }
                continue;
            }
            let delta = bits(word, form.time_from.into(), form.time_bits.into());
            if kind == RdnaKind::Time {
                self.time += delta as i64 + 4;
                continue;
            }
            self.time += delta as i64;
            if self.generation == Generation::Gfx12 && kind == RdnaKind::WaveStartExt {
                self.extended = true;
            }
            return Some(RdnaToken {
                kind,
                word: content,
                time: self.time,
                offset,
            });
        }
    }

    /// Moves the clock on by as much as a time stamp says.
    fn pass(&mut self, cycles: u64) {
        // A trace of centuries is not one.
        self.time = self.time.saturating_add(cycles as i64).min(1 << 60);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_28_patterns_are_prefix_free() {
        for generation in [Generation::Gfx10, Generation::Gfx11, Generation::Gfx12] {
            let forms = forms(generation);
            for (index, a) in forms.iter().enumerate() {
                for b in &forms[index + 1..] {
                    let common = a.pattern_bits.min(b.pattern_bits);
                    let mask = (1u16 << common) as u8;
                    let mask = mask.wrapping_sub(1);
                    assert_ne!(
                        a.pattern & mask,
                        b.pattern & mask,
                        "{generation:?} {a:?} {b:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn gfx11_leaves_50_entries_without_the_exec_tokens() {
        let exec = |form: &TokenForm| matches!(form.kind, RdnaKind::VmemExec | RdnaKind::AluExec);
        let table = table(Generation::Gfx11);
        let assigned = table.iter().flatten().filter(|form| !exec(form)).count();
        assert_eq!(256 - assigned, 50);
    }
}

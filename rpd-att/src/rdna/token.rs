//! Tokens of RDNA: multiples of four bits, the first bit lowest; up to eight bits are the type.

use std::io::Read;

use super::batch::Batch;
use crate::header::Generation;
use crate::window::Window;

/// Types of token of GFX10 to GFX12.
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

/// Bit pattern and length by which a type of token is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenForm {
    /// Type of the tokens with this form.
    pub(crate) kind: RdnaKind,
    /// Value of the lowest `pattern_bits` bits.
    pub(crate) pattern: u8,
    /// Number of bits that are compared with `pattern`.
    pub(crate) pattern_bits: u8,
    /// Length of the token in bits.
    pub(crate) bits: u8,
    /// First bit of the field with the cycles that pass before the token.
    pub(crate) time_from: u8,
    /// Length in bits of the field with the cycles that pass before the token.
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

/// Forms of the tokens of GFX10; later generations replace some of them.
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

/// Forms of all types of token that a generation has.
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

/// Steps that cutting off a token takes. Tokens up to [`Role::Time`], nearly all, need only their entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// The token is delivered, as most are.
    Plain,
    /// The token is not delivered: only its time counts.
    Time,
    /// The token is delivered, and longer than [`SHORT`].
    Long,
    /// The token is four bits without meaning.
    Padding,
    /// A token with a value of a clock, or with the cycles that were lost.
    TimeStamp,
    /// The token has more than 64 bits.
    Wide,
    /// Words of eight bits that extend the token can follow.
    Extended,
    /// No type of token has these bits.
    Unknown,
}

/// Greatest length in bits of a token after which [`most_of_word_at`] holds the lowest eight bits of the next one.
const SHORT: u8 = 52;

/// Properties of a token that its lowest eight bits determine, from which its end is found.
#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: RdnaKind,
    role: Role,
    /// Length of the token in units of four bits.
    nibbles: u8,
    /// First bit of the time that passes before the token.
    time_from: u8,
    /// Mask of the time field, moved to the lowest bits.
    time_mask: u16,
    /// Cycles that pass before the token in addition to the time field.
    implied: u8,
    /// Whether the type is WAVE_READY.
    ready: bool,
}

impl Entry {
    const UNKNOWN: Self = Self {
        kind: RdnaKind::Nop,
        role: Role::Unknown,
        nibbles: 1,
        time_from: 0,
        time_mask: 0,
        implied: 0,
        ready: false,
    };

    fn from_form(form: &TokenForm, generation: Generation) -> Self {
        let role = match form.kind {
            RdnaKind::Time => Role::Time,
            RdnaKind::Nop => Role::Padding,
            RdnaKind::Timestamp => Role::TimeStamp,
            RdnaKind::WaveStartExt if generation == Generation::Gfx12 => Role::Extended,
            _ if form.bits > 64 => Role::Wide,
            _ if form.bits > SHORT => Role::Long,
            _ => Role::Plain,
        };
        Self {
            kind: form.kind,
            role,
            nibbles: form.bits / 4,
            time_from: form.time_from,
            // A stamp's time has more bits and its own meaning.
            time_mask: match role {
                Role::TimeStamp | Role::Padding => 0,
                _ => (1 << form.time_bits) - 1,
            },
            implied: match role {
                Role::Time => 4,
                _ => 0,
            },
            ready: form.kind == RdnaKind::WaveReady,
        }
    }
}

/// Entries by the lowest eight bits.
type Table = [Entry; 256];

fn table(generation: Generation) -> Table {
    let mut table = [Entry::UNKNOWN; 256];
    for form in forms(generation) {
        let step = 1usize << form.pattern_bits;
        for entry in table
            .iter_mut()
            .skip(usize::from(form.pattern))
            .step_by(step)
        {
            *entry = Entry::from_form(&form, generation);
        }
    }
    table
}

/// A token of the stream, with the time at which it is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RdnaToken {
    /// Type of the token.
    pub(crate) kind: RdnaKind,
    /// The token's first 64 bits; for NEW_PC of GFX12 the 64 bits after the first eight.
    pub(crate) word: u64,
    /// Cycle of the shader clock.
    pub(crate) time: i64,
    /// Offset in the stream, in bytes.
    pub(crate) offset: u64,
}

/// The `count` bits of `word` from bit `low` on.
#[inline]
pub(super) fn bits(word: u64, low: u32, count: u32) -> u64 {
    (word >> low) & ((1 << count) - 1)
}

/// Content of a token TIMESTAMP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeStamp {
    /// This number of cycles passes.
    Delta(u64),
    /// The real-time clock has this value.
    Realtime(u64),
    /// Tokens were dropped while this number of cycles passed.
    Lost(u64),
    /// The token has no effect.
    Other,
}

impl TimeStamp {
    /// Reads the token TIMESTAMP of a generation.
    pub(super) fn parse(generation: Generation, word: u64) -> Self {
        match generation {
            Generation::Gfx12 => match (bits(word, 7, 1), bits(word, 8, 1)) {
                (0, 0) => TimeStamp::Delta(word >> 12),
                (0, _) => TimeStamp::Lost(word >> 12),
                (_, 0) => TimeStamp::Realtime(word >> 12),
                _ => TimeStamp::Other,
            },
            Generation::Gfx11 => {
                let value = bits(word, 12, 36);
                match (bits(word, 9, 1), bits(word, 8, 1)) {
                    (0, 0) => TimeStamp::Delta(value),
                    (1, 0) => TimeStamp::Realtime(value),
                    _ => TimeStamp::Lost(value),
                }
            }
            _ => match bits(word, 14, 2) {
                1 => TimeStamp::Delta(word >> 16),
                2 => TimeStamp::Realtime(word >> 16),
                _ => TimeStamp::Other,
            },
        }
    }
}

/// Largest number of bytes, from its begin on, that are read to cut off a token; rounded up.
const REACH: usize = 32;

/// The 64 bits of the stream from position `at` on, which counts units of four bits.
#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    let from = at / 2;
    let Some(found) = bytes.get(from..from + 16) else {
        return 0;
    };
    let both = u128::from_le_bytes(found.try_into().unwrap_or_default());
    (both >> (4 * (at % 2))) as u64
}

/// The 60 bits of the stream from position `at` on, which counts units of four bits; 64 bits from the begin of a byte.
/// Most tokens need no more than 60, which are available sooner than 64.
#[inline(always)]
fn most_of_word_at(bytes: &[u8], at: usize) -> u64 {
    let from = at / 2;
    let Some(found) = bytes.get(from..).and_then(<[u8]>::first_chunk) else {
        return 0;
    };
    u64::from_le_bytes(*found) >> (4 * (at % 2))
}

/// Position in a stream, with the bits at it.
struct Cursor<'b> {
    bytes: &'b [u8],
    /// Position in units of four bits from the first byte.
    at: usize,
    /// The next 60 bits, often 64.
    word: u64,
    /// The lowest eight bits of `word`.
    low: u8,
}

impl<'b> Cursor<'b> {
    fn new(bytes: &'b [u8], at: usize) -> Self {
        let word = most_of_word_at(bytes, at);
        Self {
            bytes,
            at,
            word,
            low: word as u8,
        }
    }

    /// Moves on by this number of units of four bits.
    #[inline(always)]
    fn advance(&mut self, nibbles: usize) {
        self.at += nibbles;
        self.word = most_of_word_at(self.bytes, self.at);
        self.low = self.word as u8;
    }

    /// Moves on by a token of `nibbles` units, which is at most [`SHORT`] bits long, to `next`.
    #[inline(always)]
    fn advance_short(&mut self, nibbles: u8, next: usize) {
        // The length of a token follows from its lowest bits, and where the next one begins from that: they are taken from the word
        // that is there already, which is sooner than memory answers.
        self.low = (self.word >> (u32::from(nibbles) * 4 % 64)) as u8;
        self.at = next;
        self.word = most_of_word_at(self.bytes, next);
    }

    /// Moves on to the end of the words that extend a token, or to `stop`. Returns whether more such words may follow.
    fn skip_extension(&mut self, stop: usize, end: usize) -> bool {
        while self.at < stop {
            if self.word & 1 == 0 || end - self.at < 2 {
                return false;
            }
            self.advance(2);
        }
        true
    }
}

/// A stream that is cut into tokens.
pub(crate) struct Tokens<'w, R> {
    window: &'w mut Window<R>,
    generation: Generation,
    table: Box<Table>,
    time: i64,
    /// Whether the next token begins in the upper half of a byte.
    odd: bool,
    /// Whether the last token is a WAVE_START_EXT of GFX12 that further words may extend.
    extended: bool,
    pub(super) truncated: Option<u64>,
    pub(super) unknown: u64,
    pub(super) first_unknown: Option<u64>,
    pub(super) count: u64,
}

/// Time after which time stamps are ignored: a stream that reaches it is damaged.
const LATEST: i64 = 1 << 60;

impl<'w, R: Read> Tokens<'w, R> {
    pub(crate) fn new(window: &'w mut Window<R>, generation: Generation) -> Self {
        Self {
            window,
            generation,
            table: Box::new(table(generation)),
            time: 0,
            odd: false,
            extended: false,
            truncated: None,
            unknown: 0,
            first_unknown: None,
            count: 0,
        }
    }

    /// Cuts off tokens until the batch is full, or until no token is left, which returns false. Tokens that only pass
    /// time are left out.
    pub(crate) fn fill(&mut self, batch: &mut Batch) -> bool {
        loop {
            let more = self.window.has(REACH);
            let end = 2 * self.window.available();
            // The next token begins before `stop`, so each iteration consumes a token.
            let stop = if more { end - 2 * REACH + 2 } else { end };
            let at = self.cut(batch, stop, end);
            self.window.advance(at / 2);
            self.odd = at % 2 == 1;
            if batch.is_full() {
                return true;
            }
            if !more {
                return false;
            }
        }
    }

    /// Cuts off the tokens that begin before `stop` while the batch has room. The stream is known up to `end`. Returns
    /// the position of the next token. All positions count units of four bits.
    #[inline(never)]
    fn cut(&mut self, batch: &mut Batch, stop: usize, end: usize) -> usize {
        let bytes = self.window.bytes();
        let start = self.window.offset();
        let table = &*self.table;
        let mut cursor = Cursor::new(bytes, usize::from(self.odd));
        if self.extended {
            self.extended = cursor.skip_extension(stop, end);
        }
        let (mut time, mut count) = (self.time, self.count);
        let room = batch.room();
        let (mut filled, mut has_ready) = (0, false);
        // Nothing here comes near the ends of its type: with checks for that it takes a tenth longer.
        while cursor.at < stop
            && let Some(place) = room.get_mut(filled)
        {
            let (at, word) = (cursor.at, cursor.word);
            let entry = table[usize::from(cursor.low)];
            let offset = start.wrapping_add(at as u64 / 2);
            let cycles = (word >> (entry.time_from % 64)) as u16 & entry.time_mask;
            let passed = i64::from(cycles).wrapping_add(entry.implied.into());
            let mut token = RdnaToken {
                kind: entry.kind,
                word,
                time: time.wrapping_add(passed),
                offset,
            };
            let next = at.wrapping_add(entry.nibbles.into());
            if next > end {
                self.truncated = Some(offset);
                cursor.at = end;
                break;
            }
            if entry.role <= Role::Time {
                cursor.advance_short(entry.nibbles, next);
                time = token.time;
                count = count.wrapping_add(1);
                has_ready |= entry.ready;
                *place = token;
                // Without a branch for those that are not delivered: where they are cannot be foreseen.
                filled = filled.wrapping_add(usize::from(entry.role == Role::Plain));
                continue;
            }
            token.word = word_at(bytes, at);
            // Zeros are padding, and a whole word of them is passed at once.
            let nibbles = match token.word {
                0 => 16.min(end - at),
                _ => usize::from(entry.nibbles),
            };
            cursor.advance(nibbles);
            let delivered = match entry.role {
                Role::Padding => continue,
                Role::Unknown => {
                    self.unknown += 1;
                    self.first_unknown.get_or_insert(offset);
                    continue;
                }
                Role::TimeStamp => {
                    let stamp = TimeStamp::parse(self.generation, token.word);
                    if let TimeStamp::Delta(cycles) | TimeStamp::Lost(cycles) = stamp {
                        // Limits times in damaged traces, so that later sums do not overflow, and never goes back.
                        let cycles = i64::try_from(cycles).unwrap_or(i64::MAX);
                        token.time = time.saturating_add(cycles).min(LATEST).max(time);
                    }
                    matches!(stamp, TimeStamp::Realtime(_) | TimeStamp::Lost(_))
                }
                Role::Wide => {
                    // This token is longer than a word: all of its fields are in the word after its first eight bits.
                    token.word = word_at(bytes, at + 2);
                    true
                }
                Role::Extended => {
                    self.extended = cursor.skip_extension(stop, end);
                    true
                }
                Role::Plain | Role::Long => true,
                Role::Time => false,
            };
            time = token.time;
            count += 1;
            *place = token;
            filled += usize::from(delivered);
        }
        batch.add(filled, has_ready);
        (self.time, self.count) = (time, count);
        cursor.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks thread-trace-28.
    #[test]
    fn token_patterns_are_prefix_free() {
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
    fn gfx11_has_50_unassigned_token_entries_without_the_exec_tokens() {
        let is_exec = |entry: &Entry| matches!(entry.kind, RdnaKind::VmemExec | RdnaKind::AluExec);
        let table = table(Generation::Gfx11);
        let unassigned = |entry: &&Entry| entry.role == Role::Unknown || is_exec(entry);
        assert_eq!(table.iter().filter(unassigned).count(), 50);
    }
}

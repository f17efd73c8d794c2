//! Tokens of GFX9: whole bytes, little-endian; the low four bits are the type, and the type gives the length.

/// Length of a token in bytes, by its type, which is the lowest four bits.
const LENGTHS: [u8; 16] = [2, 8, 8, 4, 2, 6, 2, 2, 2, 2, 2, 8, 6, 4, 8, 6];

/// Number of bytes of the token that begins with the byte `first`.
#[inline]
pub(crate) fn token_length(first: u8) -> usize {
    usize::from(LENGTHS[usize::from(first & 0xF)])
}

/// Number of waves that a SIMD holds.
pub(crate) const SLOTS: usize = 10;

/// Content of a token of type MISC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misc {
    /// The token has no effect besides its time.
    Time,
    /// The clock is set by the next time stamp.
    TimeReset,
    /// The hardware dropped tokens.
    PacketLost,
    /// The command processor waits for caches (SURFACE_SYNC).
    SurfSync,
    /// The trace's buffers are full, and the shader engine stands still.
    StallBegin,
    /// The shader engine runs again.
    StallEnd,
    /// The waves of the shader engine are saved.
    SaveContext,
    /// The waves of the shader engine are killed.
    ShootDown,
}

/// Place of a wave on the shader engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Number of the shader array.
    pub sh: u8,
    /// Number of the compute unit in the shader array.
    pub cu: u8,
    /// Number of the SIMD in the compute unit, from 0.
    pub simd: u8,
    /// Number of the wave slot in the SIMD, from 0; more than 9 in damaged streams.
    pub slot: u8,
}

/// Token of a GFX9 stream, with its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gfx9Token {
    /// Time passes, or the state of the trace changes.
    Misc(Misc),
    /// Value of the clock at the preceding TIME_RESET.
    Timestamp(u64),
    /// A register of the command processor was written.
    Register {
        /// Micro engine of the command processor, as in the token.
        me: u8,
        /// Pipe of the micro engine.
        pipe: u8,
        /// Whether the write before this one was dropped.
        dropped: bool,
        /// Number of the register.
        address: u16,
        /// Value written.
        data: u32,
    },
    /// The hardware starts a wave.
    WaveStart {
        /// Place of the wave.
        place: Place,
        /// Micro engine of the command processor, as in the token.
        me: u8,
        /// Pipe of the micro engine.
        pipe: u8,
        /// Field of the token that is above 64 when a wave is saved or restored.
        count: u8,
    },
    /// Resources for a wave were allocated.
    WaveAlloc(Place),
    /// A write to a compute register.
    Compute {
        /// Micro engine of the command processor, as in the token.
        me: u8,
        /// Pipe of the micro engine.
        pipe: u8,
        /// Number of the compute register.
        address: u8,
        /// Value written.
        data: u32,
    },
    /// The wave at this place ended.
    WaveEnd(Place),
    /// An event of the pipeline, whose kind is not decoded.
    Event,
    /// An instruction was completed.
    Inst {
        /// Number of the wave slot in the SIMD, from 0.
        slot: u8,
        /// Number of the SIMD in the compute unit, from 0.
        simd: u8,
        /// Type of the instruction, a number of the token format.
        kind: u8,
    },
    /// The program counter of a wave.
    InstPc {
        /// Number of the wave slot in the SIMD, from 0.
        slot: u8,
        /// Number of the SIMD in the compute unit, from 0.
        simd: u8,
        /// Address of the next instruction, in bytes.
        address: u64,
    },
    /// A value that a wave wrote.
    ShaderData {
        /// Wave that wrote the value.
        place: Place,
        /// Content of the register or the immediate.
        data: u32,
    },
    /// Action of each wave of a SIMD in this cycle.
    Issue {
        /// Number of the SIMD in the compute unit, from 0.
        simd: u8,
        /// Two bits for each slot: 0 nothing, 1 stalled, 2 issued, 3 immediate.
        states: u32,
    },
    /// Four counter values.
    Perf {
        /// Number of the shader array.
        sh: u8,
        /// Number of the compute unit in the shader array.
        cu: u8,
        /// Number of the bank, from 0: bank n has the requested counters 4n to 4n+3.
        bank: u8,
        /// Values since the sample before.
        values: [u16; 4],
    },
}

#[inline]
fn bits(word: u64, low: u32, count: u32) -> u64 {
    (word >> low) & ((1 << count) - 1)
}

#[inline]
fn place(word: u64) -> Place {
    Place {
        sh: bits(word, 5, 1) as u8,
        cu: bits(word, 6, 4) as u8,
        slot: bits(word, 10, 4) as u8,
        simd: bits(word, 14, 2) as u8,
    }
}

/// Cycles that pass before the token that begins with `word`.
#[inline]
pub(crate) fn delta(word: u64) -> i64 {
    let units = match word & 0xF {
        0 => bits(word, 4, 8),
        1 => 0,
        _ => bits(word, 4, 1),
    };
    units as i64 * 4
}

impl Gfx9Token {
    /// Reads the token that begins with `word`; bits after it do not matter.
    #[inline(always)]
    pub fn parse(word: u64) -> Self {
        let field = |low, count| bits(word, low, count);
        match word & 0xF {
            0 => Gfx9Token::Misc(match field(13, 3) {
                0 => Misc::Time,
                1 => Misc::TimeReset,
                2 => Misc::PacketLost,
                3 => Misc::SurfSync,
                4 => Misc::StallBegin,
                5 => Misc::StallEnd,
                6 => Misc::SaveContext,
                _ => Misc::ShootDown,
            }),
            1 => Gfx9Token::Timestamp(field(16, 48)),
            2 => Gfx9Token::Register {
                pipe: field(5, 2) as u8,
                me: field(7, 2) as u8,
                dropped: field(9, 1) == 1,
                address: field(16, 16) as u16,
                data: (word >> 32) as u32,
            },
            3 => Gfx9Token::WaveStart {
                place: place(word),
                pipe: field(16, 2) as u8,
                me: field(18, 2) as u8,
                count: field(22, 7) as u8,
            },
            4 => Gfx9Token::WaveAlloc(place(word)),
            5 | 15 => Gfx9Token::Compute {
                pipe: field(5, 2) as u8,
                me: field(7, 2) as u8,
                address: field(9, 7) as u8,
                data: field(16, 32) as u32,
            },
            6 => Gfx9Token::WaveEnd(place(word)),
            7..=9 => Gfx9Token::Event,
            10 => Gfx9Token::Inst {
                slot: field(5, 4) as u8,
                simd: field(9, 2) as u8,
                kind: field(11, 5) as u8,
            },
            11 => Gfx9Token::InstPc {
                slot: field(5, 4) as u8,
                simd: field(9, 2) as u8,
                address: field(16, 48) * 4,
            },
            12 => Gfx9Token::ShaderData {
                place: place(word),
                data: field(16, 32) as u32,
            },
            13 => Gfx9Token::Issue {
                simd: field(5, 2) as u8,
                states: field(8, 20) as u32,
            },
            _ => Gfx9Token::Perf {
                sh: field(5, 1) as u8,
                cu: field(6, 4) as u8,
                bank: field(10, 2) as u8,
                values: [12, 25, 38, 51].map(|low| field(low, 13) as u16),
            },
        }
    }
}

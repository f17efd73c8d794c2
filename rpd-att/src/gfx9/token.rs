//! Tokens of GFX9: whole bytes, little-endian; the low four bits are the type, and the type gives the length.

/// Bytes of the 16 types of token.
const LENGTHS: [u8; 16] = [2, 8, 8, 4, 2, 6, 2, 2, 2, 2, 2, 8, 6, 4, 8, 6];

/// Bytes of the token that begins with this byte.
#[inline]
pub(crate) fn token_length(first: u8) -> usize {
    usize::from(LENGTHS[usize::from(first & 0xF)])
}

/// Waves of a SIMD.
pub(crate) const SLOTS: usize = 10;

/// Content of a token of type MISC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misc {
    /// Only time passes.
    Time,
    /// The clock is set by the next time stamp.
    TimeReset,
    /// Tokens were dropped.
    PacketLost,
    /// A surface synchronisation.
    SurfSync,
    /// The trace stalls the shader engine.
    StallBegin,
    /// The stall ended.
    StallEnd,
    /// Waves are saved.
    SaveContext,
    /// Waves are shot down.
    ShootDown,
}

/// Location of a wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Shader array.
    pub sh: u8,
    /// Compute unit.
    pub cu: u8,
    /// Number of the SIMD.
    pub simd: u8,
    /// Slot in the SIMD; more than 9 in damaged streams.
    pub slot: u8,
}

/// A token of a GFX9 stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gfx9Token {
    /// Time and state of the trace.
    Misc(Misc),
    /// The value of the clock, for a reset before it.
    Timestamp(u64),
    /// A register write.
    Register {
        /// Micro engine, as in the token.
        me: u8,
        /// Number of the pipe.
        pipe: u8,
        /// The write before this one was dropped.
        dropped: bool,
        /// Register.
        address: u16,
        /// Value.
        data: u32,
    },
    /// A wave begins.
    WaveStart {
        /// The wave's place on the GPU.
        place: Place,
        /// Micro engine, as in the token.
        me: u8,
        /// Number of the pipe.
        pipe: u8,
        /// Count; above 64 when a wave is saved or restored.
        count: u8,
    },
    /// Resources for a wave were allocated.
    WaveAlloc(Place),
    /// A write to a compute register.
    Compute {
        /// Micro engine, as in the token.
        me: u8,
        /// Number of the pipe.
        pipe: u8,
        /// Register.
        address: u8,
        /// Value.
        data: u32,
    },
    /// A wave ended.
    WaveEnd(Place),
    /// An event of the pipeline.
    Event,
    /// An instruction was completed.
    Inst {
        /// Slot of the wave on its SIMD.
        slot: u8,
        /// Number of the SIMD.
        simd: u8,
        /// Type of instruction.
        kind: u8,
    },
    /// The program counter of a wave.
    InstPc {
        /// Slot of the wave on its SIMD.
        slot: u8,
        /// Number of the SIMD.
        simd: u8,
        /// Address.
        address: u64,
    },
    /// A value that a wave wrote.
    ShaderData {
        /// Which wave.
        place: Place,
        /// The value that the shader wrote.
        data: u32,
    },
    /// Action of each wave of a SIMD in this cycle.
    Issue {
        /// Number of the SIMD.
        simd: u8,
        /// Two bits for each slot: 0 nothing, 1 stalled, 2 issued, 3 immediate.
        states: u32,
    },
    /// Four counter values.
    Perf {
        /// Shader array.
        sh: u8,
        /// Compute unit.
        cu: u8,
        /// Which four counters.
        bank: u8,
        /// Values of the counters.
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

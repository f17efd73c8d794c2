//! Schedules: the order in which the waves of workgroups execute instructions.

/// Number of instructions of a wave before the next wave of the workgroup has its turn: the smallest that costs at
/// most a twentieth of the speed of arithmetic.
pub(super) const QUANTUM: u64 = 32;
/// Number of instructions of a wave's turn if no other wave needs one, or if caches are counted: see
/// [`Schedule::Whole`].
const LONG: u64 = 1 << 14;
/// Number of instructions of a workgroup's first turn, after which another workgroup has a turn, so that workgroups can
/// wait for each other. Nearly all workgroups end earlier; each that does not occupies memory until its next turn.
const FIRST_TURN: u64 = 1 << 20;
/// Number of instructions of a workgroup's later turns. The workgroup may be waiting for others, in a loop.
const NEXT_TURN: u64 = 1 << 12;

/// An order of execution.
#[derive(Debug, Clone)]
pub(super) enum Schedule {
    /// Waves run one after the other until they wait. Counts of cache events then do not depend on [`QUANTUM`].
    Whole,
    /// Waves take turns of [`QUANTUM`] instructions.
    Turns,
    /// Waves, workgroups and lengths of turns are random. The same seed yields the same schedule.
    Drawn(Random),
}

impl Schedule {
    /// Index, among `count` waves, of the wave that has turn number `nth` of a round.
    #[inline]
    pub(super) fn wave(&mut self, nth: usize, count: usize) -> usize {
        match self {
            Self::Whole | Self::Turns => nth,
            Self::Drawn(random) => random.below(count as u64) as usize,
        }
    }

    /// Number of instructions of a wave before the next of `waves` waves has its turn.
    #[inline]
    pub(super) fn turn(&mut self, waves: usize) -> u64 {
        match self {
            Self::Turns if waves > 1 => QUANTUM,
            Self::Whole | Self::Turns => LONG,
            // Powers of two are equally likely as lengths.
            Self::Drawn(random) => {
                let most = 1 << random.below(9);
                1 + random.below(most)
            }
        }
    }

    /// Number of instructions of a workgroup's turn; `first` is its first turn.
    pub(super) fn group_turn(&mut self, first: bool) -> u64 {
        match self {
            Self::Whole | Self::Turns if first => FIRST_TURN,
            Self::Whole | Self::Turns => NEXT_TURN,
            Self::Drawn(random) => {
                let most = 1 << random.below(13);
                1 + random.below(most)
            }
        }
    }

    /// Whether the next workgroup starts while `resident` are in execution. False has one of the latter continue.
    pub(super) fn starts(&mut self, resident: usize) -> bool {
        match self {
            Self::Whole | Self::Turns => true,
            Self::Drawn(random) => random.below(resident as u64 + 1) == 0,
        }
    }

    /// Number of turns after which all `resident` workgroups have had one, and after which other threads of the host
    /// may run.
    pub(super) fn turns_of_round(&self, resident: usize) -> usize {
        match self {
            Self::Whole | Self::Turns => resident,
            // Turns are short.
            Self::Drawn(_) => resident.max(256),
        }
    }

    /// Index, among the `resident` workgroups, of the one that continues.
    pub(super) fn group(&mut self, resident: usize) -> usize {
        match self {
            Self::Whole | Self::Turns => 0,
            Self::Drawn(random) => random.below(resident as u64) as usize,
        }
    }
}

/// Pseudo-random numbers (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers for a seed and the `nth` dispatch.
    pub(super) fn new(seed: u64, nth: u64) -> Self {
        let mut random = Self(seed);
        Self(random.next() ^ nth.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A random number from 0 to `limit - 1`; `limit` is not 0.
    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

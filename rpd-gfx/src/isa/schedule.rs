//! Which wave of which workgroup executes how many instructions next.

/// Instructions of a wave after which the next wave of its workgroup gets a turn: the fewest that cost no more than a
/// twentieth of the speed of arithmetic.
pub(super) const QUANTUM: u64 = 32;
/// The same where no other wave needs a turn, or caches are counted: see [`Schedule::Whole`].
const LONG: u64 = 1 << 14;
/// Instructions of a workgroup after which others get a turn, so that workgroups may wait for each other. Nearly all end before:
/// each that does not takes memory while it waits for its next turn.
const FIRST_TURN: u64 = 1 << 20;
/// The same when it had a turn before: it may be waiting for others, and then looks in vain all the time.
const NEXT_TURN: u64 = 1 << 12;

/// An order of execution.
#[derive(Debug, Clone)]
pub(super) enum Schedule {
    /// Waves run until they wait, one after the other. Counts of caches do not then depend on a quantum.
    Whole,
    /// Waves take turns of [`QUANTUM`] instructions.
    Turns,
    /// Waves, workgroups and the lengths of their turns are drawn. The same numbers make the same schedule.
    Drawn(Random),
}

impl Schedule {
    /// The wave, of `count`, whose turn the `nth` of a round is.
    #[inline]
    pub(super) fn wave(&mut self, nth: usize, count: usize) -> usize {
        match self {
            Self::Whole | Self::Turns => nth,
            Self::Drawn(random) => random.below(count as u64) as usize,
        }
    }

    /// Number of instructions that a wave executes before the next one of the `waves` of its workgroup does.
    #[inline]
    pub(super) fn turn(&mut self, waves: usize) -> u64 {
        match self {
            Self::Turns if waves > 1 => QUANTUM,
            Self::Whole | Self::Turns => LONG,
            // Short turns are as likely as long ones, on a scale of powers of two.
            Self::Drawn(random) => {
                let most = 1 << random.below(9);
                1 + random.below(most)
            }
        }
    }

    /// Instructions of a workgroup's turn, the `first` or one after it.
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

    /// Whether the next workgroup starts while `resident` others are in execution; if not, one of them continues.
    pub(super) fn starts(&mut self, resident: usize) -> bool {
        match self {
            Self::Whole | Self::Turns => true,
            Self::Drawn(random) => random.below(resident as u64 + 1) == 0,
        }
    }

    /// Turns of workgroups after which all of the `resident` ones have had one, and enough was done to let other threads
    /// of the host go on.
    pub(super) fn turns_of_round(&self, resident: usize) -> usize {
        match self {
            Self::Whole | Self::Turns => resident,
            // These are short.
            Self::Drawn(_) => resident.max(256),
        }
    }

    /// Which of the `resident` workgroups continues.
    pub(super) fn group(&mut self, resident: usize) -> usize {
        match self {
            Self::Whole | Self::Turns => 0,
            Self::Drawn(random) => random.below(resident as u64) as usize,
        }
    }
}

/// Numbers that a seed determines (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers of a seed for the `nth` dispatch.
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

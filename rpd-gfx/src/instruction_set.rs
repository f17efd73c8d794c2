//! The instruction sets that are executed.

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// CDNA 2.
    Gfx90a,
    /// CDNA 3.
    Gfx942,
}

impl InstructionSet {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Gfx90a, Self::Gfx942];

    /// Its processor.
    pub fn processor(self) -> &'static str {
        match self {
            Self::Gfx90a => "gfx90a",
            Self::Gfx942 => "gfx942",
        }
    }

    /// The set of a processor; `None` if its code is not executed.
    pub fn of(processor: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|set| set.processor() == processor)
    }
}

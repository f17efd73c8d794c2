//! The instruction sets that are executed.

macro_rules! instruction_sets {
    ($($(#[$doc:meta])* $set:ident = $processor:literal;)*) => {
        /// An instruction set.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum InstructionSet {
            $($(#[$doc])* $set,)*
        }

        impl InstructionSet {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$set,)*];

            /// Name of the processor that has it, such as `gfx90a`.
            pub fn processor(self) -> &'static str {
                match self {
                    $(Self::$set => $processor,)*
                }
            }
        }
    };
}

instruction_sets! {
    /// CDNA 2.
    Gfx90a = "gfx90a";
    /// CDNA 3.
    Gfx942 = "gfx942";
}

impl InstructionSet {
    /// The set of a processor; `None` if its code is not executed.
    pub fn of(processor: &str) -> Option<Self> {
        let mut sets = Self::ALL.iter().copied();
        sets.find(|set| set.processor() == processor)
    }
}

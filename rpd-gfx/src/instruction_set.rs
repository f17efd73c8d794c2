//! The instruction sets that the interpreter executes.

macro_rules! instruction_sets {
    ($($(#[$doc:meta])* $set:ident = $processor:literal;)*) => {
        /// An instruction set that the interpreter executes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum InstructionSet {
            $($(#[$doc])* $set,)*
        }

        impl InstructionSet {
            /// Every instruction set.
            pub const ALL: &'static [Self] = &[$(Self::$set,)*];

            /// Name of the processor with this instruction set, such as `gfx90a`.
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
    /// The instruction set of a processor; `None` if the interpreter does not execute it.
    pub fn from_processor(processor: &str) -> Option<Self> {
        let mut sets = Self::ALL.iter().copied();
        sets.find(|set| set.processor() == processor)
    }
}

//! Options for recording memory accesses of kernels, where the provider can follow their instructions.

/// The instructions whose executions are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum AccessTrace {
    /// No instructions are recorded.
    #[default]
    Off,
    /// Instructions that access memory are recorded.
    Mem,
    /// All instructions are recorded.
    Inst,
}

impl AccessTrace {
    /// Every choice with its word on the command line and its number for the provider.
    pub const WORDS: [(AccessTrace, &'static str, u32); 3] = [
        (AccessTrace::Off, "off", 0),
        (AccessTrace::Mem, "mem", 1),
        (AccessTrace::Inst, "inst", 2),
    ];

    /// The level's word on the command line.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(choice, ..)| *choice == self);
        found.map_or("", |(_, word, _)| word)
    }

    /// The level's number in recordings.
    pub fn number(self) -> u32 {
        let found = Self::WORDS.iter().find(|(choice, ..)| *choice == self);
        found.map_or(0, |(.., number)| *number)
    }

    /// The choice with this word.
    pub fn from_word(word: &str) -> Option<AccessTrace> {
        let found = Self::WORDS.iter().find(|(_, known, _)| *known == word);
        found.map(|(choice, ..)| *choice)
    }
}

/// Name of the file in a run's directory with the kernels that are recorded: `NAME` or `NAME#N` in each line. Without it all are.
pub const KERNELS_FILE: &str = "access-kernels";
/// Name of the directory with the recording, in the directory of a process and in a capture.
pub const DIRECTORY: &str = "accesses";

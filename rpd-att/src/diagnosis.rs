//! Lost and undecodable parts of a stream, with their positions.

use std::fmt;

/// Result of decoding a stream, complete at its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnosis {
    /// Length of the stream in bytes.
    pub bytes: u64,
    /// Tokens that were decoded.
    pub tokens: u64,
    /// Number of waves of the traced compute unit.
    pub waves: u64,
    /// Number of instructions that the waves of the traced compute unit executed.
    pub instructions: u64,
    /// Instructions of known code objects that could not be matched with an address.
    pub unmatched: u64,
    /// Instructions of waves that run in no known code object.
    pub without_code: u64,
    /// Code objects that the stream names. Without one no instruction has an address.
    pub code_objects: u64,
    /// Waves of the traced compute unit without an end in the trace.
    pub incomplete_waves: u64,
    /// Number of times that the hardware reported dropped tokens.
    pub lost: u64,
    /// Offset in bytes and time in cycles of the first report of dropped tokens; `None` if there is none.
    pub first_lost: Option<(u64, i64)>,
    /// Tokens that contradict the format, such as a wave in a slot that does not exist.
    pub invalid: u64,
    /// Offset in bytes of the first invalid token; `None` if there is none.
    pub first_invalid: Option<u64>,
    /// Offset in bytes of a last token that is cut off; `None` if the stream is complete.
    pub truncated: Option<u64>,
    /// Waves that end without having begun in the trace.
    pub ends_without_start: u64,
}

impl Diagnosis {
    pub(crate) fn invalid_token(&mut self, offset: u64) {
        self.invalid += 1;
        self.first_invalid.get_or_insert(offset);
    }
}

impl fmt::Display for Diagnosis {
    /// One line for each fault; nothing for a stream without faults.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((offset, time)) = self.first_lost {
            writeln!(
                f,
                "the GPU dropped tokens {}, first at byte {offset} (cycle {time}); a smaller shader engine mask, fewer SIMDs or fewer counters lower the bandwidth",
                match self.lost {
                    1 => "once".to_owned(),
                    times => format!("{times} times"),
                }
            )?;
        }
        if let Some(offset) = self.first_invalid {
            writeln!(
                f,
                "tokens that contradict the format and were skipped: {}, the first at byte {offset}",
                self.invalid
            )?;
        }
        if let Some(offset) = self.truncated {
            writeln!(
                f,
                "the trace ends inside the token at byte {offset}; everything before it was decoded"
            )?;
        }
        if self.unmatched > 0 {
            writeln!(
                f,
                "instructions that do not match the code objects: {} of {}",
                self.unmatched, self.instructions
            )?;
        }
        if self.without_code > 0 {
            let why = match self.code_objects {
                0 => "the trace names no code object",
                _ => "the trace does not name their code object",
            };
            writeln!(
                f,
                "instructions that have a kind and no address, because {why}: {} of {}",
                self.without_code, self.instructions
            )?;
        }
        if self.incomplete_waves > 0 {
            writeln!(
                f,
                "waves whose end is not in the trace: {} of {}",
                self.incomplete_waves, self.waves
            )?;
        }
        if self.ends_without_start > 0 {
            writeln!(
                f,
                "waves whose begin is not in the trace: {}",
                self.ends_without_start
            )?;
        }
        Ok(())
    }
}

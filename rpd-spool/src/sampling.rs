//! Options of PC sampling.

/// Sampling method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum SamplingMethod {
    /// The hardware picks waves and reports the state of their issue logic.
    Stochastic,
    /// The driver interrupts waves periodically.
    HostTrap,
}

impl SamplingMethod {
    /// Every method.
    pub const ALL: [SamplingMethod; 2] = [SamplingMethod::Stochastic, SamplingMethod::HostTrap];

    /// Word of the method on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            SamplingMethod::Stochastic => "stochastic",
            SamplingMethod::HostTrap => "host_trap",
        }
    }

    /// Number of the method in the rocprofiler-sdk ABI.
    pub const fn number(self) -> u32 {
        match self {
            SamplingMethod::Stochastic => 1,
            SamplingMethod::HostTrap => 2,
        }
    }

    /// The method that a word means, in any case.
    pub fn from_word(word: &str) -> Option<SamplingMethod> {
        SamplingMethod::ALL
            .into_iter()
            .find(|method| method.word().eq_ignore_ascii_case(word))
    }
}

/// Unit of intervals between samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum SamplingUnit {
    /// The interval is a number of instructions.
    Instructions,
    /// Cycles of the compute unit.
    Cycles,
    /// Microseconds.
    Time,
}

impl SamplingUnit {
    /// Every unit.
    pub const ALL: [SamplingUnit; 3] = [
        SamplingUnit::Instructions,
        SamplingUnit::Cycles,
        SamplingUnit::Time,
    ];

    /// Word of the unit on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            SamplingUnit::Instructions => "instructions",
            SamplingUnit::Cycles => "cycles",
            SamplingUnit::Time => "time",
        }
    }

    /// Number of the unit in the rocprofiler-sdk ABI.
    pub const fn number(self) -> u32 {
        match self {
            SamplingUnit::Instructions => 1,
            SamplingUnit::Cycles => 2,
            SamplingUnit::Time => 3,
        }
    }

    /// Name of one unit in messages.
    pub const fn noun(self) -> &'static str {
        match self {
            SamplingUnit::Instructions => "instructions",
            SamplingUnit::Cycles => "cycles",
            SamplingUnit::Time => "us",
        }
    }

    /// The unit that a word means, in any case.
    pub fn from_word(word: &str) -> Option<SamplingUnit> {
        SamplingUnit::ALL
            .into_iter()
            .find(|unit| unit.word().eq_ignore_ascii_case(word))
    }
}

/// One configuration, for all GPUs that have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SamplingOptions {
    /// Sampling method.
    pub method: SamplingMethod,
    /// Unit of the interval.
    pub unit: SamplingUnit,
    /// Distance from one sample to the next, in units; at least 1.
    pub interval: u64,
}

impl SamplingOptions {
    /// `method:unit:interval`, as it travels to the collector.
    pub(crate) fn to_text(self) -> String {
        format!(
            "{}:{}:{}",
            self.method.word(),
            self.unit.word(),
            self.interval
        )
    }

    /// Reads [`SamplingOptions::to_text`]; `None` for anything else.
    pub(crate) fn from_text(text: &str) -> Option<SamplingOptions> {
        let mut parts = text.split(':');
        let options = SamplingOptions {
            method: SamplingMethod::from_word(parts.next()?)?,
            unit: SamplingUnit::from_word(parts.next()?)?,
            interval: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then_some(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampling_options_are_restored_from_their_text() {
        for method in SamplingMethod::ALL {
            for unit in SamplingUnit::ALL {
                let options = SamplingOptions {
                    method,
                    unit,
                    interval: 1 << 20,
                };
                assert_eq!(
                    SamplingOptions::from_text(&options.to_text()),
                    Some(options)
                );
            }
        }
        for text in ["", "host_trap", "host_trap:time:x", "host_trap:time:1:2"] {
            assert_eq!(SamplingOptions::from_text(text), None, "{text}");
        }
    }
}

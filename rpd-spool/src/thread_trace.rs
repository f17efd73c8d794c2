//! Options of thread traces, and the kernels that they select.

/// A counter that is sampled into the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TracedCounter {
    /// Name of the counter.
    pub name: String,
    /// SIMDs it is counted on, one bit each.
    pub simds: u8,
}

impl TracedCounter {
    /// All SIMDs of a compute unit.
    pub const ALL_SIMDS: u8 = 0xf;

    /// The name of the counter, followed by the SIMDs in hexadecimal where these are not all: `SQ_INSTS_VALU:3`.
    pub fn label(&self) -> String {
        if self.simds == Self::ALL_SIMDS {
            self.name.clone()
        } else {
            format!("{}:{:x}", self.name, self.simds)
        }
    }
}

/// Thread traces of kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct ThreadTraceOptions {
    /// Compute unit (RDNA: WGP) whose instructions are traced, in each traced shader engine.
    pub target_cu: u8,
    /// GFX9: SIMDs whose instructions are traced, one bit each. RDNA: the number of one.
    pub simds: u8,
    /// Shader engines that are traced, one bit each; not 0.
    pub engines: u32,
    /// Bytes of the buffer that the traced shader engines of a GPU share.
    pub buffer: u64,
    /// GPUs by their number among the GPUs; empty is all.
    pub gpus: Vec<u32>,
    /// Counters sampled into the trace, in the order in which they are shown.
    pub counters: Vec<TracedCounter>,
    /// Period of the counters' samples, 1 (shortest) to 32; 0 without counters.
    pub counter_period: u8,
    /// Whether kernels that are not traced run one after the other as well.
    pub serialize_all: bool,
    /// A trace that a selected kernel began continues for this many further kernels; 0: one trace for each selected kernel.
    pub consecutive: u64,
    /// Whether only the begin and end of waves is traced, not their instructions.
    pub no_detail: bool,
    /// Whether counters are sampled on the traced compute unit alone.
    pub target_counters: bool,
    /// Whether there is one trace of each GPU for the whole time that is recorded, without selecting dispatches.
    pub no_intercept: bool,
}

impl ThreadTraceOptions {
    /// Bytes of the buffer where the user gives no size.
    pub const BUFFER: u64 = 384 << 20;
    /// Smallest and largest buffer that the SDK takes.
    pub const BUFFERS: std::ops::RangeInclusive<u64> = 1 << 20..=2 << 30;
    /// Smallest part of the buffer that a shader engine can trace into.
    pub const LEAST_PER_ENGINE: u64 = 128 << 10;
    /// Most counters in a trace.
    pub const COUNTERS: usize = 8;

    /// Bytes that each traced shader engine can write: the SDK divides the buffer among 64 engines, of which those that are
    /// not traced keep a page each.
    pub fn bytes_per_engine(&self) -> u64 {
        const ENGINES: u64 = 64;
        const PAGE: u64 = 4096;
        let traced = u64::from(self.engines.count_ones()).max(1);
        self.buffer.saturating_sub((ENGINES - traced) * PAGE) / traced / PAGE * PAGE
    }

    /// `key:value` pairs joined by `/`, as they travel to the collector.
    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{}:{}:{}:{}:{}:{}:{}:{}:{}:{}",
            self.target_cu,
            self.simds,
            self.engines,
            self.buffer,
            self.counter_period,
            u8::from(self.serialize_all),
            self.consecutive,
            u8::from(self.no_detail),
            u8::from(self.target_counters),
            u8::from(self.no_intercept),
        );
        let gpus: Vec<String> = self.gpus.iter().map(u32::to_string).collect();
        text += &format!("/{}/", gpus.join("+"));
        let counters: Vec<String> = (self.counters.iter())
            .map(|counter| format!("{}:{}", counter.name, counter.simds))
            .collect();
        text + &counters.join("+")
    }

    /// Reads [`Self::to_text`]; `None` for anything else.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut groups = text.split('/');
        let mut numbers = groups.next()?.split(':').map(|word| word.parse::<u64>());
        let mut number = || numbers.next()?.ok();
        let mut options = Self {
            target_cu: u8::try_from(number()?).ok()?,
            simds: u8::try_from(number()?).ok()?,
            engines: u32::try_from(number()?).ok()?,
            buffer: number()?,
            counter_period: u8::try_from(number()?).ok()?,
            serialize_all: number()? != 0,
            consecutive: number()?,
            no_detail: number()? != 0,
            target_counters: number()? != 0,
            no_intercept: number()? != 0,
            ..Self::default()
        };
        // Options in front have fixed places; the lists follow in groups of their own, because they may be empty.
        let items = |text: &'_ str| -> Vec<String> {
            let items = text.split('+').filter(|item| !item.is_empty());
            items.map(str::to_owned).collect()
        };
        for gpu in items(groups.next()?) {
            options.gpus.push(gpu.parse().ok()?);
        }
        for counter in items(groups.next()?) {
            let (name, simds) = counter.split_once(':')?;
            options.counters.push(TracedCounter {
                name: name.to_owned(),
                simds: simds.parse().ok()?,
            });
        }
        // A further group would be of a newer front end, whose meaning nobody here knows.
        groups.next().is_none().then_some(options)
    }
}

impl Default for ThreadTraceOptions {
    fn default() -> Self {
        Self {
            target_cu: 1,
            simds: 0xf,
            engines: 1,
            buffer: Self::BUFFER,
            gpus: Vec::new(),
            counters: Vec::new(),
            counter_period: 0,
            serialize_all: false,
            consecutive: 0,
            no_detail: false,
            target_counters: false,
            no_intercept: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_trace_options_are_restored_from_their_text() {
        let plain = ThreadTraceOptions::default();
        let full = ThreadTraceOptions {
            target_cu: 15,
            simds: 3,
            engines: 0xffff_ffff,
            buffer: 2 << 30,
            gpus: vec![0, 3],
            counters: vec![
                TracedCounter {
                    name: "SQ_WAVES".to_owned(),
                    simds: 1,
                },
                TracedCounter {
                    name: "SQ_INSTS_VALU".to_owned(),
                    simds: 15,
                },
            ],
            counter_period: 3,
            serialize_all: true,
            consecutive: 16,
            no_detail: true,
            target_counters: true,
            no_intercept: true,
        };
        for options in [plain, full] {
            let text = options.to_text();
            assert_eq!(ThreadTraceOptions::from_text(&text), Some(options));
            assert!(!text.contains([',', '=']), "{text}");
        }
        for text in ["", "1:2", "1:15:1:1:0:0:0:0:0:0", "a:15:1:1:0:0:0:0:0:0//"] {
            assert_eq!(ThreadTraceOptions::from_text(text), None, "{text}");
        }
    }

    #[test]
    fn trace_buffer_is_divided_among_the_engines() {
        let per_engine = |buffer, engines| {
            let options = ThreadTraceOptions {
                buffer,
                engines,
                ..ThreadTraceOptions::default()
            };
            options.bytes_per_engine()
        };
        assert_eq!(per_engine(1 << 20, 1), (1 << 20) - 63 * 4096);
        // 16 engines share what 48 pages leave of 1 MiB.
        assert_eq!(per_engine(1 << 20, 0xffff), 13 * 4096);
        assert!(per_engine(1 << 20, 0xffff) < ThreadTraceOptions::LEAST_PER_ENGINE);
    }
}

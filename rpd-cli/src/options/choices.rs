//! Words of options that take one of several, each with its value.

use rpd_core::compat::Compat;
use rpd_core::environment::EnvironmentSelection;
use rpd_core::options::{
    AgentIndex, Backend, CudaGraphs, Format, Layout, LogLevel, ProviderChoice, RocpdSchema,
    SamplingMethod, SamplingUnit, Symbolize, Unit,
};
use rpd_spool::stacks::StackMode;

/// A value that the command line and jobs give as one of several words.
pub(crate) trait Choice: Copy + PartialEq + std::fmt::Debug + 'static {
    /// Every value.
    const ALL: &'static [Self];
    /// The word of each value of [`Choice::ALL`], in the same order, which is that of messages.
    const WORDS: &'static [&'static str];

    /// The word that stands for this value on the command line.
    fn word(self) -> &'static str;

    /// The value that a word means; `None` for any other word.
    fn from_word(word: &str, ignore_case: bool) -> Option<Self> {
        let is_same =
            |known: &&str| *known == word || (ignore_case && known.eq_ignore_ascii_case(word));
        let at = Self::WORDS.iter().position(is_same)?;
        Some(Self::ALL[at])
    }
}

/// Implements [`Choice`]. A variant without a word does not compile.
macro_rules! choices {
    ($($type:ident { $($variant:ident = $word:expr,)* })*) => {
        $(impl Choice for $type {
            const ALL: &'static [$type] = &[$($type::$variant,)*];
            const WORDS: &'static [&'static str] = &[$($word,)*];

            fn word(self) -> &'static str {
                match self {
                    $($type::$variant => $word,)*
                }
            }
        })*
    };
}

/// Declares enums that only options have, and implements [`Choice`] for them.
macro_rules! option_words {
    ($($(#[$doc:meta])* enum $type:ident { $($variant:ident = $word:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub(crate) enum $type {
                $($variant,)*
            }
        )*
        choices! { $($type { $($variant = $word,)* })* }
    };
}

impl Choice for Format {
    const ALL: &'static [Format] = Format::ALL;
    const WORDS: &'static [&'static str] = Format::WORDS;

    fn word(self) -> &'static str {
        Format::word(self)
    }
}

choices! {
    AgentIndex { Absolute = "absolute", Relative = "relative", TypeRelative = "type-relative", }
    Backend { Auto = "auto", Rocm = "rocm", Sim = "sim", Cuda = "cuda", }
    Compat { None = Compat::None.label(), Rocprofv3 = Compat::Rocprofv3.label(), }
    CudaGraphs { Auto = "auto", Node = "node", Graph = "graph", }
    EnvironmentSelection { Relevant = "relevant", All = "all", None = "none", }
    Layout { Rpd = "rpd", Original = "original", }
    LogLevel {
        Fatal = "fatal",
        Error = "error",
        Warning = "warning",
        Info = "info",
        Trace = "trace",
        Env = "env",
        Config = "config",
    }
    ProviderChoice { Auto = "auto", Sdk = "sdk", Direct = "direct", }
    RocpdSchema {
        First = RocpdSchema::First.word(),
        Adapters = RocpdSchema::Adapters.word(),
        Graphs = RocpdSchema::Graphs.word(),
        Sampled = RocpdSchema::Sampled.word(),
        Events = RocpdSchema::Events.word(),
        Replays = RocpdSchema::Replays.word(),
    }
    SamplingMethod {
        Stochastic = SamplingMethod::Stochastic.word(),
        HostTrap = SamplingMethod::HostTrap.word(),
    }
    SamplingUnit {
        Instructions = SamplingUnit::Instructions.word(),
        Cycles = SamplingUnit::Cycles.word(),
        Time = SamplingUnit::Time.word(),
    }
    StackMode {
        Off = StackMode::Off.word(),
        Native = StackMode::Native.word(),
        Python = StackMode::Python.word(),
        Merged = StackMode::Merged.word(),
    }
    Symbolize { Stop = "stop", Post = "post", Off = "off", }
    Unit {
        Sec = Unit::Sec.label(),
        Msec = Unit::Msec.label(),
        Usec = Unit::Usec.label(),
        Nsec = Unit::Nsec.label(),
    }
}

option_words! {
    /// CUDA functions whose calls are recorded.
    enum CudaApi {
        Usual = "usual",
        All = "all",
    }
    /// Unit of the times of `--collection-period`.
    enum PeriodUnit {
        Hour = "hour",
        Min = "min",
        Sec = "sec",
        Msec = "msec",
        Usec = "usec",
        Nsec = "nsec",
    }
    /// Mode of the original's trace writer, which rpd does not have.
    enum PerfettoBackend {
        InProcess = "inprocess",
        System = "system",
    }
    /// What the original's trace writer does when its buffer is full.
    enum PerfettoFillPolicy {
        Discard = "discard",
        RingBuffer = "ring_buffer",
    }
    /// Time at which the provider allocates queues and buffers of thread traces.
    enum ResourceMode {
        Default = "default",
        Hsa = "hsa",
        CodeObject = "code-object",
    }
    /// Unit of the intervals of the streaming performance monitor.
    enum SpmUnit {
        SclkCycles = "sclk_cycles",
    }
    /// What is repeated for each pass.
    enum ReplayMode {
        Kernel = "kernel",
        Application = "application",
        Auto = "auto",
    }
    /// Part of the profiler whose cost is measured.
    enum BenchmarkMode {
        DisabledSdkContexts = "disabled-sdk-contexts",
        SdkBufferOverhead = "sdk-buffer-overhead",
        SdkCallbackOverhead = "sdk-callback-overhead",
        ToolRuntimeOverhead = "tool-runtime-overhead",
        ExecutionProfile = "execution-profile",
    }
    /// A GPU of the simulator.
    enum SimulatedGpu {
        Gfx90a = "gfx90a",
        Gfx942 = "gfx942",
    }
}

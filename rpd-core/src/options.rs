//! The options of one pass, resolved: the collector, the writers, `--output-config`, `--echo` and the tests get their
//! values from here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use rpd_spool::kernel_name::KernelNames;
pub use rpd_spool::options::{
    CollectionPeriod, CollectorOptions, CounterOptions, CounterRequest, CudaGraphs, IterationRange,
    ProviderChoice, SamplingMethod, SamplingOptions, SamplingUnit, ThreadTraceOptions,
    TracedCounter, Traces,
};

pub use crate::agent::AgentIndex;
use crate::compat::Compat;
use crate::environment::EnvironmentSelection;

macro_rules! formats {
    ($($(#[$doc:meta])* $format:ident = $word:literal,)*) => {
        /// Output formats. The other properties of each, its writer included, are one entry of `rpd-formats`, which a
        /// new format here does not compile without.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Format {
            $($(#[$doc])* #[serde(rename = $word)] $format,)*
        }

        impl Format {
            /// Every format, in the order in which help texts and error messages list them.
            pub const ALL: &'static [Format] = &[$(Format::$format,)*];

            /// The words of [`Format::ALL`], in its order.
            pub const WORDS: &'static [&'static str] = &[$($word,)*];

            /// The word of the format on the command line.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Format::$format => $word,)*
                }
            }

            /// The format that a word (in lower case) means; `None` for any other word.
            pub fn from_word(word: &str) -> Option<Format> {
                Format::ALL.iter().copied().find(|format| format.word() == word)
            }
        }
    };
}

formats! {
    /// Comma-separated values, one file per domain.
    Csv = "csv",
    /// One JSON document.
    Json = "json",
    /// Perfetto protobuf trace.
    Pftrace = "pftrace",
    /// OTF2 archive.
    Otf2 = "otf2",
    /// SQLite database.
    Rocpd = "rocpd",
    /// Parquet files, one per table.
    Parquet = "parquet",
    /// A page for a web browser.
    Html = "html",
}

/// Unit of the times in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Seconds.
    Sec,
    /// Milliseconds.
    Msec,
    /// Microseconds.
    Usec,
    /// Nanoseconds.
    #[default]
    Nsec,
}

impl Unit {
    /// All units, from the longest to the shortest.
    pub const ALL: [Unit; 4] = [Unit::Sec, Unit::Msec, Unit::Usec, Unit::Nsec];

    /// The unit's name in table headers and on the command line.
    pub const fn label(self) -> &'static str {
        match self {
            Unit::Sec => "sec",
            Unit::Msec => "msec",
            Unit::Usec => "usec",
            Unit::Nsec => "nsec",
        }
    }

    /// Nanoseconds in one of the unit.
    pub const fn nanoseconds(self) -> f64 {
        match self {
            Unit::Sec => 1e9,
            Unit::Msec => 1e6,
            Unit::Usec => 1e3,
            Unit::Nsec => 1.0,
        }
    }
}

/// Selection of the frames of call stacks that outputs show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ShownFrames {
    /// Frames of GPU runtimes and of the profiler, between the program and the call.
    pub runtime: bool,
    /// Native frames of the Python interpreter in stacks that have Python frames.
    pub interpreter: bool,
}

/// Tables of durations that were requested by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SummaryOptions {
    /// One table over all domains.
    pub overall: bool,
    /// Whether to print a table for each domain.
    pub per_domain: bool,
    /// One table per expression, over the domains whose whole label it matches.
    pub groups: Vec<String>,
    /// `stderr`, `stdout` (or either in capitals) or the name that makes `<prefix>_<name>.txt`; empty is `stderr`.
    pub output: String,
    /// Unit of times.
    pub unit: Unit,
    /// Whether tables are printed in full on a terminal that is too narrow for them.
    pub wide: bool,
}

impl SummaryOptions {
    /// Whether any table was requested.
    pub fn any(&self) -> bool {
        self.overall || self.per_domain || !self.groups.is_empty()
    }
}

/// Time at which names and lines of frames are looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Symbolize {
    /// Names and lines are looked up after the run, before outputs are written.
    #[default]
    Stop,
    /// Names and lines are looked up later, by `rpd symbolize`.
    Post,
    /// Names and lines are looked up by `rpd symbolize` alone. As with `Post`, a message names the command.
    Off,
}

/// Options of call stacks in outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StackOutput {
    /// Time at which symbols are looked up.
    pub symbolize: Symbolize,
    /// Limit of the time in which symbols are looked up after a run, in nanoseconds.
    pub symbolize_limit: u64,
    /// Selection of the frames that are shown.
    pub shown: ShownFrames,
}

impl Default for StackOutput {
    fn default() -> StackOutput {
        StackOutput {
            symbolize: Symbolize::default(),
            symbolize_limit: 60_000_000_000,
            shown: ShownFrames::default(),
        }
    }
}

/// Verbosity of the libraries in the target, and of rpd.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Errors that end the program.
    Fatal,
    /// Errors, those included that do not end the program.
    Error,
    /// Warnings and errors.
    Warning,
    /// Warnings, rpd's resolved options and the environment variables that it adds.
    Info,
    /// All messages of the libraries and of rpd.
    Trace,
    /// Only the variables that rpd adds, from rpd itself.
    Env,
    /// Only the resolved options, from rpd itself.
    Config,
}

/// The provider of events that the target runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The ROCm installation when there is a device and an SDK, the simulator otherwise.
    #[default]
    Auto,
    /// The ROCm installation.
    Rocm,
    /// The simulated GPU.
    Sim,
    /// NVIDIA GPUs alone.
    Cuda,
}

/// Order of tables and columns in output files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// rpd's own: tables of a database end with the columns that are the same in every row, which take no space there.
    #[default]
    Rpd,
    /// The layout of the original tools: their order of columns, each with a value in every row.
    Original,
}

impl Layout {
    /// The words of the command line.
    pub const WORDS: &'static [&'static str] = &["rpd", "original"];

    /// The layout that a word means; `None` for any other word.
    pub fn from_word(word: &str) -> Option<Layout> {
        match word {
            "rpd" => Some(Layout::Rpd),
            "original" => Some(Layout::Original),
            _ => None,
        }
    }
}

/// A version of the schema of databases. Later ones have more tables and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RocpdSchema {
    /// 3, also called 3.0.0: that of ROCm 7.0.
    #[serde(rename = "3")]
    First,
    /// 3.0.1: network adapters among the agents.
    #[serde(rename = "3.0.1")]
    Adapters,
    /// 3.0.2: launches of graphs, and the graphs of dispatches and copies.
    #[serde(rename = "3.0.2")]
    Graphs,
    /// 3.0.3: counters that are sampled while kernels run.
    #[serde(rename = "3.0.3")]
    Sampled,
    /// 3.0.4: HIP events.
    #[serde(rename = "3.0.4")]
    Events,
    /// 3.0.5: runs of dispatches that were replayed.
    #[serde(rename = "3.0.5")]
    Replays,
}

impl RocpdSchema {
    /// Every version, oldest first.
    pub const ALL: &'static [RocpdSchema] = &[
        RocpdSchema::First,
        RocpdSchema::Adapters,
        RocpdSchema::Graphs,
        RocpdSchema::Sampled,
        RocpdSchema::Events,
        RocpdSchema::Replays,
    ];

    /// The words of the command line.
    pub const WORDS: &'static [&'static str] = &["3", "3.0.1", "3.0.2", "3.0.3", "3.0.4", "3.0.5"];

    /// The version as databases and the command line have it.
    pub const fn word(self) -> &'static str {
        RocpdSchema::WORDS[self as usize]
    }

    /// The version that a word means; `None` for any other word.
    pub fn from_word(word: &str) -> Option<RocpdSchema> {
        let all = RocpdSchema::ALL.iter().copied();
        all.into_iter().find(|version| version.word() == word)
    }
}

/// When outputs are written while a program goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rotation {
    /// After so many nanoseconds.
    Time(u64),
    /// When so many bytes are recorded.
    Bytes(u64),
}

/// The options of one pass.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Options {
    /// The tool whose behaviour is requested, where rpd and rocprofv3 differ.
    pub compat: Compat,
    /// Options that the collector in the target gets.
    pub collector: CollectorOptions,
    /// Formats, in the order given, without repeats.
    pub formats: Vec<Format>,
    /// Layout of databases.
    pub layout: Layout,
    /// Schema of databases; `None`: the first that has a place for all that a recording holds.
    pub rocpd_schema: Option<RocpdSchema>,
    /// Output directory with placeholders unresolved, as escaped text; absolute unless it starts with a placeholder.
    pub output_directory: String,
    /// Output prefix with placeholders unresolved, as escaped text.
    pub output_file: String,
    /// Whether `<prefix>_config.json` is written.
    pub output_config: bool,
    /// Call stacks in outputs; which are taken is in [`CollectorOptions::stacks`].
    pub stacks: StackOutput,
    /// Statistics files and tables.
    pub stats: bool,
    /// Summary tables. Where there are some, `stats` prints none.
    pub summary: SummaryOptions,
    /// Variables of the target that go into outputs.
    pub output_environment: EnvironmentSelection,
    /// Form of kernel names in outputs.
    pub kernel_names: KernelNames,
    /// Form of agent names in outputs.
    pub agent_index: AgentIndex,
    /// Whether dispatches and copies are shown by queue, and not by stream.
    pub group_by_queue: bool,
    /// When outputs of what was recorded are written while the program goes on; `None`: at its end.
    pub rotate: Option<Rotation>,
    /// Bytes of records below which outputs are not written; 0 writes always.
    pub minimum_output_bytes: u64,
    /// Provider of events, real or simulated.
    pub backend: Backend,
    /// Processor of the simulated GPUs, when given.
    pub sim_gpu: Option<String>,
    /// Verbosity of the provider and of rpd itself, when given.
    pub log_level: Option<LogLevel>,
    /// Root of the ROCm installation, when given.
    pub rocm_root: Option<PathBuf>,
    /// Libraries to preload in front of what is inherited.
    pub preload: Vec<PathBuf>,
    /// Pattern of the kernels to count, as the user gave it ([`CounterOptions::include`]); empty for all kernels.
    pub kernel_include: String,
    /// Pattern of the kernels not to count, as the user gave it ([`CounterOptions::exclude`]); empty for none.
    pub kernel_exclude: String,
    /// Content of the user's file with counter definitions ([`CounterOptions::extra`]); empty for none.
    pub extra_counters: String,
    /// Number of this pass, from 1; `None` for a single run without a pass directory.
    pub pass: Option<u32>,
    /// The file of libotf2, when given.
    pub otf2_library: Option<PathBuf>,
    /// Decoder library for thread traces; `None`: rpd's own decoder.
    pub thread_trace_library: Option<PathBuf>,
    /// Whether CSV fields that a spreadsheet would take for a formula get an apostrophe in front.
    pub csv_safe: bool,
    /// The target and its arguments, as escaped text: [`crate::text::os_text`].
    pub command: Vec<String>,
    /// Start time of rpd, Unix time in ns; 0 is unknown.
    pub launch_time: u64,
    /// Variables of the front end that bear on names of outputs (MPI, SLURM, date formats).
    pub launch_environment: BTreeMap<String, String>,
}

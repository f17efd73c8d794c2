//! The collector's options: what to record, and their form as text.

use crate::access_trace::AccessTrace;
use crate::environment::EnvironmentSelection;
pub use crate::sampling::{SamplingMethod, SamplingOptions, SamplingUnit};
use crate::stacks::{StackMode, StackOptions};
pub use crate::thread_trace::{ThreadTraceOptions, TracedCounter};

/// The trace kinds that can be switched on one by one. All false means nothing is traced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Traces {
    /// HIP functions of programs: those named `hip*`.
    pub hip_runtime: bool,
    /// HIP functions that compilers call: those named `__hip*`.
    pub hip_compiler: bool,
    /// HSA functions of the core: those named `hsa_*`.
    pub hsa_core: bool,
    /// HSA functions of AMD's extension: those named `hsa_amd_*`.
    pub hsa_amd: bool,
    /// HSA functions for images: those named `hsa_ext_image_*`.
    pub hsa_image: bool,
    /// HSA functions of the finalizer: those named `hsa_ext_program_*`.
    pub hsa_finalizer: bool,
    /// ROCTx markers and ranges.
    pub marker: bool,
    /// Kernel dispatches.
    pub kernel: bool,
    /// Memory copies.
    pub memory_copy: bool,
    /// Allocations and frees.
    pub memory_allocation: bool,
    /// Scratch operations.
    pub scratch_memory: bool,
    /// Launches of HIP graphs, and which of them dispatches and copies belong to.
    pub hip_graph: bool,
    /// HIP events on the device.
    pub hip_event: bool,
    /// Migrations of pages between memories, as the kernel driver reports them.
    pub kfd_page_migration: bool,
    /// Page faults of GPUs and what is unmapped from them, as the kernel driver reports them.
    pub kfd_page_mapping: bool,
    /// Evictions and restorations of queues, as the kernel driver reports them.
    pub kfd_queue: bool,
    /// Numbers of events that the kernel driver dropped.
    pub kfd_dropped_events: bool,
    /// rocSHMEM calls.
    pub rocshmem: bool,
    /// hipFile calls.
    pub hipfile: bool,
    /// RCCL calls.
    pub rccl: bool,
    /// rocDecode calls.
    pub rocdecode: bool,
    /// rocJPEG calls.
    pub rocjpeg: bool,
    /// CUDA calls: of the runtime, and those of the driver that are made outside of the runtime.
    pub cuda: bool,
    /// Calls of the CUDA driver, also those that the runtime makes.
    pub cuda_driver: bool,
}

impl Traces {
    /// Whether anything is to be traced.
    pub fn any(&self) -> bool {
        *self != Traces::default()
    }
}

/// A counter that was requested.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CounterRequest {
    /// Name of the counter.
    pub name: String,
    /// Count on this GPU alone, numbered among the GPUs; `None` is every GPU.
    #[cfg_attr(feature = "serde", serde(default))]
    pub device: Option<u32>,
}

impl std::fmt::Display for CounterRequest {
    /// The request as it is written on the command line: `NAME` or `NAME:device=N`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.device {
            Some(device) => write!(f, "{}:device={device}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Iterations of a kernel that are counted, both ends included; the first launch is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IterationRange {
    /// Number of the first iteration.
    pub first: u64,
    /// Number of the last iteration, which belongs to the range.
    pub last: u64,
}

/// A stretch of time in which recording is on, repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CollectionPeriod {
    /// Nanoseconds without recording, at the start of every round.
    pub delay: u64,
    /// Length of a recorded period in nanoseconds.
    pub duration: u64,
    /// Rounds; 0 is endless.
    pub repeat: u64,
}

/// Counters, and the dispatches in which they are counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct CounterOptions {
    /// Groups of counters; those of a group are collected together, in the order in which the provider is given them.
    /// Several groups take turns. Without groups nothing is counted.
    pub groups: Vec<Vec<CounterRequest>>,
    /// Several groups do not take turns: each dispatch is run once for each of them, on the same input, where the provider can
    /// do that.
    pub replay: bool,
    /// Selected dispatches of an agent that a group is kept for; 0 is 1.
    pub group_interval: u64,
    /// Iterations of each kernel that are counted; empty is all.
    pub iterations: Vec<IterationRange>,
    /// The run's directory holds [`crate::INCLUDE_FILE`]: kernels whose name it does not match are not counted.
    pub include: bool,
    /// The run's directory holds [`crate::EXCLUDE_FILE`]: kernels whose name it matches are not counted.
    pub exclude: bool,
    /// The run's directory holds [`crate::EXTRA_COUNTERS_FILE`]: definitions to hand to the provider.
    pub extra: bool,
    /// Names are matched as registered.
    pub mangled: bool,
    /// The bare function names are matched; wins over `mangled`.
    pub truncate: bool,
    /// Names that rocprofv3 cannot demangle are matched as registered.
    pub original_names: bool,
}

impl CounterOptions {
    /// Whether anything is to be counted.
    pub fn any(&self) -> bool {
        self.groups.iter().any(|group| !group.is_empty())
    }
}

/// Options of a capture of GPU calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct CaptureOptions {
    /// Whether calls are captured. Otherwise the other fields have no effect.
    pub calls: bool,
    /// Whether the host data that calls read are captured.
    pub data: bool,
    /// Whether the host data that calls write are captured.
    pub outputs: bool,
    /// Whether all host-visible memory that has changed is captured before a launch, and not only the memory that the
    /// arguments point to.
    pub snapshot: bool,
    /// Whether all host-visible memory that has changed is captured by pages, which are found by tracking writes to
    /// them.
    pub pageguard: bool,
    /// Whether writes of the device to host-visible memory are seen as page writes, as on the simulator.
    pub device_writes_seen: bool,
    /// Whether the data of asynchronous copies from pinned memory are those that the device read, and not those at the
    /// call.
    pub pinned_exact: bool,
    /// Whether markers of the program are recorded between calls.
    pub markers: bool,
    /// Bytes of data that may wait for the front end.
    pub staging: u64,
    /// The capture ends after this many bytes of data; `None`: it does not.
    pub max_bytes: Option<u64>,
    /// Recording of memory accesses of kernels.
    pub accesses: AccessTrace,
}

/// Source of the collector's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum ProviderChoice {
    /// rocprofiler-sdk.
    #[default]
    Sdk,
    /// The runtimes' dispatch tables, if the collector has wrappers for them; otherwise rocprofiler-sdk.
    Auto,
    /// The runtimes' dispatch tables.
    Direct,
}

impl ProviderChoice {
    /// Every choice with its word.
    pub const WORDS: [(ProviderChoice, &'static str); 3] = [
        (ProviderChoice::Sdk, "sdk"),
        (ProviderChoice::Auto, "auto"),
        (ProviderChoice::Direct, "direct"),
    ];

    /// The provider's word on the command line.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(choice, _)| *choice == self);
        found.map_or("", |(_, word)| word)
    }

    /// The choice with this word.
    pub fn from_word(word: &str) -> Option<ProviderChoice> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(choice, _)| *choice)
    }
}

/// Records of work that a CUDA graph submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum CudaGraphs {
    /// A record for each node while graphs are small; a record for each launch once a graph with many nodes is instantiated.
    #[default]
    Auto,
    /// A record for each node.
    Node,
    /// A record for each launch of a graph.
    Graph,
}

impl CudaGraphs {
    /// Every choice with its word.
    pub const WORDS: [(CudaGraphs, &'static str); 3] = [
        (CudaGraphs::Auto, "auto"),
        (CudaGraphs::Node, "node"),
        (CudaGraphs::Graph, "graph"),
    ];

    /// The choice's word on the command line.
    pub fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(choice, _)| *choice == self);
        found.map_or("", |(_, word)| word)
    }

    /// The choice with this word.
    pub fn from_word(word: &str) -> Option<CudaGraphs> {
        let found = Self::WORDS.iter().find(|(_, known)| *known == word);
        found.map(|(choice, _)| *choice)
    }
}

/// The collector's options. Small and text-encodable: they travel in [`crate::COLLECT_VARIABLE`]
/// as `key=value` pairs joined by `,`, so that the target needs no JSON reader.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct CollectorOptions {
    /// Counters to collect.
    pub counters: CounterOptions,
    /// Periods of recording, one after the other; empty records always.
    pub periods: Vec<CollectionPeriod>,
    /// Record only between a ROCTx resume and the pause that follows.
    pub selected_regions: bool,
    /// Nested pairs of resume and pause are balanced.
    pub selected_regions_ref_count: bool,
    /// Kinds of records to trace.
    pub traces: Traces,
    /// Record arguments of HIP calls.
    pub hip_args: bool,
    /// Record arguments of HSA, marker, RCCL, rocDecode and rocJPEG calls too.
    pub annotate_args: bool,
    /// Whether the values that a call stores through output arguments are recorded when it has returned, of calls whose
    /// arguments are recorded.
    pub argument_results: bool,
    /// Track regions that rename kernels.
    pub kernel_rename: bool,
    /// Track HIP streams (off with `--group-by-queue`).
    pub streams: bool,
    /// Install no handlers in the target for signals that end it.
    pub disable_signal_handlers: bool,
    /// Offer the Kokkos tools entry points.
    pub kokkos: bool,
    /// Obey pause and resume only when markers are traced or regions are selected, and push marks on the stack that
    /// renames kernels, as rocprofv3 does.
    pub original_semantics: bool,
    /// Whether a trace that needs a newer SDK was requested by its own option, so that its absence is reported.
    pub newer_sdk: bool,
    /// Variables of the target that go into the recording.
    pub environment: EnvironmentSelection,
    /// Variables in addition, which names of outputs refer to. Letters, digits and underscores only.
    pub variables: Vec<String>,
    /// Selection of the calls that have stacks, and of the frames in them.
    pub stacks: StackOptions,
    /// PC sampling options; `None` without sampling.
    pub sampling: Option<SamplingOptions>,
    /// Thread trace options; `None` without traces.
    pub thread_trace: Option<ThreadTraceOptions>,
    /// Calls and data to capture.
    pub capture: CaptureOptions,
    /// Errors of kernels are searched for, where the provider can do that.
    pub check_kernels: bool,
    /// Source of events.
    pub provider: ProviderChoice,
    /// Whether CUDA functions that only ask for something, such as `cudaGetDevice`, are recorded too.
    pub cuda_api_all: bool,
    /// Records of work that CUDA graphs submit.
    pub cuda_graphs: CudaGraphs,
    /// Dispatches and copies are added up ([`crate::format::DeviceTotal`]), and only the latest are kept one by one, in this many
    /// bytes for each process; `None`: all are kept.
    pub recent_bytes: Option<u64>,
    /// The bound on the spool of a process, in bytes: the oldest segments go, and what goes is counted
    /// ([`crate::format::RemovedTotal`]); `None`: nothing goes.
    pub spool_limit: Option<u64>,
    /// The front end takes records while others are written ([`crate::cut`]).
    pub in_pieces: bool,
}

impl CollectorOptions {
    /// Whether the bytes of loaded code objects are recorded.
    pub fn keeps_code(&self) -> bool {
        self.sampling.is_some() || self.thread_trace.is_some()
    }

    /// Whether anything is recorded while recording is on, besides counters.
    pub fn traces_anything(&self) -> bool {
        // Without `..`, so that a new option is decided on.
        let CollectorOptions {
            traces,
            sampling,
            thread_trace,
            counters: _,
            periods: _,
            selected_regions: _,
            selected_regions_ref_count: _,
            hip_args: _,
            annotate_args: _,
            argument_results: _,
            kernel_rename: _,
            streams: _,
            disable_signal_handlers: _,
            kokkos: _,
            original_semantics: _,
            environment: _,
            variables: _,
            stacks: _,
            capture: _,
            check_kernels: _,
            provider: _,
            cuda_api_all: _,
            cuda_graphs: _,
            recent_bytes: _,
            spool_limit: _,
            in_pieces: _,
            newer_sdk: _,
        } = self;
        traces.any() || sampling.is_some() || thread_trace.is_some()
    }
}

/// One boolean of [`CollectorOptions`] in its text form.
type Flag = (
    &'static str,
    fn(&CollectorOptions) -> bool,
    fn(&mut CollectorOptions, bool),
);

macro_rules! flags {
    ($($key:literal => $($field:ident).+;)*) => {
        [$((
            $key,
            |options| options.$($field).+,
            |options, value| options.$($field).+ = value,
        ),)*]
    };
}

/// The text form's keys. A key that is absent is off, so the common case stays short.
const FLAGS: &[Flag] = &flags! {
    "hip_runtime" => traces.hip_runtime;
    "hip_compiler" => traces.hip_compiler;
    "hsa_core" => traces.hsa_core;
    "hsa_amd" => traces.hsa_amd;
    "hsa_image" => traces.hsa_image;
    "hsa_finalizer" => traces.hsa_finalizer;
    "marker" => traces.marker;
    "kernel" => traces.kernel;
    "memory_copy" => traces.memory_copy;
    "memory_allocation" => traces.memory_allocation;
    "scratch_memory" => traces.scratch_memory;
    "hip_graph" => traces.hip_graph;
    "hip_event" => traces.hip_event;
    "kfd_page_migration" => traces.kfd_page_migration;
    "kfd_page_mapping" => traces.kfd_page_mapping;
    "kfd_queue" => traces.kfd_queue;
    "kfd_dropped_events" => traces.kfd_dropped_events;
    "rocshmem" => traces.rocshmem;
    "hipfile" => traces.hipfile;
    "rccl" => traces.rccl;
    "rocdecode" => traces.rocdecode;
    "rocjpeg" => traces.rocjpeg;
    "cuda" => traces.cuda;
    "cuda_driver" => traces.cuda_driver;
    "cuda_api_all" => cuda_api_all;
    "hip_args" => hip_args;
    "annotate_args" => annotate_args;
    "argument_results" => argument_results;
    "kernel_rename" => kernel_rename;
    "streams" => streams;
    "disable_signal_handlers" => disable_signal_handlers;
    "kokkos" => kokkos;
    "original_semantics" => original_semantics;
    "in_pieces" => in_pieces;
    "newer_sdk" => newer_sdk;
    "selected_regions" => selected_regions;
    "selected_regions_ref_count" => selected_regions_ref_count;
    "replay" => counters.replay;
    "kernel_include" => counters.include;
    "kernel_exclude" => counters.exclude;
    "extra_counters" => counters.extra;
    "match_mangled" => counters.mangled;
    "match_truncated" => counters.truncate;
    "match_original" => counters.original_names;
    "capture" => capture.calls;
    "capture_data" => capture.data;
    "capture_outputs" => capture.outputs;
    "capture_snapshot" => capture.snapshot;
    "capture_pageguard" => capture.pageguard;
    "capture_device_writes_seen" => capture.device_writes_seen;
    "capture_pinned_exact" => capture.pinned_exact;
    "capture_markers" => capture.markers;
    "check_kernels" => check_kernels;
};

/// The keys with values of their own. Lists are joined by `+`, groups by `/`, parts of an item by `:`; counter names
/// hold none of these, since no counter of a provider does.
const COUNTERS: &str = "counters";
const INTERVAL: &str = "group_interval";
const ITERATIONS: &str = "iterations";
const PERIODS: &str = "periods";
const ENVIRONMENT: &str = "environment";
const VARIABLES: &str = "variables";
const PROVIDER: &str = "provider";
const CUDA_GRAPHS: &str = "cuda_graphs";
const STACKS: &str = "stacks";
const STACK_APIS: &str = "stack_apis";
const STACK_DEPTH: &str = "stack_depth";
const STACK_EVERY: &str = "stack_every";
const STACK_MIN_DURATION: &str = "stack_min_duration";
const SAMPLING: &str = "pc_sampling";
const THREAD_TRACE: &str = "thread_trace";
const CAPTURE_STAGING: &str = "capture_staging";
const CAPTURE_MAX_BYTES: &str = "capture_max_bytes";
const CAPTURE_ACCESSES: &str = "capture_accesses";
const RECENT_BYTES: &str = "recent_bytes";
const SPOOL_LIMIT: &str = "spool_limit";

fn joined<T>(items: &[T], separator: &str, text: impl Fn(&T) -> String) -> String {
    let texts: Vec<String> = items.iter().map(text).collect();
    texts.join(separator)
}

fn counters_text(groups: &[Vec<CounterRequest>]) -> String {
    joined(groups, "/", |group| {
        joined(group, "+", |counter| match counter.device {
            Some(device) => format!("{}:{device}", counter.name),
            None => counter.name.clone(),
        })
    })
}

fn counters_of(text: &str) -> Vec<Vec<CounterRequest>> {
    let request = |item: &str| {
        let (name, device) = item.split_once(':').unwrap_or((item, ""));
        CounterRequest {
            name: name.to_owned(),
            device: device.parse().ok(),
        }
    };
    let group = |text: &str| {
        text.split('+')
            .filter(|item| !item.is_empty())
            .map(request)
            .collect()
    };
    text.split('/').map(group).collect()
}

/// Items of numbers joined by `:`; an item of another shape is left out.
fn numbers<const N: usize>(text: &str) -> impl Iterator<Item = [u64; N]> {
    text.split('+').filter_map(|item| {
        let parts: Vec<u64> = item
            .split(':')
            .map(|part| part.parse().ok())
            .collect::<Option<_>>()?;
        parts.try_into().ok()
    })
}

impl CollectorOptions {
    /// Whether a variable of this name goes into the recording: those that outputs may show, and those that the user named
    /// for the names of outputs.
    pub fn keeps_variable(&self, name: &str) -> bool {
        self.environment.keeps(name) || self.variables.iter().any(|wanted| wanted == name)
    }

    /// The text that travels to the target: `key=value` pairs joined by `,`; what is off is left out.
    pub fn to_text(&self) -> String {
        let mut pairs: Vec<String> = FLAGS
            .iter()
            .filter(|(_, get, _)| get(self))
            .map(|(key, ..)| format!("{key}=1"))
            .collect();
        let counters = &self.counters;
        let mut add = |key: &str, value: String| pairs.push(format!("{key}={value}"));
        if counters.any() {
            // Each option is left out where it has its default value, so that the target's environment stays short and
            // equal options have equal texts.
            add(COUNTERS, counters_text(&counters.groups));
        }
        if counters.group_interval > 1 {
            // Lists are joined by `+`, because the comma separates options.
            add(INTERVAL, counters.group_interval.to_string());
        }
        if !counters.iterations.is_empty() {
            let text = |range: &IterationRange| format!("{}:{}", range.first, range.last);
            add(ITERATIONS, joined(&counters.iterations, "+", text));
        }
        if !self.periods.is_empty() {
            let text = |period: &CollectionPeriod| {
                format!("{}:{}:{}", period.delay, period.duration, period.repeat)
            };
            add(PERIODS, joined(&self.periods, "+", text));
        }
        if self.environment != EnvironmentSelection::default() {
            add(ENVIRONMENT, self.environment.word().to_owned());
        }
        if !self.variables.is_empty() {
            add(VARIABLES, self.variables.join("+"));
        }
        if self.provider != ProviderChoice::default() {
            add(PROVIDER, self.provider.word().to_owned());
        }
        if self.cuda_graphs != CudaGraphs::default() {
            add(CUDA_GRAPHS, self.cuda_graphs.word().to_owned());
        }
        let (stacks, usual) = (&self.stacks, StackOptions::default());
        if stacks.any() {
            add(STACKS, stacks.mode.word().to_owned());
        }
        if stacks.apis != usual.apis {
            add(STACK_APIS, stacks.apis.join("+"));
        }
        for (key, value, usual) in [
            (STACK_DEPTH, stacks.depth.into(), usual.depth.into()),
            (STACK_EVERY, stacks.every.into(), usual.every.into()),
            (STACK_MIN_DURATION, stacks.min_duration, usual.min_duration),
        ] {
            if value != usual {
                add(key, value.to_string());
            }
        }
        if let Some(sampling) = &self.sampling {
            add(SAMPLING, sampling.to_text());
        }
        if let Some(traced) = &self.thread_trace {
            add(THREAD_TRACE, traced.to_text());
        }
        if self.capture.staging > 0 {
            add(CAPTURE_STAGING, self.capture.staging.to_string());
        }
        if let Some(bytes) = self.capture.max_bytes {
            add(CAPTURE_MAX_BYTES, bytes.to_string());
        }
        if self.capture.accesses != AccessTrace::Off {
            add(CAPTURE_ACCESSES, self.capture.accesses.word().to_owned());
        }
        if let Some(bytes) = self.recent_bytes {
            add(RECENT_BYTES, bytes.to_string());
        }
        if let Some(bytes) = self.spool_limit {
            add(SPOOL_LIMIT, bytes.to_string());
        }
        pairs.join(",")
    }

    /// Reads [`CollectorOptions::to_text`]. Keys of a newer front end are ignored, absent ones are off; any value
    /// of a switch but `0` is on.
    pub fn from_text(text: &str) -> CollectorOptions {
        let mut options = CollectorOptions::default();
        for pair in text.split(',') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "1"));
            // Values that cannot be read are defaults: in the target there is nobody to report an error to, and it must
            // run.
            let counters = &mut options.counters;
            match key {
                COUNTERS => counters.groups = counters_of(value),
                INTERVAL => counters.group_interval = value.parse().unwrap_or(0),
                ITERATIONS => {
                    let range = |[first, last]: [u64; 2]| IterationRange { first, last };
                    counters.iterations = numbers(value).map(range).collect();
                }
                PERIODS => {
                    let period = |[delay, duration, repeat]: [u64; 3]| CollectionPeriod {
                        delay,
                        duration,
                        repeat,
                    };
                    options.periods = numbers(value).map(period).collect();
                }
                ENVIRONMENT => options.environment = EnvironmentSelection::from_word(value),
                VARIABLES => options.variables = value.split('+').map(str::to_owned).collect(),
                PROVIDER => options.provider = ProviderChoice::from_word(value).unwrap_or_default(),
                CUDA_GRAPHS => {
                    options.cuda_graphs = CudaGraphs::from_word(value).unwrap_or_default();
                }
                STACKS => options.stacks.mode = StackMode::from_word(value).unwrap_or_default(),
                STACK_APIS => {
                    options.stacks.apis = value.split('+').map(str::to_owned).collect();
                }
                STACK_DEPTH => options.stacks.depth = value.parse().unwrap_or(0),
                STACK_EVERY => options.stacks.every = value.parse().unwrap_or(1),
                STACK_MIN_DURATION => options.stacks.min_duration = value.parse().unwrap_or(0),
                SAMPLING => options.sampling = SamplingOptions::from_text(value),
                THREAD_TRACE => options.thread_trace = ThreadTraceOptions::from_text(value),
                CAPTURE_STAGING => options.capture.staging = value.parse().unwrap_or(0),
                CAPTURE_MAX_BYTES => options.capture.max_bytes = value.parse().ok(),
                CAPTURE_ACCESSES => {
                    options.capture.accesses = AccessTrace::from_word(value).unwrap_or_default();
                }
                RECENT_BYTES => options.recent_bytes = value.parse().ok(),
                SPOOL_LIMIT => options.spool_limit = value.parse().ok(),
                // Unknown keys are those of a newer front end, and are ignored for the same reason.
                _ => {
                    if let Some((_, _, set)) = FLAGS.iter().find(|flag| flag.0 == key) {
                        set(&mut options, value != "0");
                    }
                }
            }
        }
        options
    }
}

#[cfg(test)]
mod tests;

//! The one table of options. Parser, help, refusals and the command-line page of the manual are made from it.

use rpd_core::options::{Format, Layout};
use rpd_spool::stacks::StackMode;

/// Headings of the help, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Output,
    Aggregate,
    Basic,
    Granular,
    Stacks,
    Counters,
    Statistics,
    Summary,
    Naming,
    Filter,
    Perfetto,
    Display,
    PcSampling,
    ThreadTrace,
    Streaming,
    Replay,
    Attach,
    Advanced,
}

impl Group {
    /// Text above the group's options.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Group::Output => "Input and output",
            Group::Aggregate => "Aggregate tracing",
            Group::Basic => "Basic tracing",
            Group::Granular => "Granular tracing",
            Group::Stacks => "Call stacks",
            Group::Counters => "Counter collection",
            Group::Statistics => "Post-processing",
            Group::Summary => "Summaries",
            Group::Naming => "Kernel naming",
            Group::Filter => "Filtering",
            Group::Perfetto => "Perfetto",
            Group::Display => "Display",
            Group::PcSampling => "PC sampling",
            Group::ThreadTrace => "Advanced thread trace",
            Group::Streaming => "Streaming performance monitor",
            Group::Replay => "Kernel replay",
            Group::Attach => "Attaching",
            Group::Advanced => "Advanced",
        }
    }
}

/// Form of an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Nothing: `--version`.
    Flag,
    /// An optional truth word; unset, true or false.
    Bool,
    /// One text of any form.
    Text,
    /// One path, any bytes; its value is escaped text ([`rpd_core::os_text`]).
    Path,
    /// One integer within bounds, both included.
    Integer(i64, i64),
    /// One of these words. True: case does not matter.
    Choice(&'static [&'static str], bool),
    /// One or more of these words, case does not matter.
    Choices(&'static [&'static str]),
    /// Texts: at least this many, up to the next token that starts with a dash.
    List(usize),
    /// As [`Form::List`], each occurrence its own group.
    Groups,
    /// `--ompt-trace`: a truth word or categories.
    Categories(&'static [&'static str]),
}

/// The GPUs that the simulator has.
pub(crate) const SIMULATED_GPUS: &[&str] = &["gfx90a", "gfx942"];

/// Conversion of an inherited variable to an option's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inherit {
    /// The option is not inherited.
    No,
    /// The variable's value is the option's.
    Value(&'static str),
    /// By the opposite of its truth.
    Opposite(&'static str),
}

/// Whether this build can do what the option requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// The option works in this build.
    Works,
    /// The option does not work in this build; the text is what it needs.
    Missing(&'static str),
    /// Provider kinds that came after SDK 1.0: refused by name, left out of aggregates.
    NewerKind,
}

/// An option of the command line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spec {
    pub(crate) long: &'static str,
    pub(crate) short: Option<char>,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) form: Form,
    pub(crate) group: Group,
    pub(crate) value_name: &'static str,
    /// `%formats%` stands for the list of formats.
    pub(crate) help: &'static str,
    pub(crate) hidden: bool,
    /// A key of jobs that the command line does not have.
    pub(crate) key_only: bool,
    pub(crate) inherit: Inherit,
    pub(crate) support: Support,
}

const fn option(group: Group, long: &'static str, form: Form, help: &'static str) -> Spec {
    let value_name = match form {
        Form::Bool => "BOOL",
        Form::Integer(..) => "N",
        Form::Choices(_) => "FORMAT",
        Form::Categories(_) => "CATEGORY",
        Form::Groups => "NAME",
        _ => "TEXT",
    };
    Spec {
        long,
        short: None,
        aliases: &[],
        form,
        group,
        value_name,
        help,
        hidden: false,
        key_only: false,
        inherit: Inherit::No,
        support: Support::Works,
    }
}

const fn switch(group: Group, long: &'static str, help: &'static str) -> Spec {
    option(group, long, Form::Bool, help)
}

impl Spec {
    const fn short(mut self, short: char) -> Spec {
        self.short = Some(short);
        self
    }
    const fn aliases(mut self, aliases: &'static [&'static str]) -> Spec {
        self.aliases = aliases;
        self
    }
    const fn value(mut self, name: &'static str) -> Spec {
        self.value_name = name;
        self
    }
    const fn key_only(mut self) -> Spec {
        self.key_only = true;
        self.hidden = true;
        self
    }
    const fn hidden(mut self) -> Spec {
        self.hidden = true;
        self
    }
    const fn from(mut self, variable: &'static str) -> Spec {
        self.inherit = Inherit::Value(variable);
        self
    }
    const fn opposite_of(mut self, variable: &'static str) -> Spec {
        self.inherit = Inherit::Opposite(variable);
        self
    }
    const fn missing(mut self, what: &'static str) -> Spec {
        self.support = Support::Missing(what);
        self.hidden = true;
        self
    }
    const fn newer(mut self) -> Spec {
        self.support = Support::NewerKind;
        self.hidden = true;
        self
    }

    /// As the user writes it: `-o/--output-file`.
    pub(crate) fn display(&self) -> String {
        match self.short {
            Some(short) => format!("-{short}/--{}", self.long),
            None => format!("--{}", self.long),
        }
    }
}

const OMPT: &[&str] = &[
    "all", "thread", "parallel", "task", "sync", "mutex", "target", "device", "error",
];

const SPM: &str = "the streaming performance monitor";
const REPLAY: &str = "kernel replay";
const ATTACH: &str = "attaching to a running process";
const BENCH: &str = "the benchmark modes";
const NO_MAX: i64 = i64::MAX;

use Group::{
    Advanced, Aggregate, Attach, Basic, Counters, Display, Filter, Granular, Naming, Output,
    PcSampling, Perfetto, Replay, Stacks, Statistics, Streaming, Summary, ThreadTrace,
};

/// Every option.
#[rustfmt::skip]
pub(crate) const OPTIONS: &[Spec] = &[
    option(Output, "input", Form::Text, "File with jobs, each a run of the program: .yaml, .yml, .json or .txt")
        .short('i').value("FILE"),
    option(Output, "output-file", Form::Path, "Prefix of the output files; placeholders such as %pid% are filled in per process [default: %hostname%/%pid%]")
        .short('o').value("PREFIX").from("ROCPROF_OUTPUT_FILE_NAME"),
    option(Output, "output-directory", Form::Path, "Directory of the output files; may hold placeholders [default: the current directory]")
        .short('d').value("DIR").from("ROCPROF_OUTPUT_PATH"),
    option(Output, "output-format", Form::Choices(Format::WORDS), "Formats to write, separated by spaces: %formats% [default: rocpd]")
        .short('f'),
    option(Output, "layout", Form::Choice(Layout::WORDS, false), "Columns of tables in databases: rpd (those that are the same in every row last, where they take no space) or original (the order of the original tools, larger, for rocpd merge of ROCm) [default: rpd]")
        .value("WHICH"),
    switch(Output, "output-config", "Write the resolved options to <prefix>_config.json")
        .from("ROCPROF_OUTPUT_CONFIG_FILE"),
    option(Output, "output-environment", Form::Choice(&["relevant", "all", "none"], false), "Variables of the target that outputs hold: relevant (names of ROCm, HIP, HSA, the loader, MPI and the like that are known to hold no secret), all or none [default: relevant]")
        .value("WHICH"),
    option(Output, "otf2-library", Form::Text, "File of libotf2, for -f otf2 [default: the one that the loader finds]")
        .value("PATH"),
    switch(Output, "csv-safe", "Put an apostrophe before CSV fields that a spreadsheet would take for a formula (that begin with =, +, - or @)"),
    option(Output, "log-level", Form::Choice(&["fatal", "error", "warning", "info", "trace", "env", "config"], true), "Lowest level of messages that the ROCm libraries in the target print: fatal, error, warning, info or trace; or what rpd prints: its resolved options (config), the variables it adds (env) [default: the libraries' own]")
        .value("LEVEL"),
    option(Output, "extra-counters", Form::Text, "YAML file that defines further counters")
        .short('E').value("FILE").from("ROCPROF_EXTRA_COUNTERS_CONTENTS"),

    switch(Aggregate, "runtime-trace", "Trace HIP runtime calls, markers, RCCL, rocDecode and rocJPEG calls, kernel dispatches, copies, allocations and scratch memory")
        .short('r'),
    switch(Aggregate, "sys-trace", "Trace everything that --runtime-trace does, HIP compiler calls and HSA calls")
        .short('s'),

    switch(Aggregate, "light", "Trace kernel dispatches and copies at the least cost, for programs that run for long: durations are added up, and only the latest dispatches and copies are kept one by one; rpd live shows the sums while the program runs; see docs/providers.md"),
    option(Aggregate, "light-keep", Form::Text, "Size of the memory in which --light keeps the latest dispatches and copies of each process, such as 500M, at least 256K [default: 64M]").value("SIZE"),

    switch(Basic, "hip-trace", "Trace HIP runtime and compiler calls"),
    switch(Basic, "marker-trace", "Trace ROCTx marks and ranges")
        .from("ROCPROF_MARKER_API_TRACE"),
    switch(Basic, "kernel-trace", "Trace kernel dispatches")
        .from("ROCPROF_KERNEL_TRACE"),
    switch(Basic, "memory-copy-trace", "Trace asynchronous memory copies")
        .from("ROCPROF_MEMORY_COPY_TRACE"),
    switch(Basic, "memory-allocation-trace", "Trace memory allocations and frees")
        .from("ROCPROF_MEMORY_ALLOCATION_TRACE"),
    switch(Basic, "scratch-memory-trace", "Trace scratch memory operations")
        .from("ROCPROF_SCRATCH_MEMORY_TRACE"),
    switch(Basic, "hsa-trace", "Trace HSA calls of all four tables (core, AMD extension, image, finalizer)"),
    switch(Basic, "rccl-trace", "Trace RCCL calls")
        .from("ROCPROF_RCCL_API_TRACE"),
    switch(Basic, "kokkos-trace", "Trace Kokkos regions and kernels as markers, and name GPU kernels after them"),
    switch(Basic, "rocdecode-trace", "Trace rocDecode calls")
        .from("ROCPROF_ROCDECODE_API_TRACE"),
    switch(Basic, "rocjpeg-trace", "Trace rocJPEG calls")
        .from("ROCPROF_ROCJPEG_API_TRACE"),
    switch(Basic, "rocshmem-trace", "Trace rocSHMEM calls").from("ROCPROF_ROCSHMEM_API_TRACE").newer(),
    switch(Basic, "hipfile-trace", "Trace hipFILE calls").from("ROCPROF_HIPFILE_API_TRACE").newer(),
    switch(Basic, "kfd-trace", "Trace events of the kernel driver").newer(),
    option(Basic, "ompt-trace", Form::Categories(OMPT), "OpenMP tools events to trace").from("ROCPROF_OMPT_TRACE").newer(),

    switch(Granular, "hip-runtime-trace", "Trace HIP runtime calls (hip*)")
        .from("ROCPROF_HIP_RUNTIME_API_TRACE"),
    switch(Granular, "hip-compiler-trace", "Trace HIP compiler calls (__hip*)")
        .from("ROCPROF_HIP_COMPILER_API_TRACE"),
    switch(Granular, "hip-graph-trace", "Trace HIP graph launches").from("ROCPROF_HIP_GRAPH_TRACE").newer(),
    switch(Granular, "hip-event-trace", "Trace HIP events on the device").from("ROCPROF_HIP_EVENT_TRACE").newer(),
    switch(Granular, "hsa-core-trace", "Trace HSA core calls (hsa_*)")
        .from("ROCPROF_HSA_CORE_API_TRACE"),
    switch(Granular, "hsa-amd-trace", "Trace HSA calls of the AMD extension (hsa_amd_*)")
        .from("ROCPROF_HSA_AMD_EXT_API_TRACE"),
    switch(Granular, "hsa-image-trace", "Trace HSA image calls (hsa_ext_image_*)")
        .from("ROCPROF_HSA_IMAGE_EXT_API_TRACE"),
    switch(Granular, "hsa-finalizer-trace", "Trace HSA finalizer calls (hsa_ext_program_*)")
        .from("ROCPROF_HSA_FINALIZER_EXT_API_TRACE"),
    switch(Granular, "kfd-page-migration-trace", "Trace page migrations").from("ROCPROF_KFD_PAGE_MIGRATION_TRACE").newer(),
    switch(Granular, "kfd-page-mapping-trace", "Trace page mappings").from("ROCPROF_KFD_PAGE_MAPPING_TRACE").newer(),
    switch(Granular, "kfd-queue-trace", "Trace queue evictions").from("ROCPROF_KFD_QUEUE_TRACE").newer(),
    switch(Granular, "kfd-dropped-events-trace", "Trace dropped driver events").from("ROCPROF_KFD_DROPPED_EVENTS_TRACE").newer(),
    switch(Granular, "annotate-args", "Record arguments of HSA, marker, RCCL, rocDecode and rocJPEG calls too (those of HIP calls are recorded when a format shows them)"),

    option(Stacks, "stacks", Form::Choice(StackMode::WORDS, false), "Frames to record for each call: off, native (C, C++, Rust and the like), python, or merged (Python frames at their places among the native ones) [default: off]")
        .value("WHICH").from("RPD_STACKS"),
    option(Stacks, "stacks-apis", Form::List(1), "Calls to record stacks of, by name: globs separated by commas, in which * stands for any text; a glob after ! leaves its calls out. Names are those of traced functions, markers (roctx*) and allocations (MEMORY_ALLOCATION_*) [default: hip*,__hip*]")
        .value("GLOB,...").from("RPD_STACKS_APIS"),
    option(Stacks, "stacks-depth", Form::Integer(0, u32::MAX as i64), "Largest number of frames of a stack to keep: three quarters of them the innermost, the others the outermost; 0 keeps all [default: 512]")
        .from("RPD_STACKS_DEPTH"),
    option(Stacks, "stacks-every", Form::Integer(1, u32::MAX as i64), "Interval of recorded stacks in calls of the same function, beginning with the first call; 1 records all [default: 1]")
        .from("RPD_STACKS_RATE"),
    option(Stacks, "stacks-min-duration", Form::Text, "Shortest duration of a call whose stack is recorded, such as 50us; stacks are then taken at the end of the call [default: all calls]")
        .value("TIME"),
    option(Stacks, "stacks-symbolize", Form::Choice(&["stop", "post", "off"], false), "Time to look up names and lines of native frames: stop (after the run), post (later, with rpd symbolize) or off [default: stop]")
        .value("WHEN").from("RPD_STACKS_SYMBOLIZE"),
    option(Stacks, "stacks-symbolize-limit", Form::Text, "Longest time for that look-up after a run, such as 30s; the rest is reported and left to rpd symbolize [default: 60s]")
        .value("TIME"),
    switch(Stacks, "stacks-runtime-frames", "Show the frames of GPU runtimes and of the profiler between the program and the call; they are recorded in any case")
        .from("RPD_STACKS_RUNTIME_FRAMES"),
    switch(Stacks, "stacks-interpreter-frames", "Show the native frames of the Python interpreter beside the Python frames; they are recorded in any case")
        .from("RPD_STACKS_INTERP_FRAMES"),

    option(Counters, "pmc", Form::Groups, "Counters to collect in one pass (a run of the program), separated by blanks or commas: NAME, or NAME:device=N for one GPU; each --pmc is a pass; auto:NAME,NAME,... needs as few passes as possible")
        .from("ROCPROF_COUNTERS"),
    option(Counters, "pmc-groups", Form::Groups, "Groups of counters that take turns").key_only()
        .from("ROCPROF_COUNTER_GROUPS"),
    option(Counters, "pmc-group-interval", Form::Integer(0, NO_MAX), "Dispatches that a group is kept for").key_only()
        .from("ROCPROF_COUNTER_GROUPS_INTERVAL"),
    option(Counters, "pmc-raw", Form::List(0), "Raw counter specifications").key_only().missing("raw counter specifications"),
    switch(Counters, "continue-on-error", "Go on with the next pass when one fails"),

    switch(Statistics, "stats", "Print a table of durations per domain unless a summary is requested; with -f csv also write <prefix>_<domain>_stats.csv and <prefix>_domain_stats.csv")
        .from("ROCPROF_STATS"),

    switch(Summary, "summary", "Print one table of durations over all domains").short('S')
        .from("ROCPROF_STATS_SUMMARY"),
    switch(Summary, "summary-per-domain", "Print one table per domain").short('D')
        .from("ROCPROF_STATS_SUMMARY_PER_DOMAIN"),
    option(Summary, "summary-groups", Form::List(1), "Regular expressions, each for a table over the domains whose whole name it matches: 'KERNEL_DISPATCH|MEMORY_COPY' '.*_API'").value("REGEX")
        .from("ROCPROF_STATS_SUMMARY_GROUPS"),
    option(Summary, "summary-output-file", Form::Text, "Destination of the tables: stderr, stdout, or a name for <prefix>_<name>.txt [default: stderr]").value("NAME")
        .from("ROCPROF_STATS_SUMMARY_OUTPUT"),
    option(Summary, "summary-units", Form::Choice(&["sec", "msec", "usec", "nsec"], false), "Unit of times in the tables: sec, msec, usec or nsec [default: nsec]").short('u').value("UNIT")
        .from("ROCPROF_STATS_SUMMARY_UNITS"),

    switch(Naming, "mangled-kernels", "Show kernel names as registered, not demangled").short('M')
        .opposite_of("ROCPROF_DEMANGLE_KERNELS"),
    switch(Naming, "truncate-kernels", "Show the bare function name of kernels").short('T')
        .from("ROCPROF_TRUNCATE_KERNELS"),
    switch(Naming, "kernel-rename", "Name kernels after the innermost ROCTx range they were launched in")
        .from("ROCPROF_KERNEL_RENAME"),

    option(Filter, "kernel-include-regex", Form::Text, "Regular expression of the kernels to count and thread trace, searched for in their names; other traces are not filtered [default: all kernels]").value("REGEX")
        .from("ROCPROF_KERNEL_FILTER_INCLUDE_REGEX"),
    option(Filter, "kernel-exclude-regex", Form::Text, "Regular expression of the kernels not to count and not to thread trace, searched for in their names [default: none]").value("REGEX")
        .from("ROCPROF_KERNEL_FILTER_EXCLUDE_REGEX"),
    option(Filter, "kernel-iteration-range", Form::List(1), "Dispatches of each kernel to count or thread trace, numbered from 1: 3, 5-7, '[1, 3, [8-12]]' [default: all; of thread traces the first]").value("RANGE")
        .from("ROCPROF_KERNEL_FILTER_RANGE"),
    option(Filter, "collection-period", Form::List(1), "Periods to record in, one after the other, each as DELAY:DURATION:REPEAT: wait, record, and repeat so many times; 0 repeats endlessly [default: the whole run]").short('P').value("PERIOD")
        .from("ROCPROF_COLLECTION_PERIOD"),
    option(Filter, "collection-period-unit", Form::Choice(&["hour", "min", "sec", "msec", "usec", "nsec"], false), "Unit of DELAY and DURATION: hour, min, sec, msec, usec or nsec [default: sec]").value("UNIT"),
    switch(Filter, "selected-regions", "Record only between roctxProfilerResume and roctxProfilerPause")
        .from("ROCPROF_SELECTED_REGIONS"),
    switch(Filter, "selected-regions-ref-count", "As --selected-regions, but recording ends only with the pause that balances the first resume")
        .from("ROCPROF_SELECTED_REGIONS_REF_COUNT"),
    option(Filter, "profile-mpi-ranks", Form::Text, "MPI ranks to profile, such as 0,4-7; the others run without rpd [default: all]").value("RANKS")
        .from("ROCPROF_MPI_RANKS"),
    option(Filter, "mpi-world-rank-variable", Form::Text, "Environment variable with the rank of a process [default: those of MPI libraries and Slurm]").value("NAME"),
    option(Filter, "mpi-world-size-variable", Form::Text, "Environment variable with the number of ranks [default: those of MPI libraries and Slurm]").value("NAME"),

    option(Perfetto, "perfetto-backend", Form::Choice(&["inprocess", "system"], false), "inprocess or system; accepted without effect: rpd writes the trace straight to its file").value("BACKEND"),
    option(Perfetto, "perfetto-buffer-size", Form::Integer(1, 4_194_303), "Accepted without effect: there is no buffer that could be full").value("KIB"),
    option(Perfetto, "perfetto-buffer-fill-policy", Form::Choice(&["discard", "ring_buffer"], false), "discard or ring_buffer; accepted without effect").value("POLICY"),
    option(Perfetto, "perfetto-shmem-size-hint", Form::Integer(i64::MIN, NO_MAX), "Accepted without effect").value("KIB"),

    switch(Display, "list-avail", "List agents, counters and PC sampling configurations; needs no program").short('L'),
    switch(Display, "group-by-queue", "Attribute dispatches and copies to hardware queues instead of HIP streams")
        .from("ROCPROF_GROUP_BY_QUEUE"),

    switch(PcSampling, "pc-sampling-beta-enabled", "Allow PC sampling, a beta feature of the SDK; ROCPROFILER_PC_SAMPLING_BETA_ENABLED in the environment allows it, too"),
    option(PcSampling, "pc-sampling-unit", Form::Choice(&["instructions", "cycles", "time"], true), "Unit of the interval: time (microseconds; for host_trap), cycles (for stochastic) or instructions").value("UNIT")
        .from("ROCPROF_PC_SAMPLING_UNIT"),
    option(PcSampling, "pc-sampling-method", Form::Choice(&["stochastic", "host_trap"], true), "Method of sampling: host_trap (by interrupts; gfx90a and later) or stochastic (by the hardware, with the reasons of stalls; gfx942 and later); rpd hot shows the result").value("METHOD")
        .from("ROCPROF_PC_SAMPLING_METHOD"),
    option(PcSampling, "pc-sampling-interval", Form::Integer(i64::MIN, NO_MAX), "Interval between samples in units of --pc-sampling-unit, at least 1, and a power of two where the GPU demands it; rpd avail info --pc-sampling lists what each GPU allows")
        .from("ROCPROF_PC_SAMPLING_INTERVAL"),

    switch(ThreadTrace, "advanced-thread-trace", "Trace the selected kernels, and every instruction of their waves on one compute unit, with times; rpd hot and rpd annotate show the result").aliases(&["att"])
        .from("ROCPROF_ADVANCED_THREAD_TRACE"),
    option(ThreadTrace, "att-library-path", Form::List(1), "Directories in or below which librocprof-trace-decoder.so is, to decode with it [default: rpd's own decoder]").value("DIR")
        .from("ROCPROF_ATT_LIBRARY_PATH"),
    option(ThreadTrace, "att-target-cu", Form::Text, "Compute unit (RDNA: WGP) whose instructions are traced, 0 to 15 [default: 1]").value("N")
        .from("ROCPROF_ATT_PARAM_TARGET_CU"),
    option(ThreadTrace, "att-simd-select", Form::Text, "SIMDs whose instructions are traced, one bit each; RDNA: the number of a single SIMD [default: 0xF]").value("MASK")
        .from("ROCPROF_ATT_PARAM_SIMD_SELECT"),
    option(ThreadTrace, "att-buffer-size", Form::Text, "Size in bytes of the buffer for the traces of all shader engines of a GPU together, 1 MiB to 2 GiB [default: 0x18000000]").value("BYTES")
        .from("ROCPROF_ATT_PARAM_BUFFER_SIZE"),
    option(ThreadTrace, "att-shader-engine-mask", Form::Text, "Shader engines to trace, one bit each [default: 0x1]").value("MASK")
        .from("ROCPROF_ATT_PARAM_SHADER_ENGINE_MASK"),
    option(ThreadTrace, "att-gpu-index", Form::List(1), "Numbers of the GPUs to trace, such as 0,2 [default: all]").value("LIST")
        .from("ROCPROF_ATT_PARAM_GPU_INDEX"),
    option(ThreadTrace, "att-perfcounters", Form::Text, "Counters of the block SQ to sample into the trace (GFX9), at most 8: 'NAME NAME:0x3', with a mask of SIMDs after the colon").value("NAMES")
        .from("ROCPROF_ATT_PARAM_PERFCOUNTERS"),
    option(ThreadTrace, "att-perfcounter-ctrl", Form::Text, "Period of these samples, in steps from 1 (the shortest) to 32").value("N")
        .from("ROCPROF_ATT_PARAM_PERFCOUNTER_CTRL"),
    switch(ThreadTrace, "att-perfcounter-target-only", "Sample these counters on the traced compute unit only, not on all of its shader engine (SDK 1.1 and later)")
        .from("ROCPROF_ATT_PARAM_TARGET_ONLY"),
    option(ThreadTrace, "att-activity", Form::Text, "Period, in steps from 1 (the shortest) to 16, of samples of eight counters that tell how busy the units of the compute unit are; 8 suits most kernels").value("N"),
    switch(ThreadTrace, "att-serialize-all", "Run kernels that are not traced one after the other, too")
        .from("ROCPROF_ATT_PARAM_SERIALIZE_ALL"),
    option(ThreadTrace, "att-consecutive-kernels", Form::Text, "Number of kernels after a selected one that its trace includes [default: 0]").value("N")
        .from("ROCPROF_ATT_CONSECUTIVE_KERNELS"),
    switch(ThreadTrace, "att-no-intercept", "Trace each GPU once for the whole time that is recorded, without intercepting its queues; implies --att")
        .from("ROCPROF_ATT_NO_INTERCEPT"),
    switch(ThreadTrace, "att-no-detail", "Trace begin and end of waves, not their instructions (SDK 1.1 and later)")
        .from("ROCPROF_ATT_PARAM_NO_DETAIL"),
    option(ThreadTrace, "att-resource-mode", Form::Choice(&["default", "hsa", "code-object"], false), "Time at which the provider allocates queues and buffers of traces: default or hsa (when the HSA runtime starts); code-object (with the first code object) is refused").value("MODE")
        .from("ROCPROF_ATT_PARAM_RESOURCE_MODE"),

    switch(Streaming, "spm-beta-enabled", "Acknowledge that the monitor is beta").missing(SPM),
    option(Streaming, "spm", Form::List(0), "Counters to stream").value("NAME").missing(SPM),
    option(Streaming, "spm-sample-interval", Form::Integer(i64::MIN, NO_MAX), "Interval").missing(SPM),
    option(Streaming, "spm-sample-interval-unit", Form::Choice(&["sclk_cycles"], true), "Unit").value("UNIT").missing(SPM),

    option(Replay, "replay-mode", Form::Choice(&["kernel", "application"], false), "How passes are repeated").value("MODE").missing(REPLAY),
    switch(Replay, "kernel-replay-beta-enabled", "Acknowledge that replay is beta").missing(REPLAY),

    option(Attach, "pid", Form::Integer(1, i32::MAX as i64), "Process to attach to").short('p').aliases(&["attach"]).value("PID").missing(ATTACH),
    option(Attach, "attach-duration-msec", Form::Integer(0, NO_MAX), "How long").value("MSEC").missing(ATTACH),
    switch(Attach, "attach-children", "Attach to children").missing(ATTACH),
    switch(Attach, "attach-sync-output", "Wait for the output").missing(ATTACH),

    option(Advanced, "compat", Form::Choice(&["none", "rocprofv3"], false), "Tool whose behaviour rpd follows where the two differ: none (rpd's own) or rocprofv3, which a link named rocprofv3 implies; see docs/drop-in.md [default: none]")
        .value("TOOL"),
    option(Advanced, "backend", Form::Choice(&["auto", "rocm", "sim"], false), "Platform that the target runs on: rocm (the installation), sim (the simulated GPU), or auto (rocm if there is a device and an SDK, else sim) [default: auto]")
        .value("BACKEND"),
    option(Advanced, "sim-gpu", Form::Choice(SIMULATED_GPUS, false), "GPU to simulate: gfx90a or gfx942; implies --backend sim [default: RPD_SIM_GPU, or gfx90a]").value("GPU"),
    option(Advanced, "provider", Form::Choice(&["auto", "sdk", "direct"], false), "Source of events: sdk (rocprofiler-sdk), direct (the runtimes' own dispatch tables), or auto (direct if it has all that is requested, else sdk); see docs/providers.md [default: sdk]")
        .value("PROVIDER"),
    option(Advanced, "rocm-root", Form::Text, "Root of the ROCm installation").aliases(&["rocm-path"]).value("DIR"),
    option(Advanced, "sdk-soversion", Form::Integer(1, 1000), "Major version of the SDK library to look for [default: 1]"),
    option(Advanced, "sdk-version", Form::Text, "Full version of the SDK library to look for").value("X.Y.Z"),
    option(Advanced, "preload", Form::List(0), "Libraries to preload before those that are inherited").value("LIBRARY"),
    option(Advanced, "agent-index", Form::Choice(&["absolute", "relative", "type-relative"], false), "Numbering of agents: absolute, relative or type-relative [default: relative]")
        .short('A').value("HOW").from("ROCPROF_AGENT_INDEX"),
    switch(Advanced, "disable-signal-handlers", "Install no signal handlers in the target")
        .opposite_of("ROCPROF_SIGNAL_HANDLERS"),
    option(Advanced, "minimum-output-data", Form::Integer(0, NO_MAX / 1024), "Least size of a process's records, in KiB, for which files are written [default: 0]")
        .value("KIB"),
    switch(Advanced, "process-sync", "Processes wait for each other").from("ROCPROF_PROCESS_SYNC").missing("waiting among processes (rpd writes all results after the target has ended)"),
    option(Advanced, "version", Form::Flag, "Print the version").short('v'),
    switch(Advanced, "doctor", "Check the installation").missing("the installation check"),
    switch(Advanced, "readlink", "").missing("rewriting library paths"),
    switch(Advanced, "realpath", "").missing("rewriting library paths"),
    switch(Advanced, "suppress-marker-preload", "Do not preload the ROCTx library").hidden(),
    switch(Advanced, "echo", "Print the resolved options as JSON instead of running").hidden(),
    option(Advanced, "benchmark-mode", Form::Choice(&["disabled-sdk-contexts", "sdk-buffer-overhead", "sdk-callback-overhead", "tool-runtime-overhead", "execution-profile"], true), "")
        .value("MODE").from("ROCPROF_BENCHMARK_MODE").missing(BENCH),
];

/// The option of the command line with this long name or alias.
pub(crate) fn find(long: &str) -> Option<&'static Spec> {
    OPTIONS
        .iter()
        .find(|spec| !spec.key_only && (spec.long == long || spec.aliases.contains(&long)))
}

/// Every long name of the command line with its dashes, aliases included.
pub(crate) fn long_names() -> impl Iterator<Item = &'static str> {
    OPTIONS
        .iter()
        .filter(|spec| !spec.key_only)
        .flat_map(|spec| std::iter::once(spec.long).chain(spec.aliases.iter().copied()))
}

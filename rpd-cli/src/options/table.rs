//! The one table of options. Parser, help, refusals, keys of jobs, inherited variables and the command-line page of the
//! manual are made from it, and [`Given`], which has the options' values.

use rpd_core::compat::Compat;
use rpd_core::environment::EnvironmentSelection;
use rpd_core::options::{
    AgentIndex, Backend, CudaGraphs, Format, Layout, LogLevel, ProviderChoice, RocpdSchema,
    SamplingMethod, SamplingUnit, Symbolize, Unit,
};
use rpd_spool::stacks::StackMode;

use super::choices::{
    BenchmarkMode, CudaApi, PerfettoBackend, PerfettoFillPolicy, PeriodUnit, ReplayMode,
    ResourceMode, SimulatedGpu, SpmUnit,
};
use super::given::{Conflict, Fill, Named, Setting};
use super::spec::{Spec, dashed};
use super::value::{Categories, EscapedPath};

/// Declares the options, by group of the help with its heading. A row is the key in jobs, which with dashes is the name on the command
/// line, then the type of the value, the help, and what else there is to say: functions of [`Spec`].
macro_rules! options {
    ($($group:ident $heading:literal {
        $($key:ident: $type:ty = $help:literal $(, $function:ident($($argument:expr),*))*;)*
    })*) => {
        /// Headings of the help, in its order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Group {
            $($group,)*
        }

        impl Group {
            /// Text above the group's options.
            pub(crate) const fn heading(self) -> &'static str {
                match self {
                    $(Group::$group => $heading,)*
                }
            }
        }

        /// Number of options.
        const COUNT: usize = [$($(stringify!($key),)*)*].len();

        /// Every option.
        pub(crate) static OPTIONS: [Spec; COUNT] = [$($({
            const KEY: &str = stringify!($key);
            const LONG: [u8; KEY.len()] = dashed(KEY);
            Spec::new::<$type>(Group::$group, KEY, &LONG, $help)$(.$function($($argument),*))*
        },)*)*];

        /// The options with their values, from one source or from several that were merged.
        #[derive(Debug, Clone)]
        pub(crate) struct Given {
            // Options that this build refuses may have no help.
            $($(#[doc = $help] #[allow(clippy::empty_docs)] pub(crate) $key: Setting<$type>,)*)*
        }

        impl Default for Given {
            fn default() -> Given {
                let [$($($key,)*)*] = &OPTIONS;
                Given { $($($key: Setting::new($key),)*)* }
            }
        }

        impl Given {
            /// Every option, in the order of [`OPTIONS`].
            pub(crate) fn all(&self) -> [&Named; COUNT] {
                [$($(&self.$key,)*)*]
            }

            /// Every option, to give it a value, in the order of [`OPTIONS`].
            pub(super) fn all_mut(&mut self) -> [&mut dyn Fill; COUNT] {
                [$($(&mut self.$key,)*)*]
            }

            /// Options that this command line and a job give different values.
            pub(super) fn conflicts(&self, job: &Given) -> Vec<Conflict> {
                let mut conflicts = Vec::new();
                $($(conflicts.extend(self.$key.conflict(&job.$key));)*)*
                conflicts
            }

            /// Takes what a job gives and this command line does not.
            pub(super) fn merge(&mut self, job: Given) {
                $($(self.$key.merge(job.$key);)*)*
            }
        }
    };
}

const SPM: &str = "the streaming performance monitor";
const BENCH: &str = "the benchmark modes";
const NO_MAX: i64 = i64::MAX;

options! {
    Output "Input and output" {
        input: String = "File with jobs, each a run of the program: .yaml, .yml, .json or .txt",
            short('i'), value("FILE"), not_in_jobs();
        output_file: EscapedPath = "Prefix of the output files; placeholders such as %pid% are filled in per process [default: %hostname%/%pid%]",
            short('o'), value("PREFIX"), from("ROCPROF_OUTPUT_FILE_NAME");
        output_directory: EscapedPath = "Directory of the output files; may hold placeholders [default: the current directory]",
            short('d'), value("DIR"), from("ROCPROF_OUTPUT_PATH");
        output_format: Vec<Format> = "Formats to write, separated by spaces: %formats% [default: rocpd]", short('f');
        rocpd_schema: RocpdSchema = "Version of the schema of databases, for readers that know no later one. What it has no place for is left out, and a line says so [default: the first that has a place for all that was recorded]",
            value("VERSION");
        layout: Layout = "Columns of tables in databases: rpd (those that are the same in every row last, where they take no space) or original (the order of the original tools, larger, for rocpd merge of ROCm) [default: rpd]",
            value("WHICH");
        output_config: bool = "Write the resolved options to <prefix>_config.json", from("ROCPROF_OUTPUT_CONFIG_FILE");
        output_environment: EnvironmentSelection = "Variables of the target that outputs hold: relevant (names of ROCm, HIP, HSA, the loader, MPI and the like that are known to hold no secret), all or none [default: relevant]",
            value("WHICH");
        otf2_library: String = "File of libotf2, for -f otf2 [default: the one that the loader finds]", value("PATH");
        csv_safe: bool = "Put an apostrophe before CSV fields that a spreadsheet would take for a formula (that begin with =, +, - or @)";
        log_level: LogLevel = "Lowest level of messages that the ROCm libraries in the target print: fatal, error, warning, info or trace; or what rpd prints: its resolved options (config), the variables it adds (env) [default: the libraries' own]",
            any_case(), value("LEVEL");
        quiet: bool = "Print warnings, losses and errors alone, and the tables that were requested",
            short('q'), not_in_jobs();
        extra_counters: String = "YAML file that defines further counters",
            short('E'), value("FILE"), from("ROCPROF_EXTRA_COUNTERS_CONTENTS");
    }
    Aggregate "Aggregate tracing" {
        runtime_trace: bool = "Trace HIP runtime and CUDA calls, markers, RCCL, rocDecode and rocJPEG calls, kernel dispatches, copies, allocations and scratch memory",
            short('r');
        sys_trace: bool = "Trace everything that --runtime-trace does, HIP compiler calls, HSA calls and CUDA driver calls", short('s');
        light: bool = "Trace kernel dispatches and copies at the least cost, for programs that run for long: durations are added up, and only the latest dispatches and copies are kept one by one; rpd live shows the sums while the program runs; see docs/providers.md";
        light_keep: String = "Size of the memory in which --light keeps the latest dispatches and copies of each process, such as 500M, at least 256K [default: 64M]",
            value("SIZE");
        spool_limit: String = "Bound on what is kept of each process while it runs, such as 500M: the oldest records go, and what goes is counted and added up; at least 1M [default: none]",
            value("SIZE");
        rotate: String = "Write complete outputs while the program goes on, each time in a directory of its own (piece-1, piece-2 and so on), after a time such as 10s or 5min, or when so much is recorded, such as 2G; a record is in one piece only",
            value("TIME|SIZE");
    }
    Basic "Basic tracing" {
        hip_trace: bool = "Trace HIP runtime and compiler calls";
        marker_trace: bool = "Trace ROCTx and NVTX marks and ranges", from("ROCPROF_MARKER_API_TRACE");
        kernel_trace: bool = "Trace kernel dispatches", from("ROCPROF_KERNEL_TRACE");
        memory_copy_trace: bool = "Trace asynchronous memory copies", from("ROCPROF_MEMORY_COPY_TRACE");
        memory_allocation_trace: bool = "Trace memory allocations and frees", from("ROCPROF_MEMORY_ALLOCATION_TRACE");
        scratch_memory_trace: bool = "Trace scratch memory operations", from("ROCPROF_SCRATCH_MEMORY_TRACE");
        hsa_trace: bool = "Trace HSA calls of all four tables (core, AMD extension, image, finalizer)";
        rccl_trace: bool = "Trace RCCL calls", from("ROCPROF_RCCL_API_TRACE");
        kokkos_trace: bool = "Trace Kokkos regions and kernels as markers, and name GPU kernels after them";
        rocdecode_trace: bool = "Trace rocDecode calls", from("ROCPROF_ROCDECODE_API_TRACE");
        rocjpeg_trace: bool = "Trace rocJPEG calls", from("ROCPROF_ROCJPEG_API_TRACE");
        cuda_trace: bool = "Trace CUDA calls of programs: those of the runtime, and those of the driver outside of the runtime; see docs/cuda.md";
        cuda_driver_trace: bool = "Trace CUDA driver calls, also those that the runtime makes";
        cuda_api: CudaApi = "CUDA calls that traces include: usual (without those that only ask for something, such as cudaGetDevice) or all [default: usual]",
            value("WHICH");
        cuda_graph_trace: CudaGraphs = "Records of CUDA graphs: node (each kernel and copy), graph (each launch of a graph), or auto (graph once a graph has more than 1024 nodes, otherwise node) [default: auto]",
            value("WHICH");
        rocshmem_trace: bool = "Trace rocSHMEM calls on streams; needs SDK 1.3", from("ROCPROF_ROCSHMEM_API_TRACE");
        hipfile_trace: bool = "Trace hipFile calls; needs SDK 1.3", from("ROCPROF_HIPFILE_API_TRACE");
        kfd_trace: bool = "Trace events of the kernel driver: page migrations, page faults, queue evictions";
        ompt_trace: Categories = "OpenMP tools events to trace", from("ROCPROF_OMPT_TRACE"), newer();
    }
    Granular "Granular tracing" {
        hip_runtime_trace: bool = "Trace HIP runtime calls (hip*)", from("ROCPROF_HIP_RUNTIME_API_TRACE");
        hip_compiler_trace: bool = "Trace HIP compiler calls (__hip*)", from("ROCPROF_HIP_COMPILER_API_TRACE");
        hip_graph_trace: bool = "Trace launches of HIP graphs, and record which graph and node dispatches and copies belong to (included in --hip-runtime-trace)",
            from("ROCPROF_HIP_GRAPH_TRACE");
        hip_event_trace: bool = "Trace HIP events on the device: the barriers that record one or wait for one; needs SDK 1.4 (included in --hip-runtime-trace)",
            from("ROCPROF_HIP_EVENT_TRACE");
        hsa_core_trace: bool = "Trace HSA core calls (hsa_*)", from("ROCPROF_HSA_CORE_API_TRACE");
        hsa_amd_trace: bool = "Trace HSA calls of the AMD extension (hsa_amd_*)", from("ROCPROF_HSA_AMD_EXT_API_TRACE");
        hsa_image_trace: bool = "Trace HSA image calls (hsa_ext_image_*)", from("ROCPROF_HSA_IMAGE_EXT_API_TRACE");
        hsa_finalizer_trace: bool = "Trace HSA finalizer calls (hsa_ext_program_*)",
            from("ROCPROF_HSA_FINALIZER_EXT_API_TRACE"), key_alias("hsa_finalize_trace");
        kfd_page_migration_trace: bool = "Trace migrations of pages between memories", from("ROCPROF_KFD_PAGE_MIGRATION_TRACE");
        kfd_page_mapping_trace: bool = "Trace page faults of GPUs, and ranges that are unmapped from GPUs", from("ROCPROF_KFD_PAGE_MAPPING_TRACE");
        kfd_queue_trace: bool = "Trace evictions and restorations of queues", from("ROCPROF_KFD_QUEUE_TRACE");
        kfd_dropped_events_trace: bool = "Record how many events the kernel driver dropped",
            from("ROCPROF_KFD_DROPPED_EVENTS_TRACE");
        annotate_args: bool = "Record arguments of HSA, marker, RCCL, rocDecode and rocJPEG calls too (those of HIP calls are recorded when a format shows them)";
    }
    Stacks "Call stacks" {
        stacks: StackMode = "Frames to record for each call: off, native (C, C++, Rust and the like), python, or merged (Python frames at their places among the native ones) [default: off]",
            value("WHICH"), from("RPD_STACKS");
        stacks_apis: Vec<String> = "Calls to record stacks of, by name: globs separated by commas, in which * stands for any text; a glob after ! leaves its calls out. Names are those of traced functions, markers (roctx*) and allocations (MEMORY_ALLOCATION_*) [default: hip*,__hip*,cu*]",
            value("GLOB,..."), from("RPD_STACKS_APIS");
        stacks_depth: i64 = "Largest number of frames of a stack to keep: three quarters of them the innermost, the others the outermost; 0 keeps all [default: 512]",
            within(0, u32::MAX as i64), from("RPD_STACKS_DEPTH");
        stacks_every: i64 = "Interval of recorded stacks in calls of the same function, beginning with the first call; 1 records all [default: 1]",
            within(1, u32::MAX as i64), from("RPD_STACKS_RATE");
        stacks_min_duration: String = "Shortest duration of a call whose stack is recorded, such as 50us; stacks are then taken at the end of the call [default: all calls]",
            value("TIME");
        stacks_symbolize: Symbolize = "Time to look up names and lines of native frames: stop (after the run), post (later, with rpd symbolize) or off [default: stop]",
            value("WHEN"), from("RPD_STACKS_SYMBOLIZE");
        stacks_symbolize_limit: String = "Longest time for that look-up after a run, such as 30s; the rest is reported and left to rpd symbolize [default: 60s]",
            value("TIME");
        stacks_runtime_frames: bool = "Show the frames of GPU runtimes and of the profiler between the program and the call; they are recorded in any case",
            from("RPD_STACKS_RUNTIME_FRAMES");
        stacks_interpreter_frames: bool = "Show the native frames of the Python interpreter beside the Python frames; they are recorded in any case",
            from("RPD_STACKS_INTERP_FRAMES");
    }
    Counters "Counter collection" {
        pmc: Vec<Vec<String>> = "Counters to collect in one pass (a run of the program), separated by blanks or commas: NAME, or NAME:device=N for one GPU; each --pmc is a pass; auto:NAME,NAME,... needs as few passes as possible",
            from("ROCPROF_COUNTERS");
        pmc_groups: Vec<Vec<String>> = "Groups of counters that take turns", key_only(), from("ROCPROF_COUNTER_GROUPS");
        pmc_group_interval: i64 = "Dispatches that a group is kept for",
            within(0, NO_MAX), key_only(), from("ROCPROF_COUNTER_GROUPS_INTERVAL");
        pmc_raw: Vec<String> = "Raw counter specifications",
            may_be_empty(), key_only(), missing("raw counter specifications");
        continue_on_error: bool = "Go on with the next pass when one fails";
    }
    Statistics "Post-processing" {
        stats: bool = "Print a table of durations per domain unless a summary is requested; with -f csv also write <prefix>_<domain>_stats.csv and <prefix>_domain_stats.csv",
            from("ROCPROF_STATS");
    }
    Summary "Summaries" {
        summary: bool = "Print one table of durations over all domains", short('S'), from("ROCPROF_STATS_SUMMARY");
        summary_per_domain: bool = "Print one table per domain", short('D'), from("ROCPROF_STATS_SUMMARY_PER_DOMAIN");
        summary_groups: Vec<String> = "Regular expressions, each for a table over the domains whose whole name it matches: 'KERNEL_DISPATCH|MEMORY_COPY' '.*_API'",
            value("REGEX"), from("ROCPROF_STATS_SUMMARY_GROUPS");
        summary_output_file: String = "Destination of the tables: stderr, stdout, or a name for <prefix>_<name>.txt [default: stderr]",
            value("NAME"), from("ROCPROF_STATS_SUMMARY_OUTPUT");
        summary_units: Unit = "Unit of times in the tables: sec, msec, usec or nsec [default: nsec]",
            short('u'), value("UNIT"), from("ROCPROF_STATS_SUMMARY_UNITS");
        wide: bool = "Print the tables in full on a terminal, too, which is too narrow for them";
    }
    Naming "Kernel naming" {
        mangled_kernels: bool = "Show kernel names as registered, not demangled",
            short('M'), opposite_of("ROCPROF_DEMANGLE_KERNELS");
        truncate_kernels: bool = "Show the bare function name of kernels", short('T'), from("ROCPROF_TRUNCATE_KERNELS");
        kernel_rename: bool = "Name kernels after the innermost ROCTx range they were launched in",
            from("ROCPROF_KERNEL_RENAME");
    }
    Filter "Filtering" {
        kernel_include_regex: String = "Regular expression of the kernels to count and thread trace, searched for in their names; other traces are not filtered [default: all kernels]",
            value("REGEX"), from("ROCPROF_KERNEL_FILTER_INCLUDE_REGEX");
        kernel_exclude_regex: String = "Regular expression of the kernels not to count and not to thread trace, searched for in their names [default: none]",
            value("REGEX"), from("ROCPROF_KERNEL_FILTER_EXCLUDE_REGEX");
        kernel_iteration_range: Vec<String> = "Dispatches of each kernel to count or thread trace, numbered from 1: 3, 5-7, '[1, 3, [8-12]]' [default: all; of thread traces the first]",
            nested(), value("RANGE"), from("ROCPROF_KERNEL_FILTER_RANGE");
        collection_period: Vec<String> = "Periods to record in, one after the other, each as DELAY:DURATION:REPEAT: wait, record, and repeat so many times; 0 repeats endlessly [default: the whole run]",
            short('P'), value("PERIOD"), from("ROCPROF_COLLECTION_PERIOD");
        collection_period_unit: PeriodUnit = "Unit of DELAY and DURATION: hour, min, sec, msec, usec or nsec [default: sec]",
            value("UNIT");
        selected_regions: bool = "Record only between roctxProfilerResume and roctxProfilerPause",
            from("ROCPROF_SELECTED_REGIONS");
        selected_regions_ref_count: bool = "As --selected-regions, but recording ends only with the pause that balances the first resume",
            from("ROCPROF_SELECTED_REGIONS_REF_COUNT");
        profile_mpi_ranks: String = "MPI ranks to profile, such as 0,4-7; the others run without rpd [default: all]",
            value("RANKS"), from("ROCPROF_MPI_RANKS");
        mpi_world_rank_variable: String = "Environment variable with the rank of a process [default: those of MPI libraries and Slurm]",
            value("NAME");
        mpi_world_size_variable: String = "Environment variable with the number of ranks [default: those of MPI libraries and Slurm]",
            value("NAME");
    }
    Perfetto "Perfetto" {
        perfetto_backend: PerfettoBackend = "inprocess or system; accepted without effect: rpd writes the trace straight to its file",
            value("BACKEND");
        perfetto_buffer_size: i64 = "Accepted without effect: there is no buffer that could be full",
            within(1, 4_194_303), value("KIB");
        perfetto_buffer_fill_policy: PerfettoFillPolicy = "discard or ring_buffer; accepted without effect",
            value("POLICY");
        perfetto_shmem_size_hint: i64 = "Accepted without effect", value("KIB");
    }
    Display "Display" {
        list_avail: bool = "List agents, counters and PC sampling configurations; needs no program",
            short('L'), key_alias("list_metrics");
        group_by_queue: bool = "Attribute dispatches and copies to hardware queues instead of HIP streams",
            from("ROCPROF_GROUP_BY_QUEUE");
    }
    PcSampling "PC sampling" {
        pc_sampling_beta_enabled: bool = "Allow PC sampling, a beta feature of the SDK; ROCPROFILER_PC_SAMPLING_BETA_ENABLED in the environment allows it, too";
        pc_sampling_unit: SamplingUnit = "Unit of the interval: time (microseconds; for host_trap), cycles (for stochastic) or instructions",
            any_case(), value("UNIT"), from("ROCPROF_PC_SAMPLING_UNIT");
        pc_sampling_method: SamplingMethod = "Method of sampling: host_trap (by interrupts; gfx90a and later) or stochastic (by the hardware, with the reasons of stalls; gfx942 and later); rpd hot shows the result",
            any_case(), value("METHOD"), from("ROCPROF_PC_SAMPLING_METHOD");
        pc_sampling_interval: i64 = "Interval between samples in units of --pc-sampling-unit, at least 1, and a power of two where the GPU demands it; rpd avail info --pc-sampling lists what each GPU allows",
            from("ROCPROF_PC_SAMPLING_INTERVAL");
    }
    ThreadTrace "Advanced thread trace" {
        advanced_thread_trace: bool = "Trace the selected kernels, and every instruction of their waves on one compute unit, with times; rpd hot and rpd annotate show the result",
            aliases(&["att"]), from("ROCPROF_ADVANCED_THREAD_TRACE");
        att_library_path: Vec<String> = "Directories in or below which librocprof-trace-decoder.so is, to decode with it [default: rpd's own decoder]",
            value("DIR"), from("ROCPROF_ATT_LIBRARY_PATH");
        att_target_cu: String = "Compute unit (RDNA: WGP) whose instructions are traced, 0 to 15 [default: 1]",
            value("N"), from("ROCPROF_ATT_PARAM_TARGET_CU");
        att_simd_select: String = "SIMDs whose instructions are traced, one bit each; RDNA: the number of a single SIMD [default: 0xF]",
            value("MASK"), from("ROCPROF_ATT_PARAM_SIMD_SELECT");
        att_buffer_size: String = "Size in bytes of the buffer for the traces of all shader engines of a GPU together, 1 MiB to 2 GiB [default: 0x18000000]",
            value("BYTES"), from("ROCPROF_ATT_PARAM_BUFFER_SIZE");
        att_shader_engine_mask: String = "Shader engines to trace, one bit each [default: 0x1]",
            value("MASK"), from("ROCPROF_ATT_PARAM_SHADER_ENGINE_MASK");
        att_gpu_index: Vec<String> = "Numbers of the GPUs to trace, such as 0,2 [default: all]",
            value("LIST"), from("ROCPROF_ATT_PARAM_GPU_INDEX");
        att_perfcounters: String = "Counters of the block SQ to sample into the trace (GFX9), at most 8: 'NAME NAME:0x3', with a mask of SIMDs after the colon",
            value("NAMES"), from("ROCPROF_ATT_PARAM_PERFCOUNTERS");
        att_perfcounter_ctrl: String = "Period of these samples, in steps from 1 (the shortest) to 32",
            value("N"), from("ROCPROF_ATT_PARAM_PERFCOUNTER_CTRL");
        att_perfcounter_target_only: bool = "Sample these counters on the traced compute unit only, not on all of its shader engine (SDK 1.1 and later)",
            from("ROCPROF_ATT_PARAM_TARGET_ONLY");
        att_activity: String = "Period, in steps from 1 (the shortest) to 16, of samples of eight counters that tell how busy the units of the compute unit are; 8 suits most kernels",
            value("N");
        att_serialize_all: bool = "Run kernels that are not traced one after the other, too",
            from("ROCPROF_ATT_PARAM_SERIALIZE_ALL");
        att_consecutive_kernels: String = "Number of kernels after a selected one that its trace includes [default: 0]",
            value("N"), from("ROCPROF_ATT_CONSECUTIVE_KERNELS");
        att_no_intercept: bool = "Trace each GPU once for the whole time that is recorded, without intercepting its queues; implies --att",
            from("ROCPROF_ATT_NO_INTERCEPT");
        att_no_detail: bool = "Trace begin and end of waves, not their instructions (SDK 1.1 and later)",
            from("ROCPROF_ATT_PARAM_NO_DETAIL");
        att_resource_mode: ResourceMode = "Time at which the provider allocates queues and buffers of traces: default or hsa (when the HSA runtime starts); code-object (with the first code object) is refused",
            value("MODE"), from("ROCPROF_ATT_PARAM_RESOURCE_MODE");
    }
    Streaming "Streaming performance monitor" {
        spm_beta_enabled: bool = "Acknowledge that the monitor is beta", missing(SPM);
        spm: Vec<String> = "Counters to stream", may_be_empty(), value("NAME"), missing(SPM);
        spm_sample_interval: i64 = "Interval", missing(SPM);
        spm_sample_interval_unit: SpmUnit = "Unit", any_case(), value("UNIT"), missing(SPM);
    }
    Replay "Kernel replay" {
        replay_mode: ReplayMode = "What is repeated for each group of counters: application (the program is run again), kernel (each dispatch is, within one run, on the same input; SDK 1.4 and later), or auto (kernel where the SDK has it, else application); see docs/passes.md [default: application]",
            value("MODE");
        kernel_replay_beta_enabled: bool = "Allow --replay-mode kernel, a beta feature of the SDK";
    }
    Attach "Attaching" {
        pid: i64 = "Process to attach to, in place of a program to start: one that rpd idle started; see docs/attach.md",
            within(1, i32::MAX as i64), short('p'), aliases(&["attach"]), value("PID");
        attach_duration_msec: i64 = "Time to record for, in milliseconds [default: until Enter or Ctrl-C is pressed, or the process ends]",
            within(0, NO_MAX), value("MSEC");
        attach_children: bool = "Attach to the descendants of the process, too [default: on]";
        attach_sync_output: bool = "Accepted without effect: rpd ends when the outputs are complete";
    }
    Advanced "Advanced" {
        compat: Compat = "Tool whose behaviour rpd follows where the two differ: none (rpd's own) or rocprofv3, which a link named rocprofv3 implies; see docs/drop-in.md [default: none]",
            value("TOOL"), not_in_jobs();
        backend: Backend = "Platform that the target runs on: rocm (the installation), sim (the simulated GPU), cuda (NVIDIA GPUs alone), or auto (rocm if there is a device and an SDK, cuda if there is an NVIDIA GPU, else sim; CUDA programs are recorded with each) [default: auto]",
            value("BACKEND");
        sim_gpu: SimulatedGpu = "GPU to simulate: gfx90a or gfx942; implies --backend sim [default: RPD_SIM_GPU, or gfx90a]",
            value("GPU");
        provider: ProviderChoice = "Source of events: sdk (rocprofiler-sdk), direct (the runtimes' own dispatch tables), or auto (direct if it has all that is requested, else sdk); see docs/providers.md [default: sdk]",
            value("PROVIDER");
        rocm_root: String = "Root of the ROCm installation", aliases(&["rocm-path"]), value("DIR");
        sdk_soversion: i64 = "Major version of the SDK library to look for [default: 1]", within(1, 1000);
        sdk_version: String = "Full version of the SDK library to look for", value("X.Y.Z");
        preload: Vec<String> = "Libraries to preload before those that are inherited", may_be_empty(), value("LIBRARY");
        agent_index: AgentIndex = "Numbering of agents: absolute, relative or type-relative [default: relative]",
            short('A'), value("HOW"), from("ROCPROF_AGENT_INDEX");
        disable_signal_handlers: bool = "Install no signal handlers in the target",
            opposite_of("ROCPROF_SIGNAL_HANDLERS");
        minimum_output_data: i64 = "Least size of a process's records, in KiB, for which files are written [default: 0]",
            within(0, NO_MAX / 1024), value("KIB");
        process_sync: bool = "Processes wait for each other",
            from("ROCPROF_PROCESS_SYNC"), missing("waiting among processes (rpd writes all results after the target has ended)");
        version: bool = "Print the version", without_value(), short('v'), not_in_jobs();
        doctor: bool = "Check the installation", missing("the installation check"), not_in_jobs();
        readlink: bool = "", missing("rewriting library paths");
        realpath: bool = "", missing("rewriting library paths");
        suppress_marker_preload: bool = "Do not preload the ROCTx library", hidden();
        echo: bool = "Print the resolved options as JSON instead of running", hidden();
        benchmark_mode: BenchmarkMode = "", any_case(), value("MODE"), from("ROCPROF_BENCHMARK_MODE"), missing(BENCH);
    }
}

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

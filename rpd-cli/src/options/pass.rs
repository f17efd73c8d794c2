//! One pass: from what was given for it to its options.

use std::collections::BTreeSet;

use rpd_core::compat::Difference;
use rpd_core::environment::EnvironmentSelection;
use rpd_core::options::{
    AgentIndex, Backend, CollectionPeriod, CollectorOptions, CounterOptions, KernelNames, LogLevel,
    Options, ProviderChoice, Traces,
};
use rpd_core::{naming, os_text};
use rpd_formats::registry;

use super::counters::{self, CounterGroup};
use super::extra_counters;
use super::filters;
use super::given::OptionValues;
use super::inherit::variable_truth;
use super::light;
use super::merge::Draft;
use super::outputs;
use super::plan::Pass;
use super::provider;
use super::ranks;
use super::resolve::Resolver;
use super::sampling;
use super::stacks;
use super::summary;
use super::thread_trace;
use crate::failure::Failure;

/// Options that pick dispatches for counting.
const FILTERS: [&str; 3] = [
    "kernel-include-regex",
    "kernel-exclude-regex",
    "kernel-iteration-range",
];

impl Resolver<'_> {
    /// Resolves a draft. `listing`: nothing is going to be recorded.
    pub(super) fn pass(&mut self, draft: &Draft, listing: bool) -> Result<Pass, Failure> {
        let given = &draft.given;
        let on = |long: &str| given.bool(long).unwrap_or(false);
        let traces = Traces {
            hip_runtime: on("hip-runtime-trace"),
            hip_compiler: on("hip-compiler-trace"),
            hsa_core: on("hsa-core-trace"),
            hsa_amd: on("hsa-amd-trace"),
            hsa_image: on("hsa-image-trace"),
            hsa_finalizer: on("hsa-finalizer-trace"),
            marker: on("marker-trace"),
            kernel: on("kernel-trace"),
            memory_copy: on("memory-copy-trace"),
            memory_allocation: on("memory-allocation-trace"),
            scratch_memory: on("scratch-memory-trace"),
            rccl: on("rccl-trace"),
            rocdecode: on("rocdecode-trace"),
            rocjpeg: on("rocjpeg-trace"),
        };
        let (counters, auto) = self.counters(draft)?;
        let sampling = sampling::resolve(given, self.environment)?;
        sampling::check_counters(sampling, counters.any(), self.environment)?;
        let traced = thread_trace::resolve(given, self.environment, counters.any())?;
        if let Some(warning) = traced.warning {
            self.warn(warning);
        }
        let compat = self.environment.compat;
        let queue_is_trace = on("group-by-queue") && compat.has(Difference::QueueIsTrace);
        let anything =
            traces.any() || counters.any() || sampling.is_some() || traced.collector.is_some();
        if !listing && !anything && !queue_is_trace {
            if let Some(long) = summary::needs_traces(given) {
                return Err(Failure::failed(format!(
                    "No tracing options were enabled for --{long} option"
                )));
            }
            if let Some(value) = self.environment.get("ROCPROFILER_CI")
                && variable_truth(value)
            {
                return Err(Failure::failed(format!(
                    "No tracing options were enabled (an error because of ROCPROFILER_CI={value})"
                )));
            }
            self.warn(
                "No tracing options were enabled: nothing will be recorded (try --sys-trace)"
                    .to_owned(),
            );
        } else if !listing
            && !traces.any()
            && let Some(long) = summary::needs_traces(given)
        {
            self.warn(format!(
                "--{long}: counters and samples have no durations, so there is nothing to show; --kernel-trace records those of kernels"
            ));
        }
        for warning in without_effect(given)
            .into_iter()
            .chain(light::without_effect(given))
        {
            self.warn(warning);
        }
        let summary = summary::resolve(given, given.variable("summary-groups"))?;
        if let Some(warning) = summary::without_tables(given, &summary, on("stats")) {
            self.warn(warning);
        }
        for warning in summary::without_domains(given, &summary) {
            self.warn(warning);
        }
        let formats = outputs::formats(given, self.environment)?;
        for warning in outputs::unused_libraries(given, &formats) {
            self.warn(warning);
        }
        let (output_directory, output_file) = outputs::names(given, self.environment)?;
        let periods = self.periods(given)?;
        let (kernel_include, kernel_exclude) = self.kernels(given)?;
        let extra_counters = self.extra_counters(given)?;
        let stacks = stacks::resolve(given, self.environment, &traces, listing)?;
        for warning in stacks.warnings {
            self.warn(warning);
        }
        let ranks = ranks::resolve(given, self.environment)?;
        if let Some(number) = ranks.reported_count.filter(|number| *number > 1)
            && ![&output_directory, &output_file]
                .into_iter()
                .any(|pattern| naming::distinguishes_ranks(pattern))
        {
            self.warn(format!(
                "{}: if {number} ranks run rpd, they overwrite one another's files: add %rank% or %pid%",
                given.name("output-file")
            ));
        }
        let arguments_shown = formats
            .iter()
            .any(|format| registry::entry(*format).arguments);
        let mut launch_environment = self.naming.clone();
        // Values may name further variables.
        let mut patterns = vec![output_directory.clone(), output_file.clone()];
        while let Some(pattern) = patterns.pop() {
            for name in naming::variables(&pattern) {
                if !launch_environment.contains_key(name)
                    && let Some(value) = self.environment.variables.get(name)
                {
                    let value = os_text::escape_str(value).into_owned();
                    launch_environment.insert(name.to_owned(), value.clone());
                    patterns.push(value);
                }
            }
        }
        launch_environment.extend(ranks.naming);
        let kept = match given.text("output-environment") {
            Some(word) => EnvironmentSelection::of_word(word),
            None => EnvironmentSelection::default(),
        };
        let is_name = |name: &&String| {
            name.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let named = [&output_directory, &output_file]
            .into_iter()
            .flat_map(|pattern| naming::variables(pattern))
            .map(str::to_owned);
        let variables: BTreeSet<String> = launch_environment
            .keys()
            .cloned()
            .chain(named)
            .filter(|name| is_name(&name) && !kept.keeps(name))
            .collect();
        let recent_bytes = light::resolve(given, &traces, &counters, stacks.collector.mode)?;
        let is_light = recent_bytes.is_some();
        let mut options = Options {
            compat,
            collector: CollectorOptions {
                // Chosen below, by the others.
                provider: ProviderChoice::default(),
                recent_bytes,
                traces,
                hip_args: arguments_shown && (traces.hip_runtime || traces.hip_compiler),
                annotate_args: on("annotate-args"),
                argument_results: !compat.has(Difference::ArgumentResults),
                kernel_rename: on("kernel-rename"),
                environment: kept,
                variables: variables.into_iter().collect(),
                original_semantics: compat.has(Difference::PauseResume)
                    && compat.has(Difference::RenamingMarks),
                // Following streams costs every HIP call that has one.
                streams: !on("group-by-queue") && !is_light,
                disable_signal_handlers: on("disable-signal-handlers"),
                kokkos: on("kokkos-trace"),
                counters: CounterOptions {
                    include: !kernel_include.is_empty(),
                    exclude: !kernel_exclude.is_empty(),
                    extra: !extra_counters.is_empty(),
                    mangled: on("mangled-kernels"),
                    truncate: on("truncate-kernels"),
                    ..counters
                },
                periods,
                capture: rpd_spool::options::CaptureOptions::default(),
                check_kernels: false,
                stacks: stacks.collector,
                sampling,
                thread_trace: traced.collector,
                selected_regions: on("selected-regions") || on("selected-regions-ref-count"),
                selected_regions_ref_count: on("selected-regions-ref-count"),
            },
            formats,
            output_directory,
            output_file,
            output_config: on("output-config"),
            stats: on("stats"),
            stacks: stacks.output,
            summary,
            output_environment: kept,
            kernel_names: KernelNames {
                mangled: on("mangled-kernels"),
                truncate: on("truncate-kernels"),
                rename: on("kernel-rename"),
            },
            agent_index: match given.text("agent-index") {
                Some("absolute") => AgentIndex::Absolute,
                Some("type-relative") => AgentIndex::TypeRelative,
                _ => AgentIndex::Relative,
            },
            group_by_queue: on("group-by-queue") || is_light,
            minimum_output_bytes: outputs::minimum_output(given, self.environment)?,
            backend: match (given.text("backend"), given.text("sim-gpu")) {
                (Some("rocm"), Some(_)) => {
                    return Err(given.refused(
                        "sim-gpu",
                        "names a simulated GPU, and --backend rocm selects the ROCm installation",
                    ));
                }
                (Some("rocm"), None) => Backend::Rocm,
                (Some("sim"), _) | (_, Some(_)) => Backend::Sim,
                _ => Backend::Auto,
            },
            sim_gpu: given.text("sim-gpu").map(str::to_owned),
            log_level: given.text("log-level").and_then(|word| {
                Some(match word {
                    "fatal" => LogLevel::Fatal,
                    "error" => LogLevel::Error,
                    "warning" => LogLevel::Warning,
                    "info" => LogLevel::Info,
                    "trace" => LogLevel::Trace,
                    "env" => LogLevel::Env,
                    "config" => LogLevel::Config,
                    _ => return None,
                })
            }),
            rocm_root: given
                .text("rocm-root")
                .map(|root| self.environment.cwd.join(root)),
            otf2_library: given
                .text("otf2-library")
                .map(|path| self.environment.cwd.join(path)),
            thread_trace_library: traced.library,
            csv_safe: on("csv-safe"),
            preload: outputs::preload(given, self.environment),
            kernel_include,
            kernel_exclude,
            extra_counters,
            pass: None,
            command: self.command.clone(),
            launch_time: self.launch_time,
            launch_environment,
        };
        options.collector.provider = provider::resolve(given, &options.collector)?;
        Ok(Pass {
            counted: !draft.counters.counters.is_empty(),
            auto,
            unprofiled: ranks.unprofiled,
            suppress_marker_preload: on("suppress-marker-preload"),
            sdk_suffixes: outputs::sdk_suffixes(given),
            options,
        })
    }

    /// Counter options, and whether the counters still have to be packed into passes.
    fn counters(&mut self, draft: &Draft) -> Result<(CounterOptions, bool), Failure> {
        let given = &draft.given;
        let asked = given.groups("pmc-groups").unwrap_or_default();
        let mut auto = false;
        let groups = if !draft.counters.counters.is_empty() {
            if !asked.is_empty() {
                return Err(given.refused("pmc-groups", "Cannot specify both pmc and pmc_groups"));
            }
            auto = draft.counters.auto;
            vec![draft.counters.counters.clone()]
        } else {
            // `pmc` that is still here comes from a variable, and has priority over the other one.
            let source = if given.groups("pmc").is_some() {
                "pmc"
            } else {
                "pmc-groups"
            };
            let mut groups = Vec::new();
            for (words, number) in given.groups(source).unwrap_or_default().iter().zip(1..) {
                let CounterGroup { counters, auto } =
                    counters::group(words).map_err(|message| given.refused(source, message))?;
                if auto {
                    return Err(
                        given.refused(source, "auto: can be used in groups of --pmc and pmc only")
                    );
                }
                if counters.is_empty() {
                    let message = format!("Empty counter group, number {number}");
                    return Err(given.refused(source, message));
                }
                groups.push(counters);
            }
            groups
        };
        let interval = given.integer("pmc-group-interval").unwrap_or(0);
        if interval > 1 && groups.len() < 2 {
            let name = given.name("pmc-group-interval");
            self.warn(format!(
                "{name}: no effect, since no groups of counters take turns"
            ));
        }
        if groups.is_empty()
            && !thread_trace::is_requested(given)
            && let Some(long) = FILTERS
                .into_iter()
                .find(|long| given.requests(long) && given.text(long) != Some(""))
        {
            let name = given.name(long);
            self.warn(format!(
                "{name}: no effect, since it picks dispatches to count or to thread trace, and nothing is counted or thread traced"
            ));
        }
        let words = given.list("kernel-iteration-range").unwrap_or_default();
        let mut iterations = filters::iterations(words)
            .map_err(|message| given.refused("kernel-iteration-range", message))?;
        if let Some(range) = iterations.iter().find(|range| range.first > range.last) {
            let name = given.name("kernel-iteration-range");
            self.warn(format!("{name}: {}-{} is empty", range.first, range.last));
        }
        if iterations.is_empty()
            && thread_trace::is_requested(given)
            && self.environment.compat.has(Difference::CountersWithTraces)
        {
            iterations.push(filters::FIRST);
        }
        let options = CounterOptions {
            groups,
            group_interval: u64::try_from(interval).unwrap_or(0),
            iterations,
            ..CounterOptions::default()
        };
        Ok((options, auto))
    }

    fn periods(&mut self, given: &OptionValues) -> Result<Vec<CollectionPeriod>, Failure> {
        const PERIOD: &str = "collection-period";
        let words = given.list(PERIOD).unwrap_or_default();
        // The variable is what the original hands to its tool: whole nanoseconds, joined by `;`.
        let (words, unit): (Vec<&str>, &str) = match given.variable(PERIOD) {
            Some(_) => (
                words.iter().flat_map(|word| word.split(';')).collect(),
                "nsec",
            ),
            None => (
                words.iter().map(String::as_str).collect(),
                given.text("collection-period-unit").unwrap_or("sec"),
            ),
        };
        // The option that counts references to regions implies the one for regions.
        let regions = ["selected-regions-ref-count", "selected-regions"]
            .into_iter()
            .find(|option| given.bool(option) == Some(true));
        if let Some(regions) = regions
            && !words.is_empty()
        {
            let message = format!(
                "{} and {} are mutually exclusive",
                given.name(regions),
                given.name(PERIOD)
            );
            return Err(Failure::failed(message));
        }
        let mut periods = words
            .into_iter()
            .map(|word| filters::period(word, unit))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|message| given.refused(PERIOD, message))?;
        if self.environment.compat.has(Difference::EndlessPeriod) {
            for period in periods.iter_mut().filter(|period| period.repeat == 0) {
                period.repeat = 1;
            }
        }
        if let Some(at) = periods.iter().position(|period| period.repeat == 0)
            && at + 1 < periods.len()
        {
            let name = given.name(PERIOD);
            self.warn(format!(
                "{name}: what follows an endless period (repeat 0) never begins"
            ));
        }
        if periods.is_empty() && given.requests("collection-period-unit") {
            let name = given.name("collection-period-unit");
            self.warn(format!("{name}: no effect without --{PERIOD}"));
        }
        Ok(periods)
    }

    /// Kernels to count and not to count: patterns that are known to be good.
    fn kernels(&mut self, given: &OptionValues) -> Result<(String, String), Failure> {
        let mut pattern = |long: &str| -> Result<String, Failure> {
            let pattern = given.text(long).unwrap_or_default();
            if !pattern.is_empty() && !self.patterns.contains(pattern) {
                rpd_spool::kernel_filter::compile(pattern)
                    .map_err(|error| given.refused(long, format_args!("{pattern}: {error}")))?;
                self.patterns.insert(pattern.to_owned());
            }
            Ok(pattern.to_owned())
        };
        Ok((
            pattern("kernel-include-regex")?,
            pattern("kernel-exclude-regex")?,
        ))
    }

    /// Text of the definitions of further counters.
    fn extra_counters(&mut self, given: &OptionValues) -> Result<String, Failure> {
        const EXTRA: &str = "extra-counters";
        let file = match given.text(EXTRA) {
            None => return Ok(String::new()),
            Some("") if given.origins.contains_key(EXTRA) => return Ok(String::new()),
            Some("") => {
                return Err(
                    given.misused(EXTRA, "no file is named: give a YAML file, or leave it out")
                );
            }
            Some(file) => file,
        };
        // The variable holds the definitions themselves.
        if given.variable(EXTRA).is_some() {
            return Ok(file.to_owned());
        }
        if let Some(text) = self.extra_counters.get(file) {
            return Ok(text.clone());
        }
        let text = extra_counters::read(&self.environment.cwd.join(file))
            .map_err(|error| given.refused(EXTRA, format_args!("{file}: {error}")))?;
        if text.trim().is_empty() {
            let name = given.name(EXTRA);
            self.warn(format!("{name}: {file} is empty: it defines no counters"));
        } else if let Err(error) = rpd_metric::Definitions::parse(&text) {
            return Err(given.refused(EXTRA, format_args!("{file}: {error}")));
        }
        self.extra_counters.insert(file.to_owned(), text.clone());
        Ok(text)
    }
}

/// Settings of a tracing service that rpd does without. What describes rpd anyway needs no word.
fn without_effect(given: &OptionValues) -> Option<String> {
    let names: Vec<String> = [
        ("perfetto-backend", Some("inprocess")),
        ("perfetto-buffer-size", None),
        ("perfetto-buffer-fill-policy", Some("discard")),
        ("perfetto-shmem-size-hint", None),
    ]
    .into_iter()
    .filter(|(long, usual)| {
        given.values.contains_key(long) && (usual.is_none() || given.text(long) != *usual)
    })
    .map(|(long, _)| format!("--{long}"))
    .collect();
    if names.is_empty() {
        return None;
    }
    Some(format!(
        "{}: no effect, since rpd writes traces straight to their files and never discards",
        names.join(", ")
    ))
}

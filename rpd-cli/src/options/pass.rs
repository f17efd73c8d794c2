//! One pass: from what was given for it to its options.

use rpd_core::compat::{Compat, Difference};
use rpd_core::options::{
    CollectionPeriod, CollectorOptions, CounterOptions, Format, Options, ProviderChoice,
    SamplingOptions, Traces,
};
use rpd_formats::registry;
use rpd_spool::options::CaptureOptions;

use super::choices::Choice as _;
use super::choices::CudaApi;
use super::light;
use super::long_runs;
use super::merge::Draft;
use super::outputs::{self, Files};
use super::plan::Pass;
use super::platform;
use super::provider;
use super::replay;
use super::resolve::Resolver;
use super::sampling;
use super::stacks;
use super::summary;
use super::table::Given;
use super::thread_trace;
use super::traces;
use super::value::variable_truth;
use crate::failure::Failure;

/// The variable of rocmProfileData that has arguments of HIP calls left out.
const NO_ARGUMENTS: &str = "RPDT_ROCPROF_NOARGS";

/// What is recorded.
struct Recorded {
    traces: Traces,
    counters: CounterOptions,
    /// Whether the counters still have to be packed into passes.
    auto: bool,
    sampling: Option<SamplingOptions>,
    thread_trace: thread_trace::Resolved,
    stacks: stacks::Resolved,
}

/// What of that is selected.
struct Selected {
    periods: Vec<CollectionPeriod>,
    kernel_include: String,
    kernel_exclude: String,
    /// Definitions of further counters.
    extra_counters: String,
}

impl Resolver<'_> {
    /// Resolves a draft. `listing`: nothing is going to be recorded.
    ///
    /// # Errors
    /// An option has a value that it cannot have, or that other options exclude.
    pub(super) fn pass(&mut self, draft: &Draft, listing: bool) -> Result<Pass, Failure> {
        let given = &draft.given;
        let environment = self.environment;
        let recorded = self.recorded(draft, listing)?;
        let summary = summary::resolve(given)?;
        self.warn_all(summary::without_tables(given, &summary));
        self.warn_all(summary::without_domains(given, &summary));
        let files = self.files(given)?;
        let selected = self.selected(given)?;
        let without_arguments = !environment.compat.has(Difference::StackVariables)
            && environment.get(NO_ARGUMENTS).is_some_and(variable_truth);
        let mut collector = collector(
            given,
            environment.compat,
            without_arguments,
            &recorded,
            &selected,
            &files,
        );
        collector.recent_bytes = light::resolve(given, &collector)?;
        let rotate = long_runs::resolve(given, &mut collector)?;
        // Streams are not followed in a light recording, since that costs every HIP call that has one.
        let group_by_queue = given.group_by_queue.is_on() || collector.recent_bytes.is_some();
        collector.streams = !group_by_queue;
        // The provider depends on everything else that is requested of the collector.
        let warning = provider::resolve(given, &mut collector)?;
        self.warn_all(warning);
        let in_cwd = |path| environment.cwd.join(path);
        let options = Options {
            compat: environment.compat,
            collector,
            formats: files.formats,
            layout: outputs::layout(given, environment),
            rocpd_schema: given.rocpd_schema.value(),
            output_directory: files.directory,
            output_file: files.prefix,
            output_config: given.output_config.is_on(),
            stats: given.stats.is_on(),
            stacks: recorded.stacks.output,
            summary,
            output_environment: files.environment,
            kernel_names: outputs::kernel_names(given, environment),
            agent_index: given.agent_index.value().unwrap_or_default(),
            group_by_queue,
            rotate,
            minimum_output_bytes: outputs::minimum_bytes(given, environment)?,
            backend: platform::backend(given)?,
            sim_gpu: given.sim_gpu.value().map(|gpu| gpu.word().to_owned()),
            log_level: given.log_level.value(),
            rocm_root: given.rocm_root.text().map(in_cwd),
            otf2_library: given.otf2_library.text().map(in_cwd),
            thread_trace_library: recorded.thread_trace.library,
            csv_safe: given.csv_safe.is_on(),
            preload: platform::preload(given, environment),
            kernel_include: selected.kernel_include,
            kernel_exclude: selected.kernel_exclude,
            extra_counters: selected.extra_counters,
            pass: None,
            command: self.command.clone(),
            launch_time: self.launch_time,
            launch_environment: files.naming_variables,
        };
        let replay = replay::resolve(
            given,
            environment,
            options.collector.counters.any(),
            draft.origin,
        )?;
        Ok(Pass {
            replay,
            counted: !draft.counters.counters.is_empty(),
            auto: recorded.auto,
            unprofiled: files.unprofiled,
            suppress_marker_preload: given.suppress_marker_preload.is_on(),
            sdk_suffixes: platform::sdk_suffixes(given),
            options,
        })
    }

    /// What is recorded; a warning or an error when that is nothing.
    fn recorded(&mut self, draft: &Draft, listing: bool) -> Result<Recorded, Failure> {
        let given = &draft.given;
        let traces = traces::resolve(given, self.environment.compat);
        let (counters, auto) = self.counters(draft)?;
        let sampling = sampling::resolve(given, self.environment)?;
        sampling::check_counters(sampling, counters.any(), self.environment)?;
        let thread_trace = thread_trace::resolve(given, self.environment, counters.any())?;
        let others = counters.any() || sampling.is_some() || thread_trace.collector.is_some();
        self.warn_all(thread_trace.warning.clone());
        if !listing {
            self.warn_all(traces::check_any(given, self.environment, &traces, others)?);
        }
        self.warn_all(light::without_effect(given));
        let stacks = stacks::resolve(given, self.environment, &traces, listing)?;
        self.warn_all(stacks.warnings.iter().cloned());
        Ok(Recorded {
            traces,
            counters,
            auto,
            sampling,
            thread_trace,
            stacks,
        })
    }

    /// What of that is selected.
    fn selected(&mut self, given: &Given) -> Result<Selected, Failure> {
        Ok(Selected {
            periods: self.periods(given)?,
            kernel_include: self.kernels(&given.kernel_include_regex)?,
            kernel_exclude: self.kernels(&given.kernel_exclude_regex)?,
            extra_counters: self.extra_counters(given)?,
        })
    }
}

/// Options of the collector, but for those that follow from all of these: the provider, and what a light recording has.
fn collector(
    given: &Given,
    compat: Compat,
    without_arguments: bool,
    recorded: &Recorded,
    selected: &Selected,
    files: &Files,
) -> CollectorOptions {
    let traces = recorded.traces;
    let shows_arguments = |format: &Format| registry::entry(*format).arguments;
    let arguments_shown = files.formats.iter().any(shows_arguments) && !without_arguments;
    let ref_count = given.selected_regions_ref_count.is_on();
    CollectorOptions {
        provider: ProviderChoice::default(),
        recent_bytes: None,
        cuda_api_all: given.cuda_api.value() == Some(CudaApi::All),
        cuda_graphs: given.cuda_graph_trace.value().unwrap_or_default(),
        spool_limit: None,
        in_pieces: false,
        newer_sdk: provider::newer_requested(given).next().is_some(),
        streams: true,
        traces,
        hip_args: arguments_shown
            && (traces.hip_runtime || traces.hip_compiler || traces.cuda || traces.cuda_driver),
        annotate_args: given.annotate_args.is_on(),
        argument_results: !compat.has(Difference::ArgumentResults),
        kernel_rename: given.kernel_rename.is_on(),
        environment: files.environment,
        variables: files.recorded_variables.clone(),
        original_semantics: compat.has(Difference::PauseResume)
            && compat.has(Difference::RenamingMarks),
        disable_signal_handlers: given.disable_signal_handlers.is_on(),
        kokkos: given.kokkos_trace.is_on(),
        counters: CounterOptions {
            include: !selected.kernel_include.is_empty(),
            exclude: !selected.kernel_exclude.is_empty(),
            extra: !selected.extra_counters.is_empty(),
            mangled: given.mangled_kernels.is_on(),
            truncate: given.truncate_kernels.is_on(),
            original_names: compat.has(Difference::KernelNames),
            ..recorded.counters.clone()
        },
        periods: selected.periods.clone(),
        capture: CaptureOptions::default(),
        check_kernels: false,
        stacks: recorded.stacks.collector.clone(),
        sampling: recorded.sampling,
        thread_trace: recorded.thread_trace.collector.clone(),
        selected_regions: given.selected_regions.is_on() || ref_count,
        selected_regions_ref_count: ref_count,
    }
}

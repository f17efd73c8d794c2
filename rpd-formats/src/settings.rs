//! The settings of a run under the names, and in the order, of the original's files: one value for its configuration file and
//! for the head of its JSON results.

use std::fmt;

use rpd_core::domain::Domain;
use rpd_core::launcher::{self, Place};
use rpd_core::naming::{Facts, Target};
use rpd_core::options::{Format, Options, SamplingMethod, ThreadTraceOptions, TracedCounter};
use rpd_core::session::{Provider, Session};
use rpd_core::text::os_text;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};

/// Greatest number of iterations that are listed one by one, as in the original; ranges may have no end.
pub const ITERATIONS: usize = 1 << 16;

/// Keys with their values; their order is kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Settings(Vec<(&'static str, Setting)>);

/// The value of a setting.
#[derive(Debug, Clone, PartialEq)]
enum Setting {
    Plain(Value),
    Object(Settings),
    Objects(Vec<Settings>),
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            match value {
                Setting::Plain(value) => map.serialize_entry(key, value)?,
                Setting::Object(object) => map.serialize_entry(key, object)?,
                Setting::Objects(objects) => map.serialize_entry(key, objects)?,
            }
        }
        map.end()
    }
}

impl fmt::Display for Settings {
    /// Writes the settings as JSON in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (key, value)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}\"{key}\":")?;
            match value {
                Setting::Plain(value) => write!(f, "{value}")?,
                Setting::Object(object) => write!(f, "{object}")?,
                Setting::Objects(objects) => {
                    let objects: Vec<String> = objects.iter().map(Settings::to_string).collect();
                    write!(f, "[{}]", objects.join(","))?;
                }
            }
        }
        f.write_str("}")
    }
}

impl Settings {
    /// Adds a value under a key.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Settings {
        self.0.push((key, Setting::Plain(value.into())));
        self
    }

    /// Adds an object under a key.
    #[must_use]
    pub fn with_object(mut self, key: &'static str, object: Settings) -> Settings {
        self.0.push((key, Setting::Object(object)));
        self
    }

    /// Adds an array of objects.
    #[must_use]
    pub fn with_objects(mut self, key: &'static str, objects: Vec<Settings>) -> Settings {
        self.0.push((key, Setting::Objects(objects)));
        self
    }

    fn and(mut self, more: Settings) -> Settings {
        self.0.extend(more.0);
        self
    }
}

/// The settings of outputs. Those of Perfetto's buffers are what the original has when nothing is requested: our writer
/// has no buffer.
pub fn of_outputs(session: &Session, options: &Options, target: &Target) -> Settings {
    let writes = |format: Format| options.formats.contains(&format);
    let summary = &options.summary;
    let settings = Settings::default()
        .with("output_path", os_text::escape(target.directory.as_os_str()))
        .with("output_file", target.prefix.as_str())
        .with("tmp_directory", session.process.cwd.as_str())
        .with("raw_output_path", options.output_directory.as_str())
        .with("raw_output_file", options.output_file.as_str())
        .with("raw_tmp_directory", "%cwd%")
        .with("perfetto_shmem_size_hint", 64)
        .with("perfetto_buffer_size", 1_048_576)
        .with("perfetto_buffer_fill_policy", "discard")
        .with("perfetto_backend", "inprocess")
        .with("summary", summary.overall)
        .with("summary_per_domain", summary.per_domain)
        .with("summary_groups", summary.groups.clone())
        .with("summary_unit", summary.unit.label())
        .with("summary_file", summary.output.as_str())
        .with("csv_output", writes(Format::Csv))
        .with("json_output", writes(Format::Json))
        .with("pftrace_output", writes(Format::Pftrace))
        .with("otf2_output", writes(Format::Otf2))
        .with("summary_output", summary.any())
        .with("rocpd_output", writes(Format::Rocpd))
        .with("kernel_rename", options.kernel_names.rename)
        .with("group_by_queue", options.group_by_queue);
    // The original has one provider and no such setting.
    let settings = match session.process.provider {
        Provider::Sdk => settings,
        Provider::Direct => settings.with("provider", "direct"),
        Provider::Cuda => settings.with("provider", "cuda"),
    };
    // Nor has it recordings of which the latest part is kept only.
    let (dispatches, copies) = (Domain::KernelDispatch, Domain::MemoryCopy);
    match (session.total_count(dispatches), session.total_count(copies)) {
        (Some(dispatches), Some(copies)) => settings.with_object(
            "light",
            Settings::default()
                .with("dispatches", dispatches)
                .with("dispatches_kept", session.dispatches.len())
                .with("copies", copies)
                .with("copies_kept", session.copies.len())
                .with("kept_from", session.span().map_or(0, |span| span.0.0)),
        ),
        _ => settings,
    }
}

/// The settings that a database keeps of outputs.
pub(crate) fn of_database(session: &Session, options: &Options, target: &Target) -> Settings {
    const KEYS: [&str; 13] = [
        "output_path",
        "output_file",
        "raw_output_path",
        "raw_output_file",
        "csv_output",
        "json_output",
        "pftrace_output",
        "otf2_output",
        "rocpd_output",
        "kernel_rename",
        "group_by_queue",
        "provider",
        "light",
    ];
    let mut settings = of_outputs(session, options, target);
    settings.0.retain(|(key, _)| KEYS.contains(key));
    // Counted dispatches have rows among the dispatches; this setting is whether they were also traced.
    let only_counted = session.dispatches.is_empty() && !session.counted.is_empty();
    let settings = settings.with("kernel_trace", !only_counted);
    let place = place(session, options);
    let process = &session.process;
    let anchors: Vec<Value> = process
        .anchors()
        .map(|anchor| json!([anchor.time.0, anchor.real_time]))
        .collect();
    // What is not known has no key, so that it cannot be taken for a value.
    let optional = [
        (keys::RANK, place.rank.map(Value::from)),
        (keys::RANKS, place.size.map(Value::from)),
        (
            keys::LAUNCHER,
            place.rank.map(|_| Value::from(place.launcher)),
        ),
        (keys::ANCHORS, (!anchors.is_empty()).then(|| anchors.into())),
        (keys::ENDED, (!session.ledger.ended).then(|| false.into())),
    ];
    optional
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .fold(settings, |settings, (key, value)| settings.with(key, value))
}

/// Keys of what a database has of a process, and configuration files do not have.
pub(crate) mod keys {
    /// Rank of the process.
    pub(crate) const RANK: &str = "mpi_rank";
    /// Number of ranks.
    pub(crate) const RANKS: &str = "mpi_size";
    /// Name of the launcher.
    pub(crate) const LAUNCHER: &str = "launcher";
    /// Moments as pairs: time of the recording, Unix time; in nanoseconds.
    pub(crate) const ANCHORS: &str = "clock_anchors";
    /// False where recording did not end in good order: the process was killed.
    pub(crate) const ENDED: &str = "ended";
}

/// The place of the process among those of its launcher.
fn place(session: &Session, options: &Options) -> Place {
    let process = &session.process;
    if process.place.rank.is_some() {
        return process.place.clone();
    }
    launcher::place(|name| {
        let mut own = process.environment.iter();
        let own = own.find(|(key, _)| key == name);
        let own = own.map(|(_, value)| value.as_str());
        // Which variables count is an option of rpd; what they say is the process's own.
        let of_rpd = options.launch_environment.get(name);
        own.or_else(|| {
            of_rpd
                .filter(|_| launcher::is_choice(name))
                .map(String::as_str)
        })
    })
}

/// The settings of the recording, followed by those of outputs. Settings of features that rpd lacks have the value that
/// the original writes when the option is absent.
pub fn of_run(session: &Session, options: &Options, target: &Target) -> Settings {
    let traces = &options.collector.traces;
    let counters = &options.collector.counters;
    // Counters are listed as the user wrote them, with their device.
    let groups: Vec<Vec<String>> = counters
        .groups
        .iter()
        .map(|group| group.iter().map(ToString::to_string).collect())
        .collect();
    let iterations: Vec<u64> = counters
        .iterations
        .iter()
        .flat_map(|range| range.first..=range.last)
        .take(ITERATIONS)
        .collect();
    let periods = options.collector.periods.iter().map(|period| {
        Settings::default()
            .with("delay", period.delay)
            .with("duration", period.duration)
            .with("repeat", period.repeat)
    });
    // The original writes the pattern for all kernels where none was given.
    let include = match options.kernel_include.as_str() {
        "" => ".*",
        given => given,
    };
    let facts = Facts {
        process: &session.process,
        options,
        hostname: "",
    };
    let sampling = options.collector.sampling;
    let method = sampling.map(|sampling| sampling.method);
    // Without thread traces the values are those that the original shows then.
    let traced = options.collector.thread_trace.clone();
    let traced = traced.unwrap_or_else(|| ThreadTraceOptions {
        buffer: 256 << 20,
        ..ThreadTraceOptions::default()
    });
    let counter =
        |counter: &TracedCounter| json!({"counter_name": counter.name, "simd_mask": counter.simds});
    let traced_counters: Vec<_> = traced.counters.iter().map(counter).collect();
    let library = options.thread_trace_library.as_ref();
    let library = library.map(|path| path.display().to_string());
    // Keys are in the order of the original's file, as readers compare the text.
    Settings::default()
        .with("benchmark_mode", "")
        .with("kernel_trace", traces.kernel)
        .with("hsa_core_api_trace", traces.hsa_core)
        .with("hsa_amd_ext_api_trace", traces.hsa_amd)
        .with("hsa_image_ext_api_trace", traces.hsa_image)
        .with("hsa_finalizer_ext_api_trace", traces.hsa_finalizer)
        .with("marker_api_trace", traces.marker)
        .with("memory_copy_trace", traces.memory_copy)
        .with("memory_allocation_trace", traces.memory_allocation)
        .with("scratch_memory_trace", traces.scratch_memory)
        .with("counter_collection", counters.any())
        .with("hip_runtime_api_trace", traces.hip_runtime)
        .with("hip_compiler_api_trace", traces.hip_compiler)
        .with("rccl_api_trace", traces.rccl)
        .with("rocdecode_api_trace", traces.rocdecode)
        .with("rocjpeg_api_trace", traces.rocjpeg)
        .with("mpi_rank", facts.mpi_rank().unwrap_or(0))
        .with("mpi_size", facts.mpi_size().unwrap_or(0))
        .with_object(
            "collection_periods",
            Settings::default().with_objects("container", periods.collect()),
        )
        .with("counters", groups)
        .with("extra_counters_contents", options.extra_counters.as_str())
        .with("kernel_filter_include", include)
        .with("kernel_filter_exclude", options.kernel_exclude.as_str())
        .with("kernel_filter_range", iterations)
        .with("demangle", !options.kernel_names.mangled)
        .with("truncate", options.kernel_names.truncate)
        .with("minimum_output_bytes", options.minimum_output_bytes)
        .with(
            "enable_signal_handlers",
            !options.collector.disable_signal_handlers,
        )
        .with("selected_regions", options.collector.selected_regions)
        // Groups take turns; none is drawn by lot.
        .with("counter_groups_random_seed", 0)
        .with("counter_groups_interval", counters.group_interval.max(1))
        .with(
            "pc_sampling_host_trap",
            method == Some(SamplingMethod::HostTrap),
        )
        .with(
            "pc_sampling_stochastic",
            method == Some(SamplingMethod::Stochastic),
        )
        .with(
            "pc_sampling_method",
            method.map_or("none", SamplingMethod::word),
        )
        .with(
            "pc_sampling_unit",
            sampling.map_or("none", |sampling| sampling.unit.word()),
        )
        .with(
            "pc_sampling_interval",
            sampling.map_or(1, |sampling| sampling.interval),
        )
        .with(
            "pc_sampling_method_value",
            method.map_or(0, SamplingMethod::number),
        )
        .with(
            "pc_sampling_unit_value",
            sampling.map_or(0, |sampling| sampling.unit.number()),
        )
        .with(
            "advanced_thread_trace",
            options.collector.thread_trace.is_some(),
        )
        .with("att_serialize_all", traced.serialize_all)
        .with("att_param_shader_engine_mask", traced.engines)
        .with("att_param_buffer_size", traced.buffer)
        .with("att_param_simd_select", traced.simds)
        .with("att_param_target_cu", traced.target_cu)
        .with("att_library_path", library.unwrap_or_default())
        .with("att_param_perfcounters", traced_counters)
        .with("att_param_perf_ctrl", traced.counter_period)
        .and(of_outputs(session, options, target))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rpd_core::options::{CollectionPeriod, CounterRequest, IterationRange};

    use super::*;

    /// The keys of the original's configuration, in its order.
    const KEYS: &str = "benchmark_mode kernel_trace hsa_core_api_trace hsa_amd_ext_api_trace hsa_image_ext_api_trace \
        hsa_finalizer_ext_api_trace marker_api_trace memory_copy_trace memory_allocation_trace scratch_memory_trace \
        counter_collection hip_runtime_api_trace hip_compiler_api_trace rccl_api_trace rocdecode_api_trace \
        rocjpeg_api_trace mpi_rank mpi_size collection_periods counters extra_counters_contents kernel_filter_include \
        kernel_filter_exclude kernel_filter_range demangle truncate minimum_output_bytes enable_signal_handlers \
        selected_regions counter_groups_random_seed counter_groups_interval pc_sampling_host_trap \
        pc_sampling_stochastic pc_sampling_method pc_sampling_unit pc_sampling_interval pc_sampling_method_value \
        pc_sampling_unit_value advanced_thread_trace att_serialize_all att_param_shader_engine_mask \
        att_param_buffer_size att_param_simd_select att_param_target_cu att_library_path att_param_perfcounters \
        att_param_perf_ctrl output_path output_file tmp_directory raw_output_path raw_output_file raw_tmp_directory \
        perfetto_shmem_size_hint perfetto_buffer_size perfetto_buffer_fill_policy perfetto_backend summary \
        summary_per_domain summary_groups summary_unit summary_file csv_output json_output pftrace_output otf2_output \
        summary_output rocpd_output kernel_rename group_by_queue";

    fn settings(session: &Session, options: &Options) -> Settings {
        let target = Target {
            directory: PathBuf::new(),
            prefix: String::new(),
        };
        of_run(session, options, &target)
    }

    fn config_of(options: &Options) -> Value {
        serde_json::to_value(settings(&Session::default(), options)).expect("JSON")
    }

    #[test]
    fn settings_have_the_keys_of_the_original_in_its_order() {
        let settings = settings(&Session::default(), &Options::default());
        let keys: Vec<&str> = settings.0.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, KEYS.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn settings_print_the_json_that_they_serialize_to() {
        let settings = settings(&Session::default(), &Options::default());
        let text: Value = serde_json::from_str(&settings.to_string()).expect("JSON");
        assert_eq!(text, serde_json::to_value(&settings).expect("JSON"));
    }

    #[test]
    fn settings_tell_statistics_from_summary_and_take_ranks_from_the_environment() {
        let mut options = Options {
            stats: true,
            ..Options::default()
        };
        assert_eq!(config_of(&options)["summary_output"], false);
        options.summary.groups = vec![".*".to_owned()];
        assert_eq!(config_of(&options)["summary_output"], true);
        let mut session = Session::default();
        for (name, value) in [("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_SIZE", "4")] {
            let environment = &mut session.process.environment;
            environment.push((name.to_owned(), value.to_owned()));
        }
        let config = serde_json::to_value(settings(&session, &options)).expect("JSON");
        assert_eq!(
            (&config["mpi_rank"], &config["mpi_size"]),
            (&json!(3), &json!(4))
        );
    }

    #[test]
    fn settings_list_counters_in_the_form_of_the_original() {
        let plain = config_of(&Options::default());
        assert_eq!(plain["counter_collection"], false);
        assert_eq!(plain["counters"], json!([]));
        assert_eq!(plain["kernel_filter_include"], ".*");
        assert_eq!(plain["kernel_filter_range"], json!([]));
        assert_eq!(plain["collection_periods"], json!({"container": []}));
        assert_eq!(plain["counter_groups_interval"], 1);

        let mut options = Options::default();
        let request = |name: &str, device| CounterRequest {
            name: name.to_owned(),
            device,
        };
        let collector = &mut options.collector;
        collector.counters.groups = vec![
            vec![request("SQ_WAVES", None), request("GRBM_COUNT", Some(1))],
            vec![request("FETCH_SIZE", None)],
        ];
        collector.counters.group_interval = 4;
        let range = |first, last| IterationRange { first, last };
        collector.counters.iterations = vec![range(1, 3), range(7, 7), range(9, u64::MAX)];
        collector.selected_regions = true;
        collector.periods = vec![CollectionPeriod {
            delay: 1,
            duration: 2,
            repeat: 3,
        }];
        options.kernel_include = "add.*".to_owned();
        options.kernel_exclude = "sub".to_owned();
        options.extra_counters = "rocprofiler-sdk: {}".to_owned();
        let config = config_of(&options);
        assert_eq!(config["counter_collection"], true);
        assert_eq!(
            config["counters"],
            json!([["SQ_WAVES", "GRBM_COUNT:device=1"], ["FETCH_SIZE"]])
        );
        assert_eq!(config["counter_groups_interval"], 4);
        let range = config["kernel_filter_range"].as_array().expect("numbers");
        assert_eq!(range[..5], [1, 2, 3, 7, 9].map(Value::from));
        assert_eq!(range.len(), ITERATIONS);
        assert_eq!(config["kernel_filter_include"], "add.*");
        assert_eq!(config["kernel_filter_exclude"], "sub");
        assert_eq!(config["selected_regions"], true);
        assert_eq!(config["extra_counters_contents"], "rocprofiler-sdk: {}");
        assert_eq!(
            config["collection_periods"],
            json!({"container": [{"delay": 1, "duration": 2, "repeat": 3}]})
        );
    }
}

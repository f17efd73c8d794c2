//! `<prefix>_config.json`: the resolved options in the shape that readers of the original's file expect.

use std::path::PathBuf;

use anyhow::Result;
use rpd_core::environment::Kept;
use rpd_core::naming::{self, Target};
use rpd_core::options::{Format, Options};
use rpd_core::session::Session;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Value, json};

use super::place;

/// An object whose keys keep their order.
struct Object(Vec<(&'static str, Node)>);

enum Node {
    Plain(Value),
    Object(Object),
    Objects(Vec<Object>),
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            match value {
                Node::Plain(value) => map.serialize_entry(key, value)?,
                Node::Object(object) => map.serialize_entry(key, object)?,
                Node::Objects(objects) => map.serialize_entry(key, objects)?,
            }
        }
        map.end()
    }
}

fn plain(key: &'static str, value: impl Into<Value>) -> (&'static str, Node) {
    (key, Node::Plain(value.into()))
}

/// Writes the file; its path.
pub(super) fn write(session: &Session, options: &Options, target: &Target) -> Result<PathBuf> {
    let path = target.file("config.json");
    let mut text = serde_json::to_vec_pretty(&document(session, options, target))?;
    text.push(b'\n');
    place::file(&path, &text)?;
    Ok(path)
}

fn document(session: &Session, options: &Options, target: &Target) -> Object {
    let process = &session.process;
    let kept = options.output_environment;
    let mut shown = options.clone();
    shown.launch_environment.retain(|name, _| {
        kept.keeps(name) || (kept == Kept::Relevant && naming::is_naming_variable(name))
    });
    let environment: serde_json::Map<String, Value> = process
        .environment
        .iter()
        .filter(|(name, _)| kept.keeps(name))
        .map(|(name, value)| (name.clone(), Value::from(value.as_str())))
        .collect();
    let metadata = Object(vec![
        plain("pid", process.pid.0),
        plain("init_time", process.init_time.0),
        plain("fini_time", process.fini_time.0),
        ("config", Node::Object(config(session, options, target))),
        plain("command", process.command.clone()),
        ("build_spec", Node::Object(build())),
        plain("environment", environment),
        // Ours: every resolved option, under rpd's own names.
        plain("rpd_options", json!(shown)),
    ]);
    Object(vec![(
        "rocprofiler-sdk-tool",
        Node::Objects(vec![Object(vec![("metadata", Node::Object(metadata))])]),
    )])
}

/// Iterations that are listed one by one, as the original has them; ranges may have no end.
const ITERATIONS: usize = 1 << 16;

/// The text that was given, or what its absence stands for.
fn given<'a>(text: &'a str, absent: &'a str) -> &'a str {
    if text.is_empty() { absent } else { text }
}

fn periods(options: &Options) -> Node {
    let periods = options.collector.periods.iter().map(|period| {
        Object(vec![
            plain("delay", period.delay),
            plain("duration", period.duration),
            plain("repeat", period.repeat),
        ])
    });
    Node::Object(Object(vec![(
        "container",
        Node::Objects(periods.collect()),
    )]))
}

fn config(session: &Session, options: &Options, target: &Target) -> Object {
    let traces = &options.collector.traces;
    let counters = &options.collector.counters;
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
    let summary = &options.summary;
    let writes = |format: Format| options.formats.contains(&format);
    Object(vec![
        plain("benchmark_mode", ""),
        plain("kernel_trace", traces.kernel),
        plain("hsa_core_api_trace", traces.hsa_core),
        plain("hsa_amd_ext_api_trace", traces.hsa_amd),
        plain("hsa_image_ext_api_trace", traces.hsa_image),
        plain("hsa_finalizer_ext_api_trace", traces.hsa_finalizer),
        plain("marker_api_trace", traces.marker),
        plain("memory_copy_trace", traces.memory_copy),
        plain("memory_allocation_trace", traces.memory_allocation),
        plain("scratch_memory_trace", traces.scratch_memory),
        plain("counter_collection", counters.any()),
        plain("hip_runtime_api_trace", traces.hip_runtime),
        plain("hip_compiler_api_trace", traces.hip_compiler),
        plain("rccl_api_trace", traces.rccl),
        plain("rocdecode_api_trace", traces.rocdecode),
        plain("rocjpeg_api_trace", traces.rocjpeg),
        ("collection_periods", periods(options)),
        plain("counters", groups),
        plain("extra_counters_contents", options.extra_counters.as_str()),
        plain(
            "kernel_filter_include",
            given(&options.kernel_include, ".*"),
        ),
        plain("kernel_filter_exclude", options.kernel_exclude.as_str()),
        plain("kernel_filter_range", iterations),
        plain("demangle", !options.kernel_names.mangled),
        plain("truncate", options.kernel_names.truncate),
        plain("minimum_output_bytes", options.minimum_output_bytes),
        plain(
            "enable_signal_handlers",
            !options.collector.disable_signal_handlers,
        ),
        plain("selected_regions", options.collector.selected_regions),
        // Groups take turns; none is drawn by lot.
        plain("counter_groups_random_seed", 0),
        plain("counter_groups_interval", counters.group_interval.max(1)),
        plain("advanced_thread_trace", false),
        plain("output_path", target.directory.to_string_lossy()),
        plain("output_file", target.prefix.as_str()),
        plain("tmp_directory", session.process.cwd.as_str()),
        plain("raw_output_path", options.output_directory.as_str()),
        plain("raw_output_file", options.output_file.as_str()),
        plain("raw_tmp_directory", "%cwd%"),
        plain("summary", summary.overall),
        plain("summary_per_domain", summary.per_domain),
        plain("summary_groups", summary.groups.clone()),
        plain("summary_unit", summary.unit.label()),
        plain("summary_file", summary.output.as_str()),
        plain("csv_output", writes(Format::Csv)),
        plain("json_output", writes(Format::Json)),
        plain("pftrace_output", writes(Format::Pftrace)),
        plain("otf2_output", writes(Format::Otf2)),
        plain("summary_output", options.stats || summary.any()),
        plain("rocpd_output", writes(Format::Rocpd)),
        plain("kernel_rename", options.kernel_names.rename),
        plain("group_by_queue", options.group_by_queue),
    ])
}

fn build() -> Object {
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let system = nix::sys::utsname::uname().ok();
    let of = |get: fn(&nix::sys::utsname::UtsName) -> &std::ffi::OsStr| {
        system
            .as_ref()
            .map(|system| get(system).to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    Object(vec![
        plain("version_major", number(env!("CARGO_PKG_VERSION_MAJOR"))),
        plain("version_minor", number(env!("CARGO_PKG_VERSION_MINOR"))),
        plain("version_patch", number(env!("CARGO_PKG_VERSION_PATCH"))),
        plain("soversion", 1),
        plain("compiler_id", "rustc"),
        plain("compiler_version", env!("CARGO_PKG_RUST_VERSION")),
        plain("git_describe", concat!("v", env!("CARGO_PKG_VERSION"))),
        plain(
            "git_revision",
            option_env!("RPD_GIT_REVISION").unwrap_or(""),
        ),
        plain(
            "library_arch",
            format!("{}-linux-gnu", std::env::consts::ARCH),
        ),
        plain("system_name", of(|system| system.sysname())),
        plain("system_processor", of(|system| system.machine())),
        plain("system_version", of(|system| system.release())),
    ])
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rpd_core::options::{CollectionPeriod, CounterRequest, IterationRange};

    use super::*;

    fn config_of(options: &Options) -> Value {
        let target = Target {
            directory: PathBuf::new(),
            prefix: String::new(),
        };
        let text = serde_json::to_string(&document(&Session::default(), options, &target));
        let root: Value = serde_json::from_str(&text.expect("JSON")).expect("JSON");
        root["rocprofiler-sdk-tool"][0]["metadata"]["config"].clone()
    }

    #[test]
    fn what_is_counted_is_told_as_the_original_tells_it() {
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

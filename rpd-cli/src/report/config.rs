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

fn config(session: &Session, options: &Options, target: &Target) -> Object {
    let traces = &options.collector.traces;
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
        plain("counter_collection", false),
        plain("hip_runtime_api_trace", traces.hip_runtime),
        plain("hip_compiler_api_trace", traces.hip_compiler),
        plain("rccl_api_trace", traces.rccl),
        plain("rocdecode_api_trace", traces.rocdecode),
        plain("rocjpeg_api_trace", traces.rocjpeg),
        plain("demangle", !options.kernel_names.mangled),
        plain("truncate", options.kernel_names.truncate),
        plain("minimum_output_bytes", options.minimum_output_bytes),
        plain(
            "enable_signal_handlers",
            !options.collector.disable_signal_handlers,
        ),
        plain("selected_regions", false),
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

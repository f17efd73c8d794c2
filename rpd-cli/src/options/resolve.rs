//! From what was given to what will be done: aggregates, inherited variables, checks that need no machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rpd_core::environment::Kept;
use rpd_core::naming;
use rpd_core::options::{
    AgentIndex, Backend, CollectorOptions, Format, KernelNames, LogLevel, Options, Traces,
};

use super::parse::{Given, Value, truth};
use super::summary;
use super::table::{FORMATS, Form, Inherit, OPTIONS, Spec, Support};
use crate::failure::Failure;

/// The surroundings that options are resolved in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// Variables.
    pub(crate) environment: BTreeMap<String, String>,
    /// Current directory.
    pub(crate) cwd: PathBuf,
}

impl Surroundings {
    /// Those of this process. Variables that are not text bear on no option and are left out.
    pub(crate) fn current() -> std::io::Result<Surroundings> {
        Ok(Surroundings {
            environment: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            cwd: std::env::current_dir()?,
        })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.environment
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

/// What to do.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// One value per pass.
    pub(crate) passes: Vec<Options>,
    /// Print the passes instead of running them.
    pub(crate) echo: bool,
    /// Leave the ROCTx library out of `LD_PRELOAD`.
    pub(crate) suppress_marker_preload: bool,
    /// Versions of the SDK library to look for, most wanted first: what follows `.so`.
    pub(crate) sdk_suffixes: Vec<String>,
    /// What the user should know although it stops nothing.
    pub(crate) warnings: Vec<String>,
}

/// Members of the aggregates, in the order in which they are evaluated.
const AGGREGATES: &[(&str, &[&str])] = &[
    ("kokkos-trace", &["marker-trace", "kernel-rename"]),
    (
        "sys-trace",
        &[
            "hip-trace",
            "hsa-trace",
            "marker-trace",
            "kernel-trace",
            "memory-copy-trace",
            "memory-allocation-trace",
            "scratch-memory-trace",
            "rccl-trace",
            "rocdecode-trace",
            "rocjpeg-trace",
        ],
    ),
    (
        "runtime-trace",
        &[
            "hip-runtime-trace",
            "marker-trace",
            "kernel-trace",
            "memory-copy-trace",
            "memory-allocation-trace",
            "scratch-memory-trace",
            "rccl-trace",
            "rocdecode-trace",
            "rocjpeg-trace",
        ],
    ),
    ("hip-trace", &["hip-compiler-trace", "hip-runtime-trace"]),
    (
        "hsa-trace",
        &[
            "hsa-core-trace",
            "hsa-amd-trace",
            "hsa-image-trace",
            "hsa-finalizer-trace",
        ],
    ),
];

/// Resolves the command line.
pub(crate) fn resolve(
    mut given: Given,
    command: Vec<String>,
    around: &Surroundings,
) -> Result<Plan, Failure> {
    check_input_file(&given)?;
    for (aggregate, members) in AGGREGATES {
        if given.bool(aggregate) == Some(true) {
            for member in *members {
                given.values.entry(member).or_insert(Value::Bool(true));
            }
        }
    }
    let sources = inherit(&mut given, around)?;
    refuse_missing(&given, &sources)?;

    let echo = given.bool("echo").unwrap_or(false);
    if command.is_empty() && !echo {
        return Err(Failure::failed(
            "No application provided: rpd [options] -- application [arguments]",
        ));
    }
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
    let mut warnings = Vec::new();
    if !traces.any() {
        if let Some(long) = summary::needs_traces(&given) {
            return Err(Failure::failed(format!(
                "No tracing options were enabled for --{long} option"
            )));
        }
        if let Some(value) = around.get("ROCPROFILER_CI")
            && variable_truth(value)
        {
            return Err(Failure::failed(format!(
                "No tracing options were enabled (an error because of ROCPROFILER_CI={value})"
            )));
        }
        warnings.push(
            "No tracing options were enabled: nothing will be recorded (try --sys-trace)"
                .to_owned(),
        );
    }
    warnings.extend(without_effect(&given));
    let summary = summary::resolve(&given, sources.get("summary-groups").copied())?;
    warnings.extend(summary::without_tables(&given, &summary, on("stats")));
    let formats = formats(&given, around)?;
    let (output_directory, output_file) = names(&given, around)?;
    let arguments_shown = formats
        .iter()
        .any(|format| matches!(format, Format::Rocpd | Format::Json | Format::Pftrace));
    let launch_environment = around
        .environment
        .iter()
        .filter(|(name, _)| {
            naming::is_naming_variable(name)
                || [&output_directory, &output_file]
                    .iter()
                    .any(|pattern| naming::variables(pattern).contains(&name.as_str()))
        })
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let options = Options {
        collector: CollectorOptions {
            traces,
            hip_args: arguments_shown && (traces.hip_runtime || traces.hip_compiler),
            annotate_args: on("annotate-args"),
            kernel_rename: on("kernel-rename"),
            streams: !on("group-by-queue"),
            disable_signal_handlers: on("disable-signal-handlers"),
            kokkos: on("kokkos-trace"),
        },
        formats,
        output_directory,
        output_file,
        output_config: on("output-config"),
        stats: on("stats"),
        summary,
        output_environment: match given.text("output-environment") {
            Some("all") => Kept::All,
            Some("none") => Kept::None,
            _ => Kept::Relevant,
        },
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
        group_by_queue: on("group-by-queue"),
        minimum_output_bytes: minimum_output(&given, around)?,
        backend: match given.text("backend") {
            Some("rocm") => Backend::Rocm,
            Some("sim") => Backend::Sim,
            _ => Backend::Auto,
        },
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
        rocm_root: given.text("rocm-root").map(|root| around.cwd.join(root)),
        preload: preload(&given, around),
        pass: None,
        command,
        launch_time: SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .ok()
            .and_then(|time| u64::try_from(time.as_nanos()).ok())
            .unwrap_or(0),
        launch_environment,
    };
    Ok(Plan {
        passes: vec![options],
        echo,
        suppress_marker_preload: on("suppress-marker-preload"),
        sdk_suffixes: sdk_suffixes(&given),
        warnings,
    })
}

/// Settings of a tracing service that rpd does without. What describes rpd anyway needs no word.
fn without_effect(given: &Given) -> Option<String> {
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

fn check_input_file(given: &Given) -> Result<(), Failure> {
    for long in ["input", "extra-counters"] {
        if let Some(file) = given.text(long)
            && !Path::new(file).exists()
        {
            return Err(Failure::failed(format!("--{long} {file}: No such file")));
        }
    }
    Ok(())
}

/// Fills in what inherited variables say about options that were not given; returns which variable gave what.
fn inherit(
    given: &mut Given,
    around: &Surroundings,
) -> Result<BTreeMap<&'static str, &'static str>, Failure> {
    let mut sources = BTreeMap::new();
    for spec in OPTIONS {
        let (variable, opposite) = match spec.inherit {
            Inherit::No => continue,
            Inherit::Value(variable) => (variable, false),
            Inherit::Opposite(variable) => (variable, true),
        };
        let Some(text) = around.get(variable) else {
            continue;
        };
        if given.values.contains_key(spec.long) {
            continue;
        }
        let value = match spec.form {
            Form::Bool | Form::Flag | Form::Categories(_) => {
                Value::Bool(variable_truth(text) != opposite)
            }
            Form::Integer(..) => Value::Integer(number(variable, text)?),
            Form::Choice(known, ignore_case) => {
                let matches = |word: &&&str| {
                    **word == text || (ignore_case && word.eq_ignore_ascii_case(text))
                };
                match known.iter().find(matches) {
                    Some(word) => Value::Text((*word).to_owned()),
                    None => {
                        return Err(Failure::usage(format!(
                            "{variable}: invalid choice: '{text}' (choose from {})",
                            known.join(", ")
                        )));
                    }
                }
            }
            Form::Text => Value::Text(text.to_owned()),
            Form::Choices(_) | Form::List(_) | Form::Groups => Value::List(vec![text.to_owned()]),
        };
        given.values.insert(spec.long, value);
        sources.insert(spec.long, variable);
    }
    Ok(sources)
}

/// Truth of a variable, by the rules of the original's tool.
fn variable_truth(text: &str) -> bool {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.bytes().any(|byte| byte != b'0');
    }
    truth(text) != Some(false)
}

fn number(variable: &str, text: &str) -> Result<i64, Failure> {
    text.trim()
        .parse()
        .map_err(|_| Failure::usage(format!("{variable}: invalid int value: '{text}'")))
}

/// Refuses options whose work this build does not do. Switching one off is fine.
fn refuse_missing(
    given: &Given,
    sources: &BTreeMap<&'static str, &'static str>,
) -> Result<(), Failure> {
    let asked = |spec: &Spec| match given.values.get(spec.long) {
        None | Some(Value::Bool(false)) => false,
        Some(_) => true,
    };
    for spec in OPTIONS {
        if !asked(spec) {
            continue;
        }
        let name = match sources.get(spec.long) {
            Some(variable) => format!("{variable} (set in the environment)"),
            None => format!("--{}", spec.long),
        };
        match spec.support {
            Support::Works => {}
            Support::Missing(what) => {
                return Err(Failure::failed(format!(
                    "{name}: this build of rpd lacks {what}"
                )));
            }
            Support::NewerKind => {
                return Err(Failure::failed(format!(
                    "{name}: the profiling interface of SDK 1.0 has no such events; leave it out"
                )));
            }
        }
    }
    Ok(())
}

/// Inherited formats, then those given, else the default.
fn formats(given: &Given, around: &Surroundings) -> Result<Vec<Format>, Failure> {
    let mut words: Vec<(String, &str)> = Vec::new();
    if let Some(inherited) = around.get("ROCPROF_OUTPUT_FORMAT") {
        for word in inherited.split([' ', '\t', ',', ';', ':']) {
            if !word.is_empty() {
                words.push((word.to_ascii_lowercase(), "ROCPROF_OUTPUT_FORMAT"));
            }
        }
    }
    match given.list("output-format") {
        Some(given) => words.extend(
            given
                .iter()
                .map(|word| (word.clone(), "argument -f/--output-format")),
        ),
        None => words.push(("rocpd".to_owned(), "")),
    }
    let mut formats = Vec::new();
    for (word, source) in words {
        let format = match word.as_str() {
            "csv" => Format::Csv,
            "rocpd" => Format::Rocpd,
            "json" => Format::Json,
            "pftrace" => Format::Pftrace,
            "otf2" => Format::Otf2,
            "parquet" => Format::Parquet,
            "html" => Format::Html,
            _ => {
                return Err(Failure::usage(format!(
                    "{source}: invalid choice: '{word}' (choose from {})",
                    FORMATS.join(", ")
                )));
            }
        };
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    Ok(formats)
}

/// Directory (absolute unless a placeholder leads) and prefix.
fn names(given: &Given, around: &Surroundings) -> Result<(String, String), Failure> {
    let check = |long: &str, pattern: &str| {
        naming::check(pattern).map_err(|error| Failure::usage(format!("--{long}: {error}")))
    };
    let directory = given.text("output-directory").unwrap_or_default();
    let prefix = given.text("output-file").unwrap_or_default();
    check("output-directory", directory)?;
    check("output-file", prefix)?;
    let directory = if naming::starts_with_placeholder(directory) {
        directory.to_owned()
    } else {
        let joined = around.cwd.join(directory.trim_end_matches('/'));
        let absolute = if directory.starts_with('/') && directory.trim_end_matches('/').is_empty() {
            PathBuf::from("/")
        } else {
            joined
        };
        absolute
            .to_str()
            .map(|text| match text.trim_end_matches('/') {
                "" => "/".to_owned(),
                trimmed => trimmed.to_owned(),
            })
            .ok_or_else(|| {
                Failure::failed(format!(
                    "{}: the output directory is not valid UTF-8",
                    absolute.display()
                ))
            })?
    };
    let prefix = match prefix {
        "" => naming::DEFAULT_PREFIX,
        given => given,
    };
    Ok((directory, prefix.to_owned()))
}

fn minimum_output(given: &Given, around: &Surroundings) -> Result<u64, Failure> {
    let bytes = match given.integer("minimum-output-data") {
        Some(kib) => kib.saturating_mul(1024),
        None => match around.get("ROCPROF_MINIMUM_OUTPUT_BYTES") {
            Some(text) => number("ROCPROF_MINIMUM_OUTPUT_BYTES", text)?,
            None => 0,
        },
    };
    Ok(u64::try_from(bytes).unwrap_or(0))
}

fn preload(given: &Given, around: &Surroundings) -> Vec<PathBuf> {
    let paths: Vec<&str> = match given.list("preload") {
        Some(list) => list.iter().map(String::as_str).collect(),
        None => around
            .get("ROCPROF_PRELOAD")
            .unwrap_or_default()
            .split(':')
            .collect(),
    };
    paths
        .into_iter()
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect()
}

fn sdk_suffixes(given: &Given) -> Vec<String> {
    let major = given.integer("sdk-soversion").unwrap_or(1);
    let mut suffixes = Vec::new();
    if let Some(version) = given.text("sdk-version") {
        suffixes.push(format!(".{version}"));
    }
    suffixes.push(format!(".{major}"));
    if given.integer("sdk-soversion").is_none() && given.text("sdk-version").is_none() {
        suffixes.push(String::new());
    }
    suffixes
}

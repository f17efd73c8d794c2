//! The command line, as `tests/cases/command-line.md` describes it. Where a case is about a variable of the original, the
//! resolved option is looked at. Statuses 1 and 2 are as rpd defines them.

mod attach;
mod counters;
mod input;
mod passes;
mod ranks;
mod refusals;
mod replay;
mod sampling;
mod stacks;
mod table;
mod thread_trace;
mod traces;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rpd_core::environment::EnvironmentSelection;
use rpd_core::options::{Format, Layout, Options, RocpdSchema};
use serde_json::{Value, json};

use super::parse::{Parsed, parse};
use super::plan::{Pass, Plan};
use super::resolve::{Environment, resolve};
use crate::called::CalledAs;
use crate::failure::Failure;

enum Got {
    Help,
    Version,
    Plan(Box<Plan>),
    Failure(Failure),
}

/// Splits at blanks; `'...'` keeps them.
fn words(line: &str) -> Vec<OsString> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.into());
        } else {
            words.extend(part.split_whitespace().map(OsString::from));
        }
    }
    words
}

fn run_with(line: &str, environment: &[(&str, &str)]) -> Got {
    run_in(Path::new("/cwd"), line, environment)
}

fn run_in(directory: &Path, line: &str, environment: &[(&str, &str)]) -> Got {
    let environment = Environment {
        compat: CalledAs::by(None, &words(line)).compat,
        variables: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        cwd: directory.to_owned(),
    };
    match parse(&words(line)) {
        Err(failure) => Got::Failure(failure),
        Ok(Parsed::Help(_)) => Got::Help,
        Ok(Parsed::Version) => Got::Version,
        Ok(Parsed::Run(given, command)) => match resolve(*given, command, &environment) {
            Ok(plan) => Got::Plan(Box::new(plan)),
            Err(failure) => Got::Failure(failure),
        },
    }
}

fn plan_with(line: &str, environment: &[(&str, &str)]) -> Plan {
    match run_with(line, environment) {
        Got::Plan(plan) => *plan,
        Got::Failure(failure) => panic!("{line}: {failure}"),
        _ => panic!("{line}: help or version"),
    }
}

/// The plan of a line that has an input file of this name and content.
fn with_file(
    name: &str,
    content: &str,
    line: &str,
    environment: &[(&str, &str)],
) -> Result<Plan, Failure> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join(name), content).expect("writable");
    match run_in(directory.path(), &format!("-i {name} {line}"), environment) {
        Got::Plan(plan) => Ok(*plan),
        Got::Failure(failure) => Err(failure),
        _ => panic!("{line}: help or version"),
    }
}

/// The groups of a pass: `A B | C`.
fn counted(options: &Options) -> String {
    let groups = options.collector.counters.groups.iter().map(|group| {
        let names: Vec<String> = group.iter().map(ToString::to_string).collect();
        names.join(" ")
    });
    groups.collect::<Vec<_>>().join(" | ")
}

/// The passes once they are numbered: `DIRECTORY: A B | C`.
fn layout(mut plan: Plan) -> Vec<String> {
    plan.number();
    let pass = |pass: &Pass| {
        format!(
            "{}: {}",
            pass.options.output_directory,
            counted(&pass.options)
        )
    };
    plan.passes.iter().map(pass).collect()
}

fn options(line: &str) -> Options {
    plan_with(line, &[]).passes.remove(0).options
}

/// The names of the traces that are on.
fn traced(options: &Options) -> Vec<String> {
    let Value::Object(traces) = json!(options.collector.traces) else {
        panic!("an object");
    };
    traces
        .into_iter()
        .filter(|(_, on)| *on == Value::Bool(true))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn help_and_version_are_printed_whatever_else_is_given() {
    assert!(matches!(run_with("", &[]), Got::Help), "command-line-1");
    assert!(matches!(run_with("-h", &[]), Got::Help), "command-line-2");
    assert!(
        matches!(run_with("--help -- true", &[]), Got::Help),
        "command-line-2"
    );
    assert!(
        matches!(run_with("--version", &[]), Got::Version),
        "command-line-3"
    );
    assert!(
        matches!(run_with("-v -- false", &[]), Got::Version),
        "command-line-4"
    );
    assert!(
        matches!(run_with("-i missing.json -v", &[]), Got::Version),
        "command-line-5"
    );
}

#[test]
fn first_double_dash_ends_the_words_of_rpd() {
    assert_eq!(
        options("--hip-trace --echo -- true -- --x").command,
        ["true", "--", "--x"],
        "command-line-14"
    );
    assert_eq!(
        options("--hip-trace --echo -- --hip-trace").command,
        ["--hip-trace"],
        "command-line-15"
    );
}

#[test]
fn parser_reads_values_in_every_spelling() {
    for (case, line) in [
        ("command-line-19", "-d=foo -s -- a"),
        ("command-line-20", "-dfoo -s -- a"),
        ("unnumbered", "-d foo/ -s -- a"),
        ("unnumbered", "--output-directory=foo -s -- a"),
    ] {
        assert_eq!(options(line).output_directory, "/cwd/foo", "{case}");
    }
    assert!(
        traced(&options("-sno --hip-trace --echo -- true")).len() == 4,
        "command-line-22"
    );
    assert_eq!(
        json!(options("-f CSV Rocpd -s -- a").formats),
        json!(["csv", "rocpd"]),
        "command-line-24"
    );
    assert_eq!(
        json!(options("--log-level WARNING -s -- a").log_level),
        json!("warning"),
        "command-line-27"
    );
    assert!(
        traced(&options("--hip-trace=1 --hip-trace=0 --echo -- true")).is_empty(),
        "command-line-37"
    );
    assert_eq!(
        json!(options("-f csv -f rocpd -s -- a").formats),
        json!(["rocpd"]),
        "command-line-38"
    );
    assert!(
        matches!(
            run_with("--ompt-trace=false --hip-trace -- a", &[]),
            Got::Plan(_)
        ),
        "command-line-43"
    );
    for word in ["y", "YES", "t", "True", "oN", "1"] {
        assert_eq!(
            traced(&options(&format!("--kernel-trace {word} -- a"))),
            ["kernel"],
            "command-line-44"
        );
    }
    for word in ["N", "no", "f", "FALSE", "Off", "0"] {
        assert!(
            traced(&options(&format!("--kernel-trace {word} -- a"))).is_empty(),
            "command-line-45"
        );
    }
}

#[test]
fn inherited_variables_are_defaults_of_options() {
    let with = |line: &str, environment: &[(&str, &str)]| {
        plan_with(line, environment).passes.remove(0).options
    };
    let both = with(
        "--hip-trace -f rocpd -- a",
        &[("ROCPROF_OUTPUT_FORMAT", "csv")],
    );
    assert_eq!(
        json!(both.formats),
        json!(["csv", "rocpd"]),
        "command-line-68"
    );
    let both = with("--hip-trace -- a", &[("ROCPROF_OUTPUT_FORMAT", "csv")]);
    assert_eq!(
        json!(both.formats),
        json!(["csv", "rocpd"]),
        "command-line-69"
    );
    // command-line-67 differs: an inherited variable is a default, which the command line overrides.
    let inherited = [("ROCPROF_KERNEL_TRACE", "1")];
    assert!(
        !with("--kernel-trace=no --hip-trace -- a", &inherited)
            .collector
            .traces
            .kernel,
        "command-line-67"
    );
    assert!(with("--hip-trace -- a", &inherited).collector.traces.kernel);
    let names = with(
        "-s -- a",
        &[
            ("ROCPROF_OUTPUT_PATH", "there"),
            ("ROCPROF_OUTPUT_FILE_NAME", "x"),
        ],
    );
    assert_eq!(
        (names.output_directory.as_str(), names.output_file.as_str()),
        ("/cwd/there", "x")
    );
    assert!(
        with("-s -- a", &[("ROCPROF_DEMANGLE_KERNELS", "0")])
            .kernel_names
            .mangled
    );
    assert!(
        !with("-s -- a", &[("ROCPROF_DEMANGLE_KERNELS", "1")])
            .kernel_names
            .mangled
    );
    assert_eq!(
        with("-s -- a", &[("ROCPROF_MINIMUM_OUTPUT_BYTES", "7")]).minimum_output_bytes,
        7
    );
    for (list, expected) in [("A:B", vec!["A", "B"]), (":A:", vec!["A"])] {
        let preload = with("-s -- a", &[("ROCPROF_PRELOAD", list)]).preload;
        assert_eq!(
            preload,
            expected.iter().map(PathBuf::from).collect::<Vec<_>>(),
            "command-line-226, command-line-227"
        );
    }
    let launch = with(
        "-s -o %env{WHO}% -- a",
        &[("WHO", "me"), ("SLURM_PROCID", "3"), ("SECRET", "x")],
    );
    assert_eq!(
        json!(launch.launch_environment),
        json!({"SLURM_PROCID": "3", "WHO": "me"})
    );
    match run_with("-s -- a", &[("ROCPROF_PROCESS_SYNC", "1")]) {
        Got::Failure(failure) => assert!(failure.message.starts_with("ROCPROF_PROCESS_SYNC")),
        _ => panic!("a variable that asks for what is missing is not ignored"),
    }
}

#[test]
fn single_options_set_their_fields() {
    assert_eq!(
        options("--hip-trace -- a").output_directory,
        "/cwd",
        "command-line-70"
    );
    assert_eq!(
        options("--hip-trace -- a").output_file,
        "%hostname%/%pid%",
        "command-line-71"
    );
    assert!(
        options("-M -s -- a").kernel_names.mangled,
        "command-line-76"
    );
    assert!(
        options("-T -s -- a").kernel_names.truncate,
        "command-line-77"
    );
    assert_eq!(
        options("--minimum-output-data 10 -s -- a").minimum_output_bytes,
        10240,
        "command-line-78"
    );
    assert_eq!(
        options("--minimum-output-data 0 -s -- a").minimum_output_bytes,
        0,
        "command-line-79"
    );
    assert!(
        options("--disable-signal-handlers -s -- a")
            .collector
            .disable_signal_handlers,
        "command-line-80"
    );
    assert!(
        !options("--disable-signal-handlers=false -s -- a")
            .collector
            .disable_signal_handlers,
        "command-line-80"
    );
    assert_eq!(
        options("--rocm-path r -s -- a").rocm_root,
        Some(PathBuf::from("/cwd/r"))
    );
    assert_eq!(
        options("--preload A B --kernel-trace -- a").preload,
        [PathBuf::from("A"), PathBuf::from("B")],
        "command-line-224"
    );
    assert_eq!(
        options("-d %cwd%/x -s -- a").output_directory,
        "%cwd%/x",
        "command-line-D17"
    );
    assert_eq!(options("-d / -s -- a").output_directory, "/");
    assert_eq!(
        plan_with("--sdk-soversion 2 -s -- a", &[]).passes[0].sdk_suffixes,
        [".2"]
    );
    // HIP arguments are recorded for formats that show them.
    assert!(options("-s -- a").collector.hip_args);
    assert!(!options("-s -f csv -- a").collector.hip_args);
    assert!(options("-s --annotate-args -- a").collector.annotate_args);
}

#[test]
fn libraries_that_are_not_loaded_give_a_warning() {
    let warned = |line: &str| plan_with(line, &[]).warnings;
    assert_eq!(
        warned("-s -f csv --otf2-library x.so -- a"),
        ["--otf2-library: no effect without -f otf2"]
    );
    assert!(warned("-s -f otf2 --otf2-library x.so -- a").is_empty());
    assert_eq!(
        warned("-s --backend sim --rocm-root /r --sdk-version 1.2.3 -- a"),
        ["--rocm-root", "--sdk-version"].map(|name| format!(
            "{name}: no effect, since the simulated GPU needs no installation"
        ))
    );
    assert!(warned("-s --rocm-root /r --sdk-version 1.2.3 -- a").is_empty());
}

#[test]
fn perfetto_settings_without_effect_give_a_warning() {
    assert!(options("-s -f json pftrace -- a").collector.hip_args);
    let plan = plan_with(
        "-s -f pftrace --perfetto-buffer-size 4096 --perfetto-backend system --perfetto-shmem-size-hint 64 -- a",
        &[],
    );
    assert_eq!(plan.passes[0].options.formats, [Format::Pftrace]);
    assert_eq!(plan.warnings.len(), 1);
    let expected =
        "--perfetto-backend, --perfetto-buffer-size, --perfetto-shmem-size-hint: no effect";
    assert!(
        plan.warnings[0].starts_with(expected),
        "{:?}",
        plan.warnings
    );
    let usual = "-s --perfetto-backend inprocess --perfetto-buffer-fill-policy discard -- a";
    assert!(plan_with(usual, &[]).warnings.is_empty());
}

#[test]
fn output_environment_selects_the_variables_that_outputs_hold() {
    for (line, kept) in [
        ("-s -- a", EnvironmentSelection::Relevant),
        (
            "-s --output-environment all -- a",
            EnvironmentSelection::All,
        ),
        (
            "-s --output-environment none -- a",
            EnvironmentSelection::None,
        ),
    ] {
        assert_eq!(options(line).output_environment, kept, "{line}");
    }
}

#[test]
fn compat_mode_changes_endless_periods_and_group_by_queue() {
    let own = plan_with("--hip-trace -P 1:2:0 --stats -- ./app", &[]);
    let options = &own.passes[0].options;
    assert_eq!(options.compat, rpd_core::compat::Compat::None);
    assert_eq!(options.collector.periods[0].repeat, 0);
    assert!(!options.collector.original_semantics);
    let original = plan_with(
        "--compat rocprofv3 --hip-trace -P 1:2:0 0:1:3 --stats -- ./app",
        &[],
    );
    let options = &original.passes[0].options;
    assert_eq!(options.compat, rpd_core::compat::Compat::Rocprofv3);
    let repeats: Vec<u64> = (options.collector.periods.iter())
        .map(|period| period.repeat)
        .collect();
    assert_eq!(repeats, [1, 3]);
    assert!(options.collector.original_semantics);
    // Only the original counts this as a trace.
    let line = "--group-by-queue --summary -- ./app";
    assert!(matches!(run_with(line, &[]), Got::Failure(failure) if failure.status == 1));
    plan_with(&format!("--compat=rocprofv3 {line}"), &[]);
    for bad in ["--compat -s -- ./app", "--compat rocprof -s -- ./app"] {
        assert!(matches!(run_with(bad, &[]), Got::Failure(failure) if failure.status == 2));
    }
}

#[test]
fn schema_of_databases_is_one_of_the_known_versions() {
    assert_eq!(options("-s -- a").rocpd_schema, None);
    let given = options("-s --rocpd-schema 3.0.2 -- a").rocpd_schema;
    assert_eq!(given, Some(RocpdSchema::Graphs));
    match run_with("-s --rocpd-schema 3.0.9 -- a", &[]) {
        Got::Failure(failure) => {
            assert!(failure.message.contains("3.0.9"), "{}", failure.message);
        }
        _ => panic!("a version that nobody has is refused"),
    }
    let warnings = plan_with("-s --rocpd-schema 3 -f csv -- a", &[]).warnings;
    assert_eq!(warnings, ["--rocpd-schema: no effect without -f rocpd"]);
}

#[test]
fn layout_follows_the_compat_mode_unless_it_is_given() {
    for (line, layout) in [
        ("-s -- a", Layout::Rpd),
        ("-s --layout original -- a", Layout::Original),
        ("--compat rocprofv3 -s -- a", Layout::Original),
        ("--compat rocprofv3 -s --layout rpd -- a", Layout::Rpd),
    ] {
        assert_eq!(options(line).layout, layout, "{line}");
    }
}

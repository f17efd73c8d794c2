//! Conformance cases of the command line, by number. Where a case looks at a variable of the original, the
//! resolved option is looked at. Statuses 1 and 2 are as rpd defines them.

mod counters;
mod input;
mod passes;
mod ranks;
mod sampling;
mod stacks;
mod table;
mod thread_trace;
mod traces;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rpd_core::environment::EnvironmentSelection;
use rpd_core::options::{Format, Options};
use serde_json::{Value, json};

use super::parse::{Parsed, parse};
use super::plan::{Pass, Plan};
use super::resolve::{Environment, resolve};
use super::table::{Form, Group, OPTIONS, Spec, Support};
use crate::called::Called;
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

fn run_in(folder: &Path, line: &str, environment: &[(&str, &str)]) -> Got {
    let environment = Environment {
        compat: Called::by(None, &words(line)).compat,
        variables: environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        cwd: folder.to_owned(),
    };
    match parse(&words(line)) {
        Err(failure) => Got::Failure(failure),
        Ok(Parsed::Help(_)) => Got::Help,
        Ok(Parsed::Version) => Got::Version,
        Ok(Parsed::Run(given, command)) => match resolve(given, command, &environment) {
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
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join(name), content).expect("writable");
    match run_in(folder.path(), &format!("-i {name} {line}"), environment) {
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
fn mistakes_have_their_status_and_say_what_is_wrong() {
    for (case, line, status, fragment) in [
        ("6", "--foo -- true", 2, "unrecognized arguments: --foo"),
        ("8", "--hip-trace ./app", 1, "invalid truth value ./app"),
        ("8", "--hip-trace ./app", 1, "rpd [options] -- ./app"),
        (
            "8b",
            "--hip-trace ./app --size 5",
            1,
            "invalid truth value ./app",
        ),
        ("8c", "-s /bin/sh script", 1, "rpd [options] -- /bin/sh"),
        ("9", "--hip-trace", 1, "No application provided"),
        ("10", "--hip-trace --", 1, "No application provided"),
        (
            "11",
            "--hip-tra --echo -- true",
            2,
            "did you mean --hip-trace?",
        ),
        (
            "12",
            "--HIP-TRACE --echo -- true",
            2,
            "did you mean --hip-trace?",
        ),
        (
            "13",
            "--hip_trace --echo -- true",
            2,
            "did you mean --hip-trace?",
        ),
        (
            "16",
            "--hip-trace true false --echo -- true",
            2,
            "unrecognized arguments: false",
        ),
        ("17", "-o", 2, "expected one argument"),
        ("17b", "-o -- true", 2, "expected one argument"),
        (
            "18",
            "-f --echo -- true",
            2,
            "expected at least one argument",
        ),
        ("21", "-SD --hip-trace -- true", 1, "invalid truth value D"),
        ("25", "-f csv,json -- true", 2, "invalid choice: 'csv,json'"),
        ("26", "-f xml -- true", 2, "invalid choice"),
        ("28", "--log-level debug -- true", 2, "invalid choice"),
        (
            "29",
            "-u SEC --summary --hip-trace -- true",
            2,
            "invalid choice",
        ),
        ("30", "--agent-index Absolute -- true", 2, "invalid choice"),
        (
            "31",
            "--perfetto-backend inprocess system -- true",
            2,
            "unrecognized arguments: system",
        ),
        (
            "32",
            "--perfetto-buffer-size abc -- true",
            2,
            "invalid int value",
        ),
        ("33", "--perfetto-buffer-size 4194304 -- true", 2, "4194303"),
        ("33", "--perfetto-buffer-size 0 -- true", 2, "1..4194303"),
        ("34", "--att-resource-mode hip -- true", 2, "invalid choice"),
        ("35", "--pid=0x10", 2, "invalid int value"),
        (
            "36",
            "-P 1:2:3 --collection-period-unit MSEC -- true",
            2,
            "invalid choice",
        ),
        ("39", "--ompt-trace parallel,task -- true", 2, "spaces"),
        (
            "40",
            "--ompt-trace paralel -- true",
            2,
            "all, thread, parallel, task",
        ),
        (
            "46",
            "--hip-trace=maybe -- true",
            1,
            "invalid truth value maybe",
        ),
        ("65", "--stats --echo -- true", 1, "for --stats option"),
        (
            "61",
            "--sys-trace --hip-trace=no --hsa-trace=no --marker-trace=no --kernel-trace=no --memory-copy-trace=no \
             --memory-allocation-trace=no --scratch-memory-trace=no --rccl-trace=no --rocdecode-trace=no \
             --rocjpeg-trace=no --summary --echo -- true",
            1,
            "No tracing options were enabled for --summary option",
        ),
        (
            "61b",
            "-u usec -D -- true",
            1,
            "for --summary-per-domain option",
        ),
        (
            "61c",
            "--summary-output-file x -- true",
            1,
            "for --summary-output-file option",
        ),
        (
            "29",
            "-u SEC --summary --hip-trace -- true",
            2,
            "invalid choice: 'SEC'",
        ),
        (
            "75b",
            "--summary-groups *._API -s -- true",
            1,
            "--summary-groups: *._API: not a regular",
        ),
        (
            "75c",
            "--summary-groups -s -- true",
            2,
            "at least one argument",
        ),
        ("93", "-E missing.yaml --pmc A -- true", 1, "No such file"),
        ("i", "-i missing.json -s -- true", 1, "No such file"),
        (
            "placeholder",
            "-d out/%nonsense% -s -- true",
            2,
            "`%nonsense%` is no placeholder",
        ),
        (
            "placeholder",
            "-o {word} -s -- true",
            2,
            "`{word}` is no placeholder",
        ),
    ] {
        match run_with(line, &[]) {
            Got::Failure(failure) => {
                assert_eq!(failure.status, status, "case {case}: {line}: {failure}");
                assert!(
                    failure.message.contains(fragment),
                    "case {case}: {line}: {failure}"
                );
                assert!(!failure.message.contains('\n'), "case {case}: one line");
            }
            _ => panic!("case {case}: {line} was accepted"),
        }
    }
}

#[test]
fn help_and_version() {
    assert!(matches!(run_with("", &[]), Got::Help), "case 1");
    assert!(matches!(run_with("-h", &[]), Got::Help), "case 2");
    assert!(
        matches!(run_with("--help -- true", &[]), Got::Help),
        "case 2"
    );
    assert!(matches!(run_with("--version", &[]), Got::Version), "case 3");
    assert!(
        matches!(run_with("-v -- false", &[]), Got::Version),
        "case 4"
    );
    assert!(
        matches!(run_with("-i missing.json -v", &[]), Got::Version),
        "case 5"
    );
}

#[test]
fn the_cut_is_textual() {
    assert_eq!(
        options("--hip-trace --echo -- true -- --x").command,
        ["true", "--", "--x"],
        "case 14"
    );
    assert_eq!(
        options("--hip-trace --echo -- --hip-trace").command,
        ["--hip-trace"],
        "case 15"
    );
}

#[test]
fn values_in_all_their_spellings() {
    for (case, line) in [
        (19, "-d=foo -s -- a"),
        (20, "-dfoo -s -- a"),
        (0, "-d foo/ -s -- a"),
        (0, "--output-directory=foo -s -- a"),
    ] {
        assert_eq!(options(line).output_directory, "/cwd/foo", "case {case}");
    }
    assert!(
        traced(&options("-sno --hip-trace --echo -- true")).len() == 2,
        "case 22"
    );
    assert_eq!(
        json!(options("-f CSV Rocpd -s -- a").formats),
        json!(["csv", "rocpd"]),
        "case 24"
    );
    assert_eq!(
        json!(options("--log-level WARNING -s -- a").log_level),
        json!("warning"),
        "case 27"
    );
    assert!(
        traced(&options("--hip-trace=1 --hip-trace=0 --echo -- true")).is_empty(),
        "case 37"
    );
    assert_eq!(
        json!(options("-f csv -f rocpd -s -- a").formats),
        json!(["rocpd"]),
        "case 38"
    );
    assert!(
        matches!(
            run_with("--ompt-trace=false --hip-trace -- a", &[]),
            Got::Plan(_)
        ),
        "case 43"
    );
    for word in ["y", "YES", "t", "True", "oN", "1"] {
        assert_eq!(
            traced(&options(&format!("--kernel-trace {word} -- a"))),
            ["kernel"],
            "case 44"
        );
    }
    for word in ["N", "no", "f", "FALSE", "Off", "0"] {
        assert!(
            traced(&options(&format!("--kernel-trace {word} -- a"))).is_empty(),
            "case 45"
        );
    }
}

#[test]
fn inherited_variables_are_defaults() {
    let with = |line: &str, environment: &[(&str, &str)]| {
        plan_with(line, environment).passes.remove(0).options
    };
    let both = with(
        "--hip-trace -f rocpd -- a",
        &[("ROCPROF_OUTPUT_FORMAT", "csv")],
    );
    assert_eq!(json!(both.formats), json!(["csv", "rocpd"]), "case 68");
    let both = with("--hip-trace -- a", &[("ROCPROF_OUTPUT_FORMAT", "csv")]);
    assert_eq!(json!(both.formats), json!(["csv", "rocpd"]), "case 69");
    // Case 67 differs: an inherited variable is a default, and what is said on the command line wins.
    let inherited = [("ROCPROF_KERNEL_TRACE", "1")];
    assert!(
        !with("--kernel-trace=no --hip-trace -- a", &inherited)
            .collector
            .traces
            .kernel,
        "case 67"
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
            "cases 226, 227"
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
fn simple_options() {
    assert_eq!(
        options("--hip-trace -- a").output_directory,
        "/cwd",
        "case 70"
    );
    assert_eq!(
        options("--hip-trace -- a").output_file,
        "%hostname%/%pid%",
        "case 71"
    );
    assert!(options("-M -s -- a").kernel_names.mangled, "case 76");
    assert!(options("-T -s -- a").kernel_names.truncate, "case 77");
    assert_eq!(
        options("--minimum-output-data 10 -s -- a").minimum_output_bytes,
        10240,
        "case 78"
    );
    assert_eq!(
        options("--minimum-output-data 0 -s -- a").minimum_output_bytes,
        0,
        "case 79"
    );
    assert!(
        options("--disable-signal-handlers -s -- a")
            .collector
            .disable_signal_handlers,
        "case 80"
    );
    assert!(
        !options("--disable-signal-handlers=false -s -- a")
            .collector
            .disable_signal_handlers,
        "case 80"
    );
    assert_eq!(
        options("--rocm-path r -s -- a").rocm_root,
        Some(PathBuf::from("/cwd/r"))
    );
    assert_eq!(
        options("--preload A B --kernel-trace -- a").preload,
        [PathBuf::from("A"), PathBuf::from("B")],
        "case 224"
    );
    assert_eq!(
        options("-d %cwd%/x -s -- a").output_directory,
        "%cwd%/x",
        "D17"
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
fn settings_of_a_tracing_service_are_accepted_with_a_word() {
    assert!(options("-s -f json pftrace -- a").collector.hip_args);
    let plan = plan_with(
        "-s -f pftrace --perfetto-buffer-size 4096 --perfetto-backend system -- a",
        &[],
    );
    assert_eq!(plan.passes[0].options.formats, [Format::Pftrace]);
    assert_eq!(plan.warnings.len(), 1);
    let told = "--perfetto-backend, --perfetto-buffer-size: no effect";
    assert!(plan.warnings[0].starts_with(told), "{:?}", plan.warnings);
    let usual = "-s --perfetto-backend inprocess --perfetto-buffer-fill-policy discard -- a";
    assert!(plan_with(usual, &[]).warnings.is_empty());
}

#[test]
fn variables_that_outputs_hold() {
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
fn what_this_build_lacks_is_refused_by_name() {
    // These ask for one another; `sampling` tests them.
    let together = [
        "pc-sampling-unit",
        "pc-sampling-method",
        "pc-sampling-interval",
    ];
    let alone = |spec: &&Spec| !spec.key_only && !together.contains(&spec.long);
    for spec in OPTIONS.iter().filter(alone) {
        let line = match spec.form {
            Form::Bool | Form::Flag | Form::Categories(_) => format!("--{} -s -- a", spec.long),
            Form::Integer(low, _) => format!("--{} {} -s -- a", spec.long, low.max(1)),
            Form::Choice(known, _) | Form::Choices(known) => {
                format!("--{} {} -s -- a", spec.long, known[0])
            }
            Form::Text | Form::Path | Form::List(_) | Form::Groups => {
                let value = match spec.long {
                    "kernel-iteration-range" => "1-2",
                    "collection-period" => "1:1:1",
                    "profile-mpi-ranks" => "0",
                    "mpi-world-rank-variable" => "R --mpi-world-size-variable S",
                    "mpi-world-size-variable" => "S --mpi-world-rank-variable R",
                    "stacks-apis" => "hip*",
                    "stacks-min-duration" | "stacks-symbolize-limit" => "1us",
                    "input" => continue,
                    _ if spec.group == Group::ThreadTrace => "1",
                    _ => "/dev/null",
                };
                format!("--{} {value} -s -- a", spec.long)
            }
        };
        match (spec.support, run_with(&line, &[])) {
            (Support::Works, Got::Failure(failure)) => panic!("{line}: {failure}"),
            (Support::Works, _) => {}
            (_, Got::Failure(failure)) => {
                assert_eq!(failure.status, 1, "{line}: {failure}");
                assert!(
                    failure.message.contains(&format!("--{}", spec.long)),
                    "{failure}"
                );
            }
            (_, _) => panic!("{line} was silently accepted"),
        }
        if spec.form == Form::Bool {
            let line = format!("--{}=no -s -- a", spec.long);
            assert!(matches!(run_with(&line, &[]), Got::Plan(_)), "{line}");
        }
    }
    for format in Format::WORDS {
        assert!(
            matches!(run_with(&format!("-s -f {format} -- a"), &[]), Got::Plan(_)),
            "{format}"
        );
    }
}

#[test]
fn what_the_mode_of_the_original_changes_in_options() {
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

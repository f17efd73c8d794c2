//! Command lines that are refused: the status and words of the message.

use rpd_core::options::Format;

use super::super::spec::{Form, Spec, Support};
use super::super::table::{Group, OPTIONS};
use super::{Got, run_with};

#[test]
fn mistakes_fail_with_their_status_and_message() {
    for (case, line, status, fragment) in [
        (
            "command-line-6",
            "--foo -- true",
            2,
            "unrecognized arguments: --foo",
        ),
        (
            "command-line-8",
            "--hip-trace ./app",
            1,
            "invalid truth value ./app",
        ),
        (
            "command-line-8",
            "--hip-trace ./app",
            1,
            "rpd [options] -- ./app",
        ),
        (
            "command-line-8",
            "--hip-trace ./app --size 5",
            1,
            "invalid truth value ./app",
        ),
        (
            "command-line-8",
            "-s /bin/sh script",
            1,
            "rpd [options] -- /bin/sh",
        ),
        (
            "command-line-9",
            "--hip-trace",
            1,
            "No application provided",
        ),
        (
            "command-line-10",
            "--hip-trace --",
            1,
            "No application provided",
        ),
        (
            "command-line-11",
            "--hip-tra --echo -- true",
            2,
            "did you mean --hip-trace?",
        ),
        (
            "command-line-12",
            "--HIP-TRACE --echo -- true",
            2,
            "did you mean --hip-trace?",
        ),
        (
            "command-line-13",
            "--hip_trace --echo -- true",
            2,
            "did you mean --hip-trace?",
        ),
        (
            "command-line-16",
            "--hip-trace true false --echo -- true",
            2,
            "unrecognized arguments: false",
        ),
        ("command-line-17", "-o", 2, "expected one argument"),
        ("command-line-17", "-o -- true", 2, "expected one argument"),
        (
            "command-line-18",
            "-f --echo -- true",
            2,
            "expected at least one argument",
        ),
        (
            "command-line-21",
            "-SD --hip-trace -- true",
            1,
            "invalid truth value D",
        ),
        (
            "command-line-25",
            "-f csv,json -- true",
            2,
            "invalid choice: 'csv,json'",
        ),
        ("command-line-26", "-f xml -- true", 2, "invalid choice"),
        (
            "command-line-28",
            "--log-level debug -- true",
            2,
            "invalid choice",
        ),
        (
            "command-line-29",
            "-u SEC --summary --hip-trace -- true",
            2,
            "invalid choice",
        ),
        (
            "command-line-30",
            "--agent-index Absolute -- true",
            2,
            "invalid choice",
        ),
        (
            "command-line-31",
            "--perfetto-backend inprocess system -- true",
            2,
            "unrecognized arguments: system",
        ),
        (
            "command-line-32",
            "--perfetto-buffer-size abc -- true",
            2,
            "invalid int value",
        ),
        (
            "command-line-33",
            "--perfetto-buffer-size 4194304 -- true",
            2,
            "4194303",
        ),
        (
            "command-line-33",
            "--perfetto-buffer-size 0 -- true",
            2,
            "1..4194303",
        ),
        (
            "command-line-34",
            "--att-resource-mode hip -- true",
            2,
            "invalid choice",
        ),
        ("command-line-35", "--pid=0x10", 2, "invalid int value"),
        (
            "command-line-36",
            "-P 1:2:3 --collection-period-unit MSEC -- true",
            2,
            "invalid choice",
        ),
        (
            "command-line-39",
            "--ompt-trace parallel,task -- true",
            2,
            "spaces",
        ),
        (
            "command-line-40",
            "--ompt-trace paralel -- true",
            2,
            "all, thread, parallel, task",
        ),
        (
            "command-line-46",
            "--hip-trace=maybe -- true",
            1,
            "invalid truth value maybe",
        ),
        (
            "command-line-65",
            "--stats --echo -- true",
            1,
            "for --stats option",
        ),
        (
            "command-line-61",
            "--sys-trace --hip-trace=no --hsa-trace=no --marker-trace=no --kernel-trace=no --memory-copy-trace=no \
             --memory-allocation-trace=no --scratch-memory-trace=no --rccl-trace=no --rocdecode-trace=no \
             --rocjpeg-trace=no --rocshmem-trace=no --hipfile-trace=no --kfd-trace=no --cuda-trace=no \
             --cuda-driver-trace=no --summary --echo -- true",
            1,
            "No tracing options were enabled for --summary option",
        ),
        (
            "command-line-61",
            "-u usec -D -- true",
            1,
            "for --summary-per-domain option",
        ),
        (
            "command-line-61",
            "--summary-output-file x -- true",
            1,
            "for --summary-output-file option",
        ),
        (
            "command-line-29",
            "-u SEC --summary --hip-trace -- true",
            2,
            "invalid choice: 'SEC'",
        ),
        (
            "command-line-75",
            "--summary-groups *._API -s -- true",
            1,
            "--summary-groups: `*._API` is not a regular expression",
        ),
        (
            "command-line-75",
            "--summary-groups -s -- true",
            2,
            "at least one argument",
        ),
        (
            "command-line-93",
            "-E missing.yaml --pmc A -- true",
            1,
            "No such file",
        ),
        (
            "command-line-93",
            "--extra-counters= --pmc A -- true",
            2,
            "--extra-counters: no file is named",
        ),
        (
            "unnumbered",
            "-i missing.json -s -- true",
            1,
            "No such file",
        ),
        (
            "unnumbered",
            "-d out/%nonsense% -s -- true",
            2,
            "`%nonsense%` is not a placeholder",
        ),
        (
            "unnumbered",
            "-o {word} -s -- true",
            2,
            "`{word}` is not a placeholder",
        ),
    ] {
        match run_with(line, &[]) {
            Got::Failure(failure) => {
                assert_eq!(failure.status, status, "{case}: {line}: {failure}");
                assert!(
                    failure.message.contains(fragment),
                    "{case}: {line}: {failure}"
                );
                assert!(!failure.message.contains('\n'), "{case}: one line");
            }
            _ => panic!("{case}: {line} was accepted"),
        }
    }
}

#[test]
fn options_work_or_are_refused_by_name() {
    // These request one another; `sampling` tests them.
    let together = [
        "pc-sampling-unit",
        "pc-sampling-method",
        "pc-sampling-interval",
    ];
    let alone = |spec: &&Spec| !spec.key_only && !together.contains(&spec.long);
    for spec in OPTIONS.iter().filter(alone) {
        let line = match spec.form {
            // `--light` refuses other traces.
            _ if spec.long == "light" => "--light -- a".to_owned(),
            // The replay of kernels is a beta feature, which another option allows.
            _ if spec.long == "replay-mode" => "--replay-mode application -s -- a".to_owned(),
            // No program is started beside the process that is attached to.
            _ if spec.long == "pid" => "--pid 1 -s".to_owned(),
            Form::Integer(..) if spec.long == "attach-duration-msec" => {
                "--attach-duration-msec 1 --pid 1 -s".to_owned()
            }
            _ if spec.long.starts_with("attach-") => format!("--{} --pid 1 -s", spec.long),
            Form::Bool | Form::Flag | Form::Categories => format!("--{} -s -- a", spec.long),
            Form::Integer(low, _) => format!("--{} {} -s -- a", spec.long, low.max(1)),
            Form::Choice(known, _) | Form::Choices(known) => {
                format!("--{} {} -s -- a", spec.long, known[0])
            }
            Form::Text | Form::Path | Form::List { .. } | Form::Groups => {
                let value = match spec.long {
                    "kernel-iteration-range" => "1-2",
                    "collection-period" => "1:1:1",
                    "profile-mpi-ranks" => "0",
                    "mpi-world-rank-variable" => "R --mpi-world-size-variable S",
                    "mpi-world-size-variable" => "S --mpi-world-rank-variable R",
                    "stacks-apis" => "hip*",
                    "light-keep" => "1M",
                    "spool-limit" => "64M",
                    "rotate" => "10s",
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
        // Options of attaching need a process, and then no program.
        if spec.form == Form::Bool && !spec.long.starts_with("attach-") {
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

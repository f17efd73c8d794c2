//! Names of files, of kernels and of agents.

use rpd_tests::outputs::Table;
use rpd_tests::run::{Outcome, Rpd};

fn plain<const N: usize>(options: [&str; N]) -> Rpd {
    let backend = std::env::var("RPD_TEST_BACKEND").unwrap_or_else(|_| "sim".into());
    let mut arguments = vec!["--backend".to_owned(), backend];
    arguments.extend(options.map(str::to_owned));
    Rpd::plain(arguments)
}

fn hostname() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
    name.trim().to_owned()
}

/// Checks command-line-254.
#[test]
fn output_names_default_to_host_and_process() {
    let outcome = plain(["--kernel-trace"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let directory = outcome.directory.path().join(hostname());
    let files: Vec<String> = std::fs::read_dir(&directory)
        .expect("a directory named after the host")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let pid = files[0].strip_suffix("_results.db").expect("a database");
    assert!(pid.parse::<u32>().is_ok(), "{files:?}");
    assert!(
        outcome.stderr.contains(&format!("vector-ops[{pid}]")),
        "{}",
        outcome.stderr
    );
}

#[test]
fn placeholders_in_output_names_are_replaced() {
    let outcome = Rpd::new([
        "--kernel-trace",
        "-o",
        "%tag%-{hostname}/%arg1%x%arg2%-%env{WHO}%",
    ])
    .env("WHO", "me")
    .workload("vector-ops", ["1", "2"])
    .success();
    assert_eq!(
        outcome.files(),
        [format!("vector-ops-{}/1x2-me_results.db", hostname())]
    );
    let outcome = plain(["--kernel-trace", "-d", "a/%tag%/b", "-o", "x"])
        .workload("vector-ops", ["1", "1"])
        .success();
    assert!(
        outcome
            .directory
            .path()
            .join("a/vector-ops/b/x_results.db")
            .is_file(),
        "{}",
        outcome.stderr
    );
}

#[test]
fn outputs_of_children_and_second_images_have_suffixes() {
    let outcome = Rpd::new(["--kernel-trace", "-o", "x"])
        .workload("fork-exec", ["tree"])
        .success();
    let files = outcome.files();
    assert_eq!(files.len(), 3, "{files:?}");
    assert!(files.contains(&"x_results.db".to_owned()), "{files:?}");
    let children = files.iter().filter(|name| {
        name.strip_prefix("x_")
            .and_then(|rest| rest.strip_suffix("_results.db"))
            .is_some_and(|pid| pid.parse::<u32>().is_ok())
    });
    assert_eq!(children.count(), 2, "{files:?}");

    let outcome = Rpd::new(["--kernel-trace", "-o", "x"])
        .workload("fork-exec", ["replace"])
        .success();
    let files = outcome.files();
    assert_eq!(files.len(), 2, "{files:?}");
    assert!(files.contains(&"x_results.db".to_owned()), "{files:?}");
    assert!(files.iter().any(|name| name.contains("_2")), "{files:?}");
}

#[test]
fn outputs_of_many_short_processes_are_not_overwritten() {
    let program = rpd_tests::workloads::path("no-gpu-linked");
    let gpu = rpd_tests::workloads::path("fork-exec");
    let script = format!(
        "i=0; while [ $i -lt 200 ]; do {} >/dev/null || exit 9; i=$((i+1)); done; \
         for i in 1 2 3 4 5 6 7 8; do {} child & done; wait",
        program.display(),
        gpu.display()
    );
    let outcome = Rpd::new(["--kernel-trace", "-o", "x"])
        .target(["/bin/sh", "-c", &script])
        .success();
    assert_eq!(outcome.stdout, "exec ok\n".repeat(8));
    assert_eq!(
        outcome.files_ending("_results.db").len(),
        8,
        "{:?}",
        outcome.files()
    );
    assert!(
        outcome.stderr.lines().count() < 30,
        "processes without GPU do not flood the terminal:\n{}",
        outcome.stderr
    );
}

fn kernel_names(options: &[&str]) -> Vec<String> {
    let mut all = vec!["--kernel-trace", "-f", "csv"];
    all.extend(options);
    let outcome = Rpd::new(all).workload("vector-ops", ["1", "1"]).success();
    let mut names: Vec<String> = outcome
        .csv("kernel_trace")
        .column("Kernel_Name")
        .into_iter()
        .map(str::to_owned)
        .collect();
    names.sort();
    names
}

#[test]
fn mangled_kernels_shows_the_names_of_symbols() {
    assert_eq!(
        kernel_names(&["--mangled-kernels"]),
        [
            "_Z13divide_kernelPfPKfS1_ii.kd",
            "_Z15addition_kernelIfEvPT_PKS0_S3_ii.kd",
            "_Z15multiply_kernelPfPKfS1_ii.kd",
            "_Z15subtract_kernelPfPKfS1_ii.kd",
        ]
    );
}

/// Checks command-line-280 and command-line-281.
#[test]
fn truncate_kernels_shows_bare_names_with_and_without_mangled_kernels() {
    let bare = [
        "addition_kernel",
        "divide_kernel",
        "multiply_kernel",
        "subtract_kernel",
    ];
    for options in [&["--truncate-kernels"][..], &["-T", "-M"]] {
        assert_eq!(kernel_names(options), bare, "{options:?}");
    }
}

#[test]
fn kernel_rename_shows_the_name_of_the_region() {
    assert_eq!(
        kernel_names(&["--marker-trace", "--kernel-rename"]),
        ["iteration"; 4]
    );
}

fn kernel_trace(outcome: Outcome) -> Table {
    outcome.success().csv("kernel_trace")
}

#[test]
fn group_by_queue_shows_queues_of_traced_kernels() {
    let run = |options: &[&str]| {
        let all = ["--kernel-trace", "-f", "csv"].iter().chain(options);
        kernel_trace(Rpd::new(all).workload("vector-ops", ["2", "1"]))
    };
    let streams = run(&[]);
    assert!(streams.numbers("Stream_Id").iter().all(|id| *id > 0));
    let queues = run(&["--group-by-queue"]);
    assert_eq!(queues.column("Queue_Id").len(), 8, "{:?}", queues.columns);
    assert!(
        queues.numbers("Stream_Id").iter().all(|id| *id == 0),
        "no streams: {:?}",
        queues.rows
    );
}

/// Checks command-line-282.
#[test]
fn agent_index_numbers_agents_as_requested() {
    for (how, agent) in [
        ("absolute", "Agent 1"),
        ("relative", "Agent 1"),
        ("type-relative", "GPU 0"),
    ] {
        let table = kernel_trace(
            Rpd::new(["--kernel-trace", "-f", "csv", "-A", how]).workload("vector-ops", ["1", "1"]),
        );
        let agents = table.column("Agent_Id");
        assert!(agents.iter().all(|found| *found == agents[0]), "{agents:?}");
        if how == "absolute" {
            // The absolute number is the node's; CPUs come first.
            assert!(agents[0].starts_with("Agent "), "{agents:?}");
        } else {
            assert_eq!(agents[0], agent, "{how}");
        }
    }
}

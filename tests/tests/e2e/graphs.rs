//! Graphs: which graph and node work belongs to, and launches; with both providers and each version of the simulated SDK.

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd};

/// Providers and versions of the SDK that report graphs.
const WITH_GRAPHS: [(&str, &str); 3] = [("direct", "1.0"), ("sdk", "1.3"), ("sdk", "1.4")];

fn recorded(provider: &str, sdk: &str, options: &[&str], mode: &str) -> Outcome {
    Rpd::new([
        "--kernel-trace",
        "--memory-copy-trace",
        "--provider",
        provider,
    ])
    .option(["-f", "rocpd"])
    .option(options)
    .env("RPD_SIM_SDK", sdk)
    .env("RPD_SIM_GPUS", "2")
    .workload("graphs", [mode])
    .success()
}

/// Runs `check` on a database of a mode of `graphs` from each provider that reports graphs.
fn with_graphs(options: &[&str], mode: &str, check: impl Fn(&Database, &str)) {
    for (provider, sdk) in WITH_GRAPHS {
        let outcome = recorded(provider, sdk, options, mode);
        assert!(!outcome.stderr.contains("note:"), "{}", outcome.stderr);
        check(&outcome.database(), &format!("{mode}, {provider} {sdk}"));
    }
}

fn numbers(database: &Database, query: &str) -> Vec<Vec<i64>> {
    let rows = database.rows(query);
    rows.iter()
        .map(|row| row.iter().map(|cell| cell.parse().unwrap_or(-1)).collect())
        .collect()
}

const LAUNCHES: &str =
    "SELECT graph_exec_id, kernel_dispatch_count FROM graph_launches ORDER BY start";
const KERNELS: &str = "SELECT graph_exec_id, graph_node_id FROM kernels ORDER BY dispatch_id";

/// sdk-newer-14 and sdk-newer-18
#[test]
fn launches_of_a_graph_have_its_dispatches_as_nodes() {
    for options in [&["--hip-graph-trace"][..], &["--hip-trace"]] {
        with_graphs(options, "launches", |database, what| {
            assert_eq!(numbers(database, LAUNCHES), [[1, 3]; 5], "{what}");
            let nodes = (0..15).map(|index| vec![1, index % 3]).chain([vec![0, 0]]);
            assert_eq!(
                numbers(database, KERNELS),
                nodes.collect::<Vec<_>>(),
                "{what}"
            );
            assert_eq!(
                database.number("SELECT count(*) FROM graph_launches WHERE duration <= 0"),
                0
            );
            let versions =
                database.rows("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'");
            assert!(versions[0][0].starts_with("3.0."), "{what}: {versions:?}");
        });
    }
}

/// A launch has the correlation id of its call where calls are traced.
#[test]
fn launch_belongs_to_its_call() {
    with_graphs(&["--hip-trace"], "launches", |database, what| {
        let of_calls =
            "SELECT count(*) FROM graph_launches g JOIN regions r ON r.stack_id = g.stack_id
            WHERE r.name = 'hipGraphLaunch' AND r.start <= g.start AND r.\"end\" >= g.\"end\"";
        assert_eq!(database.number(of_calls), 5, "{what}");
    });
    with_graphs(&["--hip-graph-trace"], "launches", |database, what| {
        assert_eq!(
            numbers(database, "SELECT DISTINCT stack_id FROM graph_launches"),
            [[0]],
            "{what}"
        );
    });
}

/// sdk-newer-15 and sdk-newer-16
#[test]
fn each_executable_graph_has_a_number_of_its_own() {
    with_graphs(&["--hip-graph-trace"], "instances", |database, what| {
        assert_eq!(
            numbers(database, LAUNCHES),
            [[1, 1], [2, 1], [3, 1]],
            "{what}"
        );
        assert_eq!(
            numbers(database, KERNELS),
            [[1, 0], [2, 0], [3, 0]],
            "{what}"
        );
    });
}

/// sdk-newer-17
#[test]
fn launch_that_fails_is_no_row() {
    with_graphs(&["--hip-graph-trace"], "failing", |database, what| {
        assert_eq!(numbers(database, LAUNCHES), [[1, 1]], "{what}");
    });
}

/// sdk-newer-20
#[test]
fn launch_on_the_null_stream_has_the_device_of_the_thread() {
    with_graphs(&["--hip-graph-trace"], "device", |database, what| {
        let agents = "SELECT agent_type_index, coalesce(queue_id, 0), kernel_dispatch_count FROM graph_launches";
        assert_eq!(numbers(database, agents), [[1, 0, 2]], "{what}");
    });
}

/// sdk-newer-21
#[test]
fn graph_that_a_host_function_launches_keeps_its_own_dispatches() {
    with_graphs(&["--hip-graph-trace"], "nested", |database, what| {
        let mut launches = numbers(database, LAUNCHES);
        launches.sort();
        assert_eq!(launches, [[1, 2], [2, 2]], "{what}");
        let mut kernels = numbers(database, KERNELS);
        kernels.sort();
        assert_eq!(kernels, [[1, 0], [1, 1], [2, 0], [2, 1]], "{what}");
    });
}

/// sdk-newer-22
#[test]
fn launches_of_two_threads_are_not_mixed() {
    with_graphs(&["--hip-graph-trace"], "threads", |database, what| {
        let counts = "SELECT count(*), min(kernel_dispatch_count), max(kernel_dispatch_count), count(DISTINCT tid)
            FROM graph_launches GROUP BY graph_exec_id ORDER BY 2";
        assert_eq!(
            numbers(database, counts),
            [[10, 2, 2, 1], [10, 3, 3, 1]],
            "{what}"
        );
        let nodes = "SELECT count(*), count(DISTINCT tid), max(graph_node_id) FROM kernels GROUP BY graph_exec_id ORDER BY 1";
        assert_eq!(numbers(database, nodes), [[20, 1, 1], [30, 1, 2]], "{what}");
    });
}

#[test]
fn copies_of_a_graph_are_nodes_as_well() {
    with_graphs(&["--hip-graph-trace"], "copies", |database, what| {
        let nodes = "SELECT graph_exec_id, graph_node_id FROM kernels WHERE graph_exec_id > 0
            UNION ALL SELECT graph_exec_id, graph_node_id FROM memory_copies WHERE graph_exec_id > 0 ORDER BY 2";
        let expected: Vec<Vec<i64>> = (0..3)
            .flat_map(|node| [vec![1, node], vec![1, node]])
            .collect();
        assert_eq!(numbers(database, nodes), expected, "{what}");
    });
}

/// sdk-newer-23
#[test]
fn graphs_can_be_left_out_of_the_traces_of_hip() {
    let options = ["--hip-trace", "--hip-graph-trace=no"];
    for (provider, sdk) in WITH_GRAPHS {
        let database = recorded(provider, sdk, &options, "launches").database();
        let views = database.rows("SELECT name FROM sqlite_master WHERE name = 'graph_launches'");
        assert!(views.is_empty(), "{provider} {sdk}");
        let versions =
            database.rows("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'");
        assert_eq!(versions, [["3"]], "{provider} {sdk}");
    }
}

#[test]
fn older_sdk_is_refused_where_graphs_are_requested_by_name() {
    let outcome = recorded("sdk", "1.0", &["--hip-graph-trace"], "launches");
    let note = "HIP_GRAPH is not recorded: this provider does not have it; ROCprofiler-SDK 1.3";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
    let outcome = recorded("sdk", "1.0", &["--hip-trace"], "launches");
    assert!(!outcome.stderr.contains("HIP_GRAPH"), "{}", outcome.stderr);
}

#[test]
fn graphs_are_in_json_and_perfetto_and_survive_a_merge() {
    let outcome = Rpd::new(["--hip-trace", "--kernel-trace", "-f", "json", "rocpd"])
        .workload("graphs", ["launches"])
        .success();
    let text = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let records = &json["rocprofiler-sdk-tool"][0]["buffer_records"];
    let launches = records["hip_graph"].as_array().expect("launches");
    assert_eq!(launches.len(), 5);
    assert_eq!(launches[0]["kind"], 33);
    assert_eq!(launches[0]["kernel_dispatch_count"], 3);
    assert_eq!(launches[0]["graph_exec_id"]["handle"], 1);
    let kernels = records["kernel_dispatch"].as_array().expect("dispatches");
    assert_eq!(kernels[1]["graph_node_id"]["handle"], 1);
    // A recording without graphs has an older schema: both go into one database.
    let other = Rpd::new(["--kernel-trace", "-f", "rocpd"])
        .workload("launch-loop", ["10"])
        .success();
    let directory = tempfile::tempdir().expect("a directory");
    let merged = directory.path().join("merged.db");
    let (one, two) = (outcome.file(".db"), other.file(".db"));
    let merge = Rpd::plain([
        "merge".as_ref(),
        one.as_os_str(),
        two.as_os_str(),
        "-o".as_ref(),
        merged.as_os_str(),
    ])
    .run()
    .success();
    assert!(merge.stderr.contains("merged.db"), "{}", merge.stderr);
    let database = Database::open(&merged);
    assert_eq!(database.number("SELECT count(*) FROM graph_launches"), 5);
    assert_eq!(
        database.number("SELECT count(*) FROM kernels WHERE graph_exec_id = 1"),
        15
    );
    let summary = Rpd::plain(["summary".as_ref(), "--graphs".as_ref(), merged.as_os_str()])
        .run()
        .success();
    assert!(
        summary.stdout.contains("GRAPH_NODES:"),
        "{}",
        summary.stdout
    );
    let header = summary
        .stdout
        .lines()
        .position(|line| line.contains("LAUNCHING"));
    let row = summary
        .stdout
        .lines()
        .nth(header.expect("a header") + 1)
        .expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[1..5], ["1", "5", "15", "0"], "{row}");
}

/// Everything but graphs is the same whichever version of the SDK there is. Numbers of streams are those of the order in which threads
/// make them.
#[test]
fn records_of_old_kinds_do_not_depend_on_the_version_of_the_sdk() {
    for (workload, arguments) in [
        ("vector-ops", &["2", "2"][..]),
        ("copies", &[]),
        ("launch-loop", &["100"]),
        ("graphs", &["threads"]),
        ("graphs", &["copies"]),
    ] {
        let contents = |sdk: &str| {
            let outcome = Rpd::new(["-r", "--provider", "sdk", "-f", "rocpd"])
                .env("RPD_SIM_SDK", sdk)
                .workload(workload, arguments)
                .success();
            let database = outcome.database();
            [
                // Aggregates have the driver's events with newer SDKs only.
                "SELECT category, name, count(*) FROM regions_and_samples WHERE category NOT LIKE 'KFD@_%' ESCAPE '@'
                    GROUP BY 1, 2 ORDER BY 1, 2",
                "SELECT name, grid_x, workgroup_x, count(*) FROM kernels GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
                "SELECT name, size, count(*) FROM memory_copies GROUP BY 1, 2 ORDER BY 1, 2",
                "SELECT type, level, size, count(*) FROM memory_allocations GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
            ]
            .map(|query| database.rows(query))
        };
        assert_eq!(contents("1.0"), contents("1.4"), "{workload} {arguments:?}");
    }
}

fn events(options: &[&str], mode: &str) -> Outcome {
    Rpd::new(["--kernel-trace", "--hip-event-trace", "--provider", "sdk"])
        .option(options)
        .workload("graphs", [mode])
        .success()
}

/// sdk-newer-26 to sdk-newer-30
#[test]
fn events_are_recorded_and_waited_for_on_the_device() {
    let database = events(&["--hip-trace", "-f", "rocpd"], "events").database();
    let records = numbers(
        &database,
        "SELECT count(*), count(DISTINCT stack_id), sum(queue_id = source_queue_id), sum(duration > 0)
         FROM hip_events WHERE name = 'HIP_EVENT_RECORD'",
    );
    assert_eq!(records, [[4, 4, 4, 4]]);
    let waits = "SELECT count(*), sum(h.queue_id != h.source_queue_id),
            sum(h.\"end\" <= (SELECT max(k.start) FROM kernels k WHERE k.queue_id = h.queue_id AND k.name = 'empty_kernel'))
         FROM hip_events h WHERE h.name = 'HIP_EVENT_WAIT'";
    assert_eq!(numbers(&database, waits), [[1, 1, 1]]);
    let of_calls = "SELECT count(*) FROM hip_events h JOIN regions r ON r.stack_id = h.stack_id
        WHERE r.name IN ('hipEventRecord', 'hipStreamWaitEvent')";
    assert_eq!(database.number(of_calls), 5);
    let versions = database.rows("SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'");
    assert_eq!(versions, [["3.0.4"]]);
}

/// sdk-newer-33
#[test]
fn events_are_a_list_of_their_own_in_json() {
    let outcome = events(&["-f", "json"], "events");
    let text = std::fs::read_to_string(outcome.file(".json")).expect("a file");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let records = &json["rocprofiler-sdk-tool"][0]["buffer_records"]["hip_event"];
    let records = records.as_array().expect("events");
    assert_eq!(records.len(), 5);
    for record in records {
        assert_eq!(record["kind"], 38);
        assert!(
            record["hip_event_handle"]
                .as_u64()
                .is_some_and(|handle| handle > 0)
        );
        assert!(
            record["stream_id"]["handle"]
                .as_u64()
                .is_some_and(|stream| stream > 0)
        );
        assert!(
            record["queue_id"]["handle"]
                .as_u64()
                .is_some_and(|queue| queue > 0)
        );
    }
}

/// sdk-newer-35
#[test]
fn files_of_a_run_in_csv_have_no_events_and_a_warning_says_so() {
    let outcome = events(&["-f", "csv"], "events");
    assert!(
        !outcome
            .files()
            .iter()
            .any(|file| file.contains("hip_event"))
    );
    let warnings = outcome.stderr.lines().filter(|line| line.contains("rocpd"));
    assert_eq!(warnings.count(), 1, "{}", outcome.stderr);
}

#[test]
fn events_are_refused_where_the_provider_has_none() {
    let outcome =
        Rpd::new(["--hip-event-trace", "--provider", "direct"]).workload("graphs", ["events"]);
    assert_ne!(outcome.code(), 0);
    assert!(
        outcome.stderr.contains("`direct` has no HIP events"),
        "{}",
        outcome.stderr
    );
    let outcome = Rpd::new(["--hip-event-trace", "--provider", "sdk", "-f", "rocpd"])
        .env("RPD_SIM_SDK", "1.3")
        .workload("graphs", ["events"])
        .success();
    let note = "HIP_EVENT is not recorded: this provider does not have it; ROCprofiler-SDK 1.4";
    assert!(outcome.stderr.contains(note), "{}", outcome.stderr);
}

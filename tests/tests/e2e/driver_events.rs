//! Events of the kernel driver: managed memory of the simulated GPU that moves.

use rpd_tests::outputs::Database;
use rpd_tests::run::{Outcome, Rpd};

fn recorded(options: &[&str], mode: &str) -> Outcome {
    Rpd::new(["-f", "rocpd"])
        .option(options)
        .workload("managed", [mode])
        .success()
}

fn field(name: &str) -> String {
    format!("json_extract(extdata, '$.kfd.{name}')")
}

/// Kinds and operations of the driver's events, in the order of their times.
fn events(database: &Database) -> Vec<String> {
    let rows = database.rows(
        "SELECT category || ' ' || replace(name, 'ROCPROFILER_' || category || '_', '')
         FROM regions WHERE category LIKE 'KFD@_%' ESCAPE '@' ORDER BY start, id",
    );
    rows.into_iter().flatten().collect()
}

/// sdk-newer-36, sdk-newer-37 and sdk-newer-39
#[test]
fn prefetched_pages_are_migrations_with_their_range_and_agents() {
    let outcome = recorded(&["--kfd-trace"], "prefetch");
    let database = outcome.database();
    let mut found = events(&database);
    found.sort();
    let expected = [
        "KFD_EVENT_QUEUE EVICT_SVM",
        "KFD_EVENT_QUEUE RESTORE",
        "KFD_EVENT_UNMAP_FROM_GPU MMU_NOTIFY_MIGRATE",
        "KFD_EVENT_UNMAP_FROM_GPU UNMAP_FROM_CPU",
        "KFD_PAGE_MIGRATE PREFETCH",
        "KFD_PAGE_MIGRATE PREFETCH",
        "KFD_QUEUE EVICT_SVM",
    ];
    assert_eq!(found, expected);
    let migrations = format!(
        "SELECT {}, {}, {} - {}, (SELECT value FROM rocpd_pmc_event v WHERE v.event_id = r.event_id),
             typeof({}), tid = pid
         FROM regions r WHERE category = 'KFD_PAGE_MIGRATE' ORDER BY start",
        field("src_agent_id"),
        field("dst_agent_id"),
        field("end_address"),
        field("start_address"),
        field("start_address"),
    );
    let there = ["0", "1", "8192", "8192", "text", "1"].map(str::to_owned);
    let back = ["1", "0", "8192", "8192", "text", "1"].map(str::to_owned);
    assert_eq!(database.rows(&migrations), [there, back]);
    // Nobody prefers a place.
    let places = format!(
        "SELECT DISTINCT {}, {} FROM regions WHERE category = 'KFD_PAGE_MIGRATE'",
        field("preferred_agent_id"),
        field("error_code")
    );
    assert_eq!(database.rows(&places), [["-1", "0"]]);
    let instants =
        "SELECT count(*) FROM regions WHERE category LIKE 'KFD_EVENT%' AND duration <> 0";
    assert_eq!(database.number(instants), 0);
    let counters =
        "SELECT count(*) FROM rocpd_info_pmc WHERE block = 'KFD' AND id >= 8070450532247928832";
    assert_eq!(database.number(counters), 8);
    let counted = "SELECT count(*) FROM counters_collection";
    assert_eq!(database.number(counted), 0);
}

/// sdk-newer-40
#[test]
fn trace_of_queues_has_neither_migrations_nor_faults() {
    let outcome = recorded(&["--kfd-queue-trace"], "prefetch");
    let found = events(&outcome.database());
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found.iter().all(|event| event.contains("QUEUE")),
        "{found:?}"
    );
}

#[test]
fn touched_pages_fault_where_gpus_retry_accesses() {
    let run = |xnack: &str| {
        Rpd::new(["-f", "rocpd", "--kfd-trace"])
            .env("HSA_XNACK", xnack)
            .workload("managed", ["faults"])
            .success()
    };
    let with = run("1");
    let database = with.database();
    let bytes = format!(
        "SELECT sum({} - {}), min({}), max({}) FROM regions
         WHERE category = 'KFD_PAGE_MIGRATE' AND name LIKE '%PAGEFAULT_GPU'",
        field("end_address"),
        field("start_address"),
        field("src_agent_id"),
        field("dst_agent_id"),
    );
    assert_eq!(database.rows(&bytes), [["1048576", "0", "1"]]);
    let faults = |operation: &str| {
        database.number(&format!(
            "SELECT count(*) FROM regions WHERE category = 'KFD_PAGE_FAULT' AND name LIKE '%{operation}'"
        ))
    };
    assert!(faults("WRITE_FAULT_MIGRATED") >= 1);
    assert_eq!(
        faults("WRITE_FAULT_UPDATED"),
        1,
        "what is to stay in host memory"
    );
    let without = run("0");
    let kinds: Vec<String> = events(&without.database());
    assert!(
        kinds.iter().all(|event| event.contains("UNMAP_FROM_CPU")),
        "{kinds:?}"
    );
}

/// sdk-newer-41
#[test]
fn driver_events_are_in_the_files_of_a_conversion() {
    let outcome = recorded(&["--kfd-trace"], "prefetch");
    let database = outcome.file(".db");
    let path = database.to_string_lossy();
    let converted = Rpd::plain([
        "convert", &path, "-f", "csv", "pftrace", "rocpd", "-d", "out", "-o", "again",
    ])
    .run()
    .success();
    let csv = std::fs::read_to_string(converted.file("kfd_trace.csv")).expect("a file");
    assert_eq!(csv.lines().count(), 8, "{csv}");
    let trace = std::fs::read(converted.file(".pftrace")).expect("a trace");
    for text in ["kfd_events", "src_agent_id", "KFD_PAGE_MIGRATE"] {
        let found = trace
            .windows(text.len())
            .any(|part| part == text.as_bytes());
        assert!(found, "{text}");
    }
    let again = Database::open(&converted.file(".db"));
    assert_eq!(events(&again), events(&outcome.database()));
    let summary = Rpd::plain(["summary", &path]).run().success();
    assert!(
        summary.stdout.contains("PAGE_MIGRATE_PREFETCH"),
        "{}",
        summary.stdout
    );
}

#[test]
fn child_of_a_process_with_driver_events_ends_as_without_them() {
    let outcome = recorded(&["--kfd-trace"], "forked");
    assert!(!outcome.stderr.contains("WARNING"), "{}", outcome.stderr);
}

/// Aggregates have the driver's events with SDKs since 1.3, as the original's; their own options with any.
#[test]
fn aggregate_of_an_old_sdk_has_no_driver_events() {
    let run = |sdk: &str, options: &[&str]| {
        let outcome = Rpd::new(["-f", "rocpd"])
            .option(options)
            .env("RPD_SIM_SDK", sdk)
            .workload("managed", ["prefetch"])
            .success();
        let driver = "SELECT count(*) FROM regions WHERE category LIKE 'KFD%'";
        (outcome.database().number(driver), outcome.stderr)
    };
    assert_eq!(run("1.0", &["--sys-trace"]).0, 0);
    assert_eq!(run("1.0", &["--kfd-trace"]).0, 7);
    let (found, notes) = run("1.4", &["--runtime-trace"]);
    assert_eq!(found, 7);
    assert!(!notes.contains("note:"), "{notes}");
}

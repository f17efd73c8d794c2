//! The rocpd database: views, ancestors, arguments, and the same statistics everywhere.

use std::collections::{BTreeMap, HashMap};
use std::process::Command;

use rpd_tests::run::{Rpd, skipped, tool};
use rpd_tests::workloads;

/// View names and columns of a database that the original wrote.
const VIEWS: &str = include_str!("../../../golden/rocpd-views.txt");

#[test]
fn database_of_a_long_run_has_every_record() {
    let outcome = Rpd::new(["--sys-trace"])
        .workload("vector-ops", ["4", "50"])
        .success();
    let Some(sqlite3) = tool("sqlite3") else {
        return skipped("the database in the eyes of sqlite3", "no sqlite3");
    };
    let query = "SELECT count(*) FROM kernels; SELECT count(*) FROM memory_copies; \
         SELECT count(*) FROM regions_and_samples WHERE category = 'MARKER_CORE_RANGE_API'; \
         SELECT count(*) FROM samples; \
         SELECT count(*) FROM regions WHERE name = 'hipLaunchKernel'; \
         SELECT count(*) FROM regions WHERE name = 'hipMemcpyAsync'; \
         SELECT count(DISTINCT dispatch_id) FROM kernels; \
         SELECT count(DISTINCT stream_id) FROM kernels; \
         SELECT sum(total_calls) FROM top_kernels; \
         PRAGMA integrity_check; SELECT count(*) FROM pragma_foreign_key_check;";
    let output = Command::new(sqlite3)
        .arg(outcome.file("_results.db"))
        .arg(query)
        .output()
        .expect("sqlite3 starts");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "800\n600\n405\n200\n800\n600\n800\n4\n800\nok\n0\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn database_views_have_the_columns_of_rocprofv3() {
    let outcome = Rpd::new(["--sys-trace"])
        .workload("vector-ops", ["2", "2"])
        .success();
    let database = outcome.database();
    for line in VIEWS.lines() {
        let (view, columns) = line.split_once(": ").expect("a view and its columns");
        let found = database.rows(&format!("SELECT name FROM pragma_table_info('{view}')"));
        let found: Vec<&str> = found.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(found.join(" "), columns, "{view}");
    }
}

#[test]
fn database_views_have_the_rows_of_the_run() {
    let outcome = Rpd::new(["--sys-trace"])
        .workload("vector-ops", ["2", "2"])
        .success();
    let database = outcome.database();
    let number = |query: &str| database.number(query);
    for (view, rows) in [
        ("processes", 1),
        ("threads", 3),
        ("samples", 4),
        ("sample_regions", 4),
        ("kernels", 16),
        ("memory_copies", 12),
        ("top_kernels", 4),
        ("pmc_events", 0),
        ("counters_collection", 0),
        ("scratch_memory", 0),
        ("stream_args", 0),
    ] {
        assert_eq!(
            number(&format!("SELECT count(*) FROM {view}")),
            rows,
            "{view}"
        );
    }
    assert!(number("SELECT count(*) FROM kernel_symbols") >= 4);
    assert!(number("SELECT count(*) FROM code_objects") >= 1);
    assert!(number("SELECT count(*) FROM memory_allocations") >= 12);
}

#[test]
fn database_views_agree_with_one_another() {
    let outcome = Rpd::new(["--sys-trace"])
        .workload("vector-ops", ["2", "2"])
        .success();
    let database = outcome.database();
    let number = |query: &str| database.number(query);
    assert_eq!(
        number("SELECT count(*) FROM regions_and_samples"),
        number("SELECT (SELECT count(*) FROM regions) + (SELECT count(*) FROM samples)")
    );
    assert_eq!(
        number("SELECT count(*) FROM regions"),
        number("SELECT count(*) FROM rocpd_region"),
        "no row falls out of the joins"
    );
    assert_eq!(
        number("SELECT count(*) FROM kernels WHERE duration <> end - start OR duration <= 0"),
        0
    );
    assert_eq!(
        number("SELECT count(*) FROM kernels WHERE grid_x <> 65536 OR workgroup_x <> 64"),
        0
    );
    assert_eq!(
        number("SELECT count(*) FROM memory_copies WHERE size <> 262144"),
        0
    );
    assert_eq!(
        number("SELECT sum(total_calls) FROM top"),
        number(
            "SELECT (SELECT count(*) FROM kernels) + (SELECT count(*) FROM memory_copies) + (SELECT count(*) FROM regions)"
        )
    );
    let percent: f64 = database.rows("SELECT sum(percentage) FROM top_kernels")[0][0]
        .parse()
        .expect("a number");
    assert!((percent - 100.0).abs() < 0.01, "{percent}");
    assert_eq!(
        number(
            "SELECT count(*) FROM busy WHERE GpuTime > WallTime * 16 OR Busy <= 0 OR GpuTime <= 0"
        ),
        0
    );
    assert_eq!(
        number("SELECT count(DISTINCT agent_type) FROM kernels WHERE agent_type = 'GPU'"),
        1
    );
}

#[test]
fn database_parents_enclose_their_children() {
    let outcome = Rpd::new(["--sys-trace"])
        .workload("vector-ops", ["3", "4"])
        .success();
    let database = outcome.database();
    let rows = database
        .rows("SELECT stack_id, parent_stack_id, tid, start, end, category, name FROM regions");
    let parse = |text: &String| text.parse::<u64>().expect("a number");
    // Ranges take part: a call within one descends from it.
    let calls: HashMap<u64, _> = rows
        .iter()
        .map(|row| {
            (
                parse(&row[0]),
                (parse(&row[2]), parse(&row[3]), parse(&row[4]), &row[6]),
            )
        })
        .collect();
    let mut nested = 0;
    for row in &rows {
        let (id, parent) = (parse(&row[0]), parse(&row[1]));
        if parent == 0 || parent == id {
            continue;
        }
        nested += 1;
        let (thread, start, end, name) = calls
            .get(&parent)
            .unwrap_or_else(|| panic!("{row:?}: no ancestor {parent}"));
        assert!(*start <= parse(&row[3]), "{row:?} begins before its {name}");
        if *thread == parse(&row[2]) {
            assert!(*end >= parse(&row[4]), "{row:?} ends after its {name}");
        }
    }
    assert!(nested > 50, "{nested} nested calls");
    for table in ["kernels", "memory_copies"] {
        for row in database.rows(&format!(
            "SELECT stack_id, parent_stack_id, start FROM {table}"
        )) {
            let id = parse(&row[0]);
            let (_, start, _, name) = calls
                .get(&id)
                .unwrap_or_else(|| panic!("{table}: no call {id}"));
            assert!(*start <= parse(&row[2]), "{table} {row:?} before {name}");
            assert!(calls.contains_key(&parse(&row[1])), "{table} {row:?}");
        }
    }
}

/// The arguments of the first call of `name`: type, name and value of each.
fn arguments(database: &rpd_tests::outputs::Database, name: &str) -> Vec<Vec<String>> {
    database.rows(&format!(
        "SELECT type, name, value FROM region_args WHERE id = \
         (SELECT min(id) FROM regions WHERE name = '{name}')"
    ))
}

#[test]
fn database_arguments_are_written_as_by_rocprofv3() {
    let outcome = Rpd::new(["--sys-trace"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let database = outcome.database();
    // Addresses differ from run to run.
    let masked = |name| -> String {
        let mask = |row: &Vec<String>| {
            let value = if row[2].starts_with("0x") {
                "0x"
            } else {
                &row[2]
            };
            format!("{} {}={value}; ", row[0], row[1])
        };
        arguments(&database, name).iter().map(mask).collect()
    };
    assert_eq!(
        masked("hipLaunchKernel"),
        "void const* function_address=0x; rocprofiler_dim3_t numBlocks={z=1, y=1, x=1024}; \
         rocprofiler_dim3_t dimBlocks={z=1, y=1, x=64}; void** args=0x; \
         unsigned long sharedMemBytes=0; ihipStream_t* stream=0x; "
    );
    assert_eq!(
        masked("hipMemcpyAsync"),
        "void* dst=0x; void const* src=0x; unsigned long sizeBytes=262144; \
         hipMemcpyKind kind=HostToDevice; ihipStream_t* stream=0x; "
    );
    assert_eq!(
        masked("hipStreamCreateWithFlags"),
        "ihipStream_t* stream=0x; unsigned int flags=1; "
    );
    let registration = masked("__hipRegisterFunction");
    assert!(
        registration.contains("char const* deviceName=_Z")
            && registration.contains("unsigned int threadLimit=4294967295; ")
            && registration.contains("HIP_vector_type<unsigned int, 3u>* tid=(null); ")
            && registration.contains("int* wSize=(null); "),
        "{registration}"
    );
    assert!(
        arguments(&database, "hsa_queue_create").is_empty(),
        "only on request"
    );
    let outcome = Rpd::new(["--sys-trace", "--annotate-args"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let database = outcome.database();
    assert!(!arguments(&database, "hsa_queue_create").is_empty());
    assert_eq!(
        arguments(&database, "hipLaunchKernel").len(),
        6,
        "of HIP calls as before"
    );
}

/// The rows of the table titled `domain` on standard error: name, calls, duration.
fn printed(stderr: &str, domain: &str) -> BTreeMap<String, (u64, u64)> {
    stderr
        .lines()
        .skip_while(|line| !line.contains(&format!("RPD {domain} SUMMARY")))
        .skip(1)
        .skip_while(|line| !line.contains("---|"))
        .skip(1)
        .take_while(|line| line.contains('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let number = |cell: &str| cell.parse().expect("a number");
            (cells[1].to_owned(), (number(cells[3]), number(cells[4])))
        })
        .collect()
}

#[test]
fn statistics_agree_in_summary_csv_and_database() {
    let outcome = Rpd::new(["--sys-trace", "--stats", "-f", "csv", "rocpd"])
        .workload("vector-ops", ["2", "3"])
        .success();
    for (domain, file) in [
        ("KERNEL_DISPATCH", "kernel_stats"),
        ("HIP_API", "hip_api_stats"),
        ("HSA_API", "hsa_api_stats"),
        ("MEMORY_COPY", "memory_copy_stats"),
        ("MARKER_API", "marker_api_stats"),
        ("MEMORY_ALLOCATION", "memory_allocation_stats"),
    ] {
        let table = outcome.csv(file);
        let figures = table
            .numbers("Calls")
            .into_iter()
            .zip(table.numbers("TotalDurationNs"));
        let written: BTreeMap<String, (u64, u64)> = table
            .column("Name")
            .into_iter()
            .map(str::to_owned)
            .zip(figures)
            .collect();
        assert!(!written.is_empty(), "{file}");
        assert_eq!(printed(&outcome.stderr, domain), written, "{domain}");
    }
    let view: BTreeMap<String, u64> = outcome
        .database()
        .rows("SELECT name, sum(duration) FROM kernels GROUP BY name")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].parse().expect("a number")))
        .collect();
    let stats = outcome.csv("kernel_stats");
    let written: BTreeMap<String, u64> = stats
        .column("Name")
        .into_iter()
        .map(str::to_owned)
        .zip(stats.numbers("TotalDurationNs"))
        .collect();
    assert_eq!(view, written);
}

#[test]
fn database_of_a_ctypes_program_has_its_calls() {
    let Some(python) = tool("python3") else {
        return skipped("a Python script", "no python3");
    };
    let script = workloads::path("ctypes-hip.py");
    let outcome = Rpd::new(["--sys-trace"])
        .target([python.as_os_str(), script.as_os_str()])
        .success();
    assert_eq!(outcome.stdout, "ok\n");
    let database = outcome.database();
    assert!(database.number("SELECT count(*) FROM regions WHERE category LIKE 'HIP%'") > 0);
    assert!(
        database.number("SELECT count(*) FROM regions_and_samples WHERE category LIKE 'MARKER%'")
            > 0
    );
}

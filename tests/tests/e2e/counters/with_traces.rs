//! Counters and traces of one run agree, in every format.

use std::collections::BTreeMap;

use rpd_tests::run::{Outcome, Rpd, has_otf2};
use serde_json::Value;

use super::{VECTOR_OPS, json, rows, values};

/// The fields that identify a dispatch in both arrays of the JSON output.
fn identity(dispatch: &Value, data: &Value) -> [Option<u64>; 8] {
    let info = &data["dispatch_info"];
    [
        info["dispatch_id"].as_u64(),
        dispatch["thread_id"].as_u64(),
        dispatch["stream_id"]["handle"].as_u64(),
        data["start_timestamp"].as_u64(),
        data["end_timestamp"].as_u64(),
        data["correlation_id"]["internal"].as_u64(),
        data["correlation_id"]["external"].as_u64(),
        info["kernel_id"].as_u64(),
    ]
}

fn array<'a>(value: &'a Value, what: &str) -> &'a [Value] {
    value.as_array().unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn counted_and_traced_dispatches_agree() {
    for extra in [&[][..], &["--kernel-rename"]] {
        let options = ["--pmc", "SQ_WAVES", "--sys-trace", "-f", "csv", "json"];
        let outcome = Rpd::new(options.iter().chain(extra))
            .workload("vector-ops", ["2", "2"])
            .success();
        let json = json(&outcome);
        let mut counted: Vec<_> =
            array(&json["callback_records"]["counter_collection"], "counters")
                .iter()
                .map(|dispatch| identity(dispatch, &dispatch["dispatch_data"]))
                .collect();
        let mut traced: Vec<_> = array(&json["buffer_records"]["kernel_dispatch"], "trace")
            .iter()
            .map(|dispatch| identity(dispatch, dispatch))
            .collect();
        counted.sort();
        traced.sort();
        assert_eq!(counted.len(), 16, "{extra:?}");
        assert!(counted.iter().flatten().all(Option::is_some), "{counted:?}");
        assert_eq!(counted, traced, "{extra:?}");
        assert_eq!(
            traced.iter().any(|dispatch| dispatch[6] != Some(0)),
            !extra.is_empty(),
            "renamed kernels have an external id: {traced:?}"
        );

        let trace = outcome.csv("kernel_trace");
        let in_trace: BTreeMap<u64, (u64, u64, String)> = trace
            .numbers("Dispatch_Id")
            .into_iter()
            .zip(trace.numbers("Start_Timestamp"))
            .zip(trace.numbers("End_Timestamp"))
            .zip(trace.column("Kernel_Name"))
            .map(|(((id, start), end), name)| (id, (start, end, name.to_owned())))
            .collect();
        for row in rows(&outcome) {
            assert_eq!(
                in_trace[&row.dispatch],
                (row.start, row.end, row.kernel.clone()),
                "{row:?}"
            );
            let renamed = row.kernel == "iteration";
            assert_eq!(renamed, !extra.is_empty(), "{row:?}");
        }
        let counters = outcome.csv("counter_collection");
        for column in ["Correlation_Id", "Queue_Id", "Thread_Id", "Kernel_Id"] {
            let of = |table: &rpd_tests::outputs::Table| -> BTreeMap<u64, u64> {
                let ids = table.numbers("Dispatch_Id").into_iter();
                ids.zip(table.numbers(column)).collect()
            };
            assert_eq!(of(&counters), of(&trace), "{column}");
        }
    }
}

const ALL: [&str; 6] = ["csv", "json", "pftrace", "rocpd", "parquet", "html"];

/// `rpd --pmc SQ_WAVES FETCH_SIZE <options> -f <all formats> -o x -- vector-ops 1 2`, where `-f otf2` is skipped without its
/// library.
fn all_formats(options: &[&str]) -> Outcome {
    let counters = ["--pmc", "SQ_WAVES", "FETCH_SIZE"];
    let formats = ["-o", "x", "-f"].iter().chain(&ALL);
    let otf2 = has_otf2("counters in OTF2 archives").then_some(&"otf2");
    Rpd::new(counters.iter().chain(options).chain(formats).chain(otf2))
        .workload("vector-ops", ["1", "2"])
        .success()
}

#[test]
fn counters_are_in_every_format_with_and_without_traces() {
    for options in [&[][..], &["--sys-trace"]] {
        let outcome = all_formats(options);
        let files = outcome.files();
        for name in [
            "x_counter_collection.csv",
            "x_results.json",
            "x_results.pftrace",
            "x_results.db",
            "x_report.html",
        ] {
            assert!(files.contains(&name.to_owned()), "{name} of {files:?}");
        }
        let has_archive = files.contains(&"x_results.otf2".to_owned());
        assert_eq!(has_archive, has_otf2("counters in OTF2 archives"));
        assert!(
            files
                .iter()
                .any(|name| name.ends_with(".parquet") && name.contains("counter")),
            "{files:?}"
        );
        let page = std::fs::read_to_string(outcome.file(".html")).expect("a page");
        assert!(page.contains("FETCH_SIZE"), "the page has the counters");
        let track = std::fs::read(outcome.file(".pftrace")).expect("a trace");
        for name in [&b"PMC SQ_WAVES"[..], b"PMC FETCH_SIZE"] {
            assert!(
                track.windows(name.len()).any(|window| window == name),
                "a track for each counter"
            );
        }
    }
}

#[test]
fn database_counters_equal_csv_counters() {
    let outcome = all_formats(&["--sys-trace"]);
    let database = outcome.database();
    let query = "SELECT dispatch_id, kernel_name, counter_name, value, start, end \
                 FROM counters_collection ORDER BY dispatch_id, counter_name";
    let in_database: Vec<(u64, String, String, f64, u64, u64)> = database
        .rows(query)
        .into_iter()
        .map(|row| {
            let number = |column: usize| row[column].parse::<u64>().expect("a number");
            (
                number(0),
                row[1].clone(),
                row[2].clone(),
                row[3].parse().expect("a value"),
                number(4),
                number(5),
            )
        })
        .collect();
    let mut in_csv: Vec<_> = rows(&outcome)
        .into_iter()
        .map(|row| {
            (
                row.dispatch,
                row.kernel,
                row.counter,
                row.value,
                row.start,
                row.end,
            )
        })
        .collect();
    in_csv.sort_by(|left, right| (left.0, &left.2).cmp(&(right.0, &right.2)));
    assert_eq!(in_csv.len(), 16);
    assert_eq!(in_database, in_csv);

    assert_eq!(
        database.rows("SELECT name, is_derived, block FROM pmc_info ORDER BY name"),
        [["FETCH_SIZE", "1", "NULL"], ["SQ_WAVES", "0", "SQ"]]
            .map(|row| row.map(|text| if text == "NULL" { "" } else { text })),
    );
    let per_kernel = "SELECT name, sum(counter_value) FROM pmc_events WHERE counter_name = 'SQ_WAVES' GROUP BY name";
    let mut expected = VECTOR_OPS.map(|name| vec![name.to_owned(), "2048".to_owned()]);
    expected.sort();
    assert_eq!(database.rows(per_kernel), expected);
    assert_eq!(
        database.number(
            "SELECT count(*) FROM pmc_events JOIN kernels USING (dispatch_id) \
             WHERE pmc_events.start <> kernels.start OR pmc_events.end <> kernels.end"
        ),
        0
    );
    assert_eq!(
        database.number("SELECT count(*) FROM kernels"),
        8,
        "none twice"
    );
    assert_eq!(database.rows("PRAGMA integrity_check"), [["ok"]]);
    assert_eq!(
        database.number("SELECT count(*) FROM pragma_foreign_key_check"),
        0
    );
}

#[test]
fn counters_without_traces_make_kernels_in_the_database() {
    let outcome = Rpd::new(["--pmc", "SQ_WAVES", "-o", "x"])
        .workload("vector-ops", ["1", "1"])
        .success();
    let database = outcome.database();
    assert_eq!(database.number("SELECT count(*) FROM kernels"), 4);
    assert_eq!(
        database.number("SELECT count(*) FROM counters_collection"),
        4
    );
    assert_eq!(
        database.number("SELECT count(*) FROM regions"),
        0,
        "nothing else is traced"
    );
}

#[test]
fn counted_kernels_are_renamed_after_their_region() {
    let options = [
        "--pmc",
        "SQ_WAVES",
        "--marker-trace",
        "--kernel-rename",
        "-f",
        "csv",
    ];
    let outcome = Rpd::new(options)
        .workload("vector-ops", ["1", "1"])
        .success();
    let rows = rows(&outcome);
    assert_eq!(values(&rows, "SQ_WAVES"), [1024.0; 4]);
    assert!(rows.iter().all(|row| row.kernel == "iteration"), "{rows:?}");
}

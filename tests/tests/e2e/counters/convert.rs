//! The files that `rpd convert` writes from a database are equal to those of the run itself.

use rpd_tests::outputs::Table;
use rpd_tests::run::Rpd;

use super::{Row, json_of, rows_of};

#[test]
fn converted_databases_have_the_recorded_counters() {
    let options = [
        "--pmc",
        "SQ_WAVES",
        "TCC_HIT",
        "FETCH_SIZE",
        "--kernel-trace",
    ];
    let formats = ["-o", "x", "-f", "csv", "json", "rocpd"];
    let outcome = Rpd::new(options.iter().chain(&formats))
        .workload("vector-ops", ["1", "2"])
        .success();
    let target = outcome.directory.path().join("again");
    let database = outcome.file("_results.db");
    let converted = Rpd::plain([
        "convert".as_ref(),
        "-i".as_ref(),
        database.as_os_str(),
        "-d".as_ref(),
        target.as_os_str(),
        "-o".as_ref(),
        "x".as_ref(),
        "-f".as_ref(),
        "csv,json".as_ref(),
    ])
    .run()
    .success();
    assert_eq!(converted.stdout, "");
    let sorted = |path: &std::path::Path| {
        let mut rows: Vec<Row> = rows_of(&Table::read(path));
        rows.sort_by(|left, right| {
            (left.dispatch, &left.counter).cmp(&(right.dispatch, &right.counter))
        });
        rows
    };
    let first = sorted(&outcome.file("x_counter_collection.csv"));
    assert_eq!(first.len(), 24);
    assert_eq!(sorted(&target.join("x_counter_collection.csv")), first);
    assert_eq!(
        Table::read(&target.join("x_counter_collection.csv")).columns,
        Table::read(&outcome.file("x_counter_collection.csv")).columns
    );

    // Per instance: as many values, and the same ones.
    let instances = |path: &std::path::Path| {
        let json = json_of(path);
        let dispatches = json["callback_records"]["counter_collection"].as_array();
        let mut records: Vec<(u64, Vec<u64>)> = dispatches
            .expect("counted dispatches")
            .iter()
            .map(|dispatch| {
                let id = &dispatch["dispatch_data"]["dispatch_info"]["dispatch_id"];
                let values = dispatch["records"].as_array().expect("records").iter();
                let mut values: Vec<u64> = values
                    .map(|record| record["value"].as_f64().expect("a value").to_bits())
                    .collect();
                values.sort_unstable();
                (id.as_u64().expect("an id"), values)
            })
            .collect();
        records.sort();
        records
    };
    let direct = instances(&outcome.file("x_results.json"));
    assert_eq!(
        direct[0].1.len(),
        8 + 32 + 1,
        "instances of the three counters"
    );
    assert_eq!(instances(&target.join("x_results.json")), direct);
}

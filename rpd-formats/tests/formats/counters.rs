//! Counters in every format: against the files that the original wrote, and through our own database and back.

mod databases;

use crate::support::write as written;

use crate::support::python as script;

use std::path::{Path, PathBuf};

use rpd_core::ids::{AgentHandle, CounterId};
use rpd_core::naming::Target;
use rpd_core::options::{AgentIndex, Format, KernelNames, Options};
use rpd_core::session::{
    Counter, CounterDimension, CounterInstance, CounterValue, LoadOptions, Region, Session,
    ValueRange,
};
use rpd_formats::csv;
use rpd_formats::rocpd::read::Database;
use rusqlite::Connection;
use script::python;
use serde_json::Value;
use written::{lacks_library, write, write_one};

const TESTDATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata");

fn golden(name: &str) -> PathBuf {
    Path::new(TESTDATA).join(name)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sessions(path: &Path) -> Vec<Session> {
    let database = Database::open(path).expect("a database");
    database
        .recordings()
        .iter()
        .map(|recording| {
            let read = database.session(
                recording,
                LoadOptions {
                    args: true,
                    ..LoadOptions::default()
                },
            );
            read.expect("a session").0
        })
        .collect()
}

fn session(path: &Path) -> Session {
    let mut all = sessions(path);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn target(directory: &Path) -> Target {
    Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    }
}

fn process(json: &str) -> Value {
    let root: Value = serde_json::from_str(json).expect("JSON");
    root["rocprofiler-sdk-tool"][0].clone()
}

fn json(session: &Session, directory: &Path) -> Value {
    let path = write_one(
        Format::Json,
        session,
        None,
        &Options::default(),
        &target(directory),
    )
    .expect("written")
    .expect("a file");
    process(&text(&path))
}

fn database(session: &Session, directory: &Path) -> PathBuf {
    write_one(
        Format::Rocpd,
        session,
        None,
        &Options::default(),
        &target(directory),
    )
    .expect("written")
    .expect("a file")
}

/// The golden run with counters alone, as the collector would have it: no dispatch was traced, and dimensions and
/// instances, which the original keeps out of its database, come from its JSON.
fn counted() -> Session {
    let mut session = session(&golden("counters/trace_results.db"));
    session.dispatches = Default::default();
    let json = process(&text(&golden("counters/trace_results.json")));
    let number = |value: &Value| value.as_u64().expect("a number");
    let word = |value: &Value| value.as_str().expect("a text").to_owned();
    let counters = json["counters"].as_array().expect("counters").iter();
    session.counters = counters
        .map(|counter| {
            let dimensions: Vec<CounterDimension> = counter["dimensions"]
                .as_array()
                .expect("dimensions")
                .iter()
                .map(|dimension| CounterDimension {
                    id: number(&dimension["id"]),
                    size: number(&dimension["instance_size"]),
                    name: word(&dimension["name"]),
                })
                .collect();
            let position = |position: &Value| {
                let name = word(&position["dimension_name"]);
                let dimension = dimensions.iter().find(|known| known.name == name);
                (
                    dimension.expect("a dimension").id,
                    number(&position["index"]),
                )
            };
            let instances = counter["instances"].as_array().expect("instances").iter();
            Counter {
                id: CounterId(number(&counter["id"]["handle"])),
                agent: AgentHandle(number(&counter["agent_id"]["handle"])),
                name: word(&counter["name"]),
                description: word(&counter["description"]),
                block: word(&counter["block"]),
                expression: word(&counter["expression"]),
                is_constant: number(&counter["is_constant"]) != 0,
                is_derived: number(&counter["is_derived"]) != 0,
                instances: instances
                    .map(|instance| CounterInstance {
                        id: number(&instance["instance_id"]),
                        positions: instance["dimensions"]
                            .as_array()
                            .expect("positions")
                            .iter()
                            .map(position)
                            .collect(),
                    })
                    .collect(),
                dimensions,
            }
        })
        .collect();
    session
}

#[test]
fn csv_of_counters_has_the_rows_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = target(directory.path());
    let files =
        write(Format::Csv, &counted(), None, &Options::default(), &target).expect("written");
    // The kernel trace was not requested.
    let names: Vec<_> = files
        .iter()
        .filter_map(|file| file.file_name()?.to_str())
        .collect();
    assert_eq!(
        names,
        ["trace_counter_collection.csv", "trace_agent_info.csv"]
    );
    let golden = golden("counters/trace_counter_collection.csv");
    assert_eq!(text(&files[0]), text(&golden));
}

#[test]
fn csv_of_counters_and_trace_has_the_rows_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = session(&golden("counters-plus-trace/trace_results.db"));
    let target = target(directory.path());
    write(Format::Csv, &session, None, &Options::default(), &target).expect("written");
    for name in ["trace_counter_collection.csv", "trace_kernel_trace.csv"] {
        let golden = golden("counters-plus-trace").join(name);
        assert_eq!(text(&target.directory.join(name)), text(&golden), "{name}");
    }
}

#[test]
fn csv_of_counters_names_kernels_and_agents_as_requested() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut session = counted();
    let message = session.strings.intern("a \"phase\"");
    session.regions.push(Region {
        message,
        correlation: rpd_core::ids::CorrelationId(77),
    });
    session.counted.dispatches.region[1] = 1;
    let options = Options {
        agent_index: AgentIndex::TypeRelative,
        kernel_names: KernelNames {
            truncate: true,
            rename: true,
            ..KernelNames::default()
        },
        ..Options::default()
    };
    let target = target(directory.path());
    let files = write(Format::Csv, &session, None, &options, &target).expect("written");
    let rows = text(&files[0]);
    let rows: Vec<&str> = rows.lines().collect();
    assert!(rows[1].starts_with("1,1,\"GPU 0\",1,"), "{}", rows[1]);
    assert!(rows[1].contains(",\"addition_kernel\","), "{}", rows[1]);
    assert!(rows[5].contains(",\"a \"\"phase\"\"\","), "{}", rows[5]);
    let json = write_one(Format::Json, &session, None, &options, &target)
        .expect("written")
        .expect("a file");
    let json = process(&text(&json));
    let records = &json["callback_records"]["counter_collection"];
    let external = |index: usize| &records[index]["dispatch_data"]["correlation_id"]["external"];
    assert_eq!((external(0), external(1)), (&0.into(), &77.into()));
}

/// Removes keys that the guide lists and the original does not write.
fn without_our_keys(mut json: Value) -> Value {
    let remove = |values: &mut Value, keys: &[&str]| {
        for value in values.as_array_mut().expect("an array") {
            for key in keys {
                let removed = value.as_object_mut().expect("an object").remove(*key);
                assert!(removed.is_some(), "{key}");
            }
        }
    };
    remove(&mut json["counters"], &["dimension_ids"]);
    let registers = [
        "arch_vgpr_count",
        "accum_vgpr_count",
        "sgpr_count",
        "lds_block_size_v",
    ];
    remove(
        &mut json["callback_records"]["counter_collection"],
        &registers,
    );
    json
}

#[test]
fn json_of_counters_equals_that_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let golden = process(&text(&golden("counters/trace_results.json")));
    let ours = json(&counted(), directory.path());
    assert_eq!(
        ours["counters"][2]["dimension_ids"],
        serde_json::json!([7, 3])
    );
    let ours = without_our_keys(ours);
    for key in ["counters", "callback_records", "buffer_records", "summary"] {
        assert_eq!(ours[key], golden[key], "{key}");
    }
    assert_eq!(ours["strings"]["counters"], golden["strings"]["counters"]);
}

/// All rows of a query, without the columns that differ from run to run.
fn rows(path: &Path, sql: &str) -> Vec<Vec<rusqlite::types::Value>> {
    let connection = Connection::open(path).expect("a database");
    let mut statement = connection.prepare(sql).expect(sql);
    let columns = statement.column_count();
    let rows = statement
        .query_map([], |row| {
            (0..columns).map(|column| row.get(column)).collect()
        })
        .expect(sql);
    rows.collect::<Result<_, _>>().expect(sql)
}

#[test]
fn converted_csv_of_counters_has_the_shape_of_the_converter() {
    let directory = tempfile::tempdir().expect("a directory");
    let session = session(&golden("counters/trace_results.db"));
    let files = csv::write_combined(
        std::slice::from_ref(&session),
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written");
    let path = files
        .iter()
        .find(|file| file.ends_with("trace_counter_collection.csv"));
    let ours = text(path.expect("a file"));
    let golden = text(&golden("counters/trace_counter_collection.csv"));
    for (index, (ours, golden)) in ours.lines().zip(golden.lines()).enumerate() {
        let parts: Vec<&str> = golden.rsplitn(4, ',').collect();
        let expected = match parts[..] {
            [end, start, value, rest] if index > 0 => {
                let value: f64 = value.parse().expect("a number");
                format!("4391,{rest},{value},{start},{end}")
            }
            _ => format!("\"Pid\",{golden}"),
        };
        assert_eq!(ours, expected);
    }
    assert_eq!(ours.lines().count(), golden.lines().count());
}

fn trace(session: &Session, directory: &Path) -> PathBuf {
    write_one(
        Format::Pftrace,
        session,
        None,
        &Options::default(),
        &target(directory),
    )
    .expect("written")
    .expect("a file")
}

const PERFETTO: &str = "perfetto, google.protobuf";

#[test]
fn counter_tracks_have_the_points_of_the_original() {
    let directory = tempfile::tempdir().expect("a directory");
    let ours = trace(&counted(), directory.path());
    let golden = golden("counters/trace_results.pftrace");
    let points = [&ours, &golden].map(|path| {
        let points = python(PERFETTO, "perfetto_points.py", &[path])?;
        Some(serde_json::from_str::<Value>(&points).expect("JSON"))
    });
    let [Some(ours), Some(golden)] = points else {
        return;
    };
    assert_eq!(golden.as_object().map(|tracks| tracks.len()), Some(4));
    assert_eq!(ours, golden);
}

#[test]
fn slices_of_counted_dispatches_show_the_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut session = session(&golden("counters-plus-trace/trace_results.db"));
    // Beside a ratio, and a counter that is called as an annotation of ours.
    let mut ratio = session.counters[0].clone();
    ratio.id = CounterId(5000);
    ratio.name = "queue".to_owned();
    session.counters.push(ratio);
    let first = session.counted.values.len() as u64;
    let count = session.counted.ranges[0].count + 1;
    let mut values = session.counted.values_of(0).to_vec();
    values.push(CounterValue {
        counter: 1,
        instance: 0,
        value: 0.25,
    });
    session.counted.values.extend(values);
    session.counted.ranges[0] = ValueRange { first, count };
    // Without calls, so that the first slice is a dispatch.
    session.calls = Default::default();
    let path = trace(&session, directory.path());
    let json = write_one(
        Format::Json,
        &session,
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written")
    .expect("a file");
    let Some(found) = python(PERFETTO, "perfetto_check.py", &[&path, &json]) else {
        return;
    };
    let found: Value = serde_json::from_str(&found).expect("JSON");
    assert_eq!(found["categories"]["kernel_dispatch"], 4);
    let tracks = found["counters"].as_object().expect("tracks");
    let waves = tracks["Agent [1] PMC SQ_WAVES"].as_array().expect("points");
    assert!(waves.iter().any(|point| point[1] == 12440));
    let ratio = tracks["Agent [1] PMC queue"].as_array().expect("points");
    assert!(ratio.iter().any(|point| point[1] == 0.25));
    let slices = found["kernels"].as_array().expect("slices");
    assert_eq!(slices[0]["SQ_WAVES"], 12428.0);
    assert_eq!(slices[0]["queue (argument)"], 0.25);
    assert_eq!(slices[3]["SQ_WAVES"], 12440.0);
}

#[test]
fn parquet_has_sums_and_values_of_counters_with_their_dimensions() {
    if lacks_library(Format::Parquet) {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let files = write(
        Format::Parquet,
        &counted(),
        None,
        &Options::default(),
        &target(directory.path()),
    )
    .expect("written");
    let names: Vec<_> = files
        .iter()
        .filter_map(|file| file.file_name()?.to_str())
        .collect();
    assert_eq!(
        names,
        [
            "trace_counters_collection.parquet",
            "trace_pmc_events.parquet",
            "trace_processes.parquet",
            "trace_agents.parquet",
            "trace_code_objects.parquet",
            "trace_kernel_symbols.parquet",
            "trace_pmc_info.parquet",
        ]
    );
    let Some(found) = python("duckdb", "parquet_counters.py", &[directory.path()]) else {
        return;
    };
    let found: Value = serde_json::from_str(&found).expect("JSON");
    let copy = directory.path().join("golden.db");
    std::fs::copy(golden("counters/trace_results.db"), &copy).expect("a copy");
    let json = |sql: &str| {
        use rusqlite::types::Value as Cell;
        let cell = |cell: Cell| match cell {
            Cell::Integer(number) => Value::from(number),
            Cell::Real(number) => Value::from(number),
            Cell::Text(text) => Value::from(text),
            other => panic!("{other:?}"),
        };
        let rows = rows(&copy, sql).into_iter();
        rows.map(|row| row.into_iter().map(cell).collect())
            .collect::<Vec<Value>>()
    };
    let sums = "SELECT dispatch_id, counter_name, value, kernel_name, agent_log_index, queue_id, grid_size,
        workgroup_size, vgpr_count, start, \"end\", stack_id, counter_id FROM counters_collection
        ORDER BY dispatch_id, counter_id";
    assert_eq!(found["sums"], Value::from(json(sums)));
    let info = "SELECT id, name, block, expression, is_derived FROM pmc_info ORDER BY id";
    assert_eq!(found["info"], Value::from(json(info)));
    assert_eq!(found["added"], serde_json::json!([[32]]));
    let values = found["values"].as_array().expect("rows");
    assert_eq!(
        values[0],
        serde_json::json!([2, "FETCH_SIZE", 1164.375, null, 0])
    );
    assert_eq!(values[4][3], 2);
    assert_eq!(values.len(), 11);
}

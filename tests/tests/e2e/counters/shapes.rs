//! Shapes of outputs against those of a run of the original with the same counters.

use std::collections::BTreeSet;

use rpd_tests::run::Rpd;
use serde_json::Value;

use super::json;

/// Path and type of every value about counters in the original's JSON.
const KEYS: &str = include_str!("../../../golden/counters-json-keys.txt");

/// Adds the places below `value` in the form of [`KEYS`].
fn places(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    let leaf = match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{path}.{key}"), found);
            }
            return;
        }
        Value::Array(items) => {
            for item in items {
                places(item, &format!("{path}[]"), found);
            }
            return;
        }
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    found.insert(format!("{path} {leaf}"));
}

#[test]
fn counter_json_has_every_key_of_rocprofv3() {
    let counters = [
        "--pmc",
        "SQ_WAVES",
        "GRBM_COUNT",
        "TCC_HIT_sum",
        "FETCH_SIZE",
    ];
    let outcome = Rpd::new(counters.iter().chain(&["-f", "json", "-o", "trace"]))
        .workload("vector-ops", ["1", "2"])
        .success();
    assert_eq!(outcome.files(), ["trace_results.json"]);
    let json = json(&outcome);
    let mut found = BTreeSet::new();
    places(&json["counters"], "counters", &mut found);
    places(&json["callback_records"], "callback_records", &mut found);
    places(&json["strings"]["counters"], "strings.counters", &mut found);
    let missing: Vec<&str> = KEYS.lines().filter(|key| !found.contains(*key)).collect();
    assert!(missing.is_empty(), "{missing:#?}\nfound {found:#?}");

    // Instances of the four counters: per shader engine, and one each.
    let counted = json["callback_records"]["counter_collection"].as_array();
    let counted = counted.expect("counted dispatches");
    assert_eq!(counted.len(), 8);
    for dispatch in counted {
        assert_eq!(dispatch["records"].as_array().map(Vec::len), Some(8 + 3));
    }
    // Every instance is described, once, by its dimensions.
    let described = json["counters"].as_array().expect("counters").iter();
    let waves: Vec<&Value> = described.filter(|one| one["name"] == "SQ_WAVES").collect();
    assert_eq!(waves.len(), 1, "one GPU");
    let instances = waves[0]["instances"].as_array().expect("instances");
    let ids: BTreeSet<u64> = instances
        .iter()
        .filter_map(|instance| instance["instance_id"].as_u64())
        .collect();
    assert_eq!(ids.len(), 8);
    let engines: BTreeSet<u64> = instances
        .iter()
        .flat_map(|instance| instance["dimensions"].as_array().expect("dimensions"))
        .filter(|dimension| dimension["dimension_name"] == "DIMENSION_SHADER_ENGINE")
        .filter_map(|dimension| dimension["index"].as_u64())
        .collect();
    assert!(engines.into_iter().eq(0..8));
}

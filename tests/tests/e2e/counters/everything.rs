//! All counters that the device has, in as few passes as they need.

use std::collections::BTreeMap;

use rpd_tests::outputs::Table;
use rpd_tests::run::Rpd;
use serde_json::Value;

/// Names of the counters that can be collected.
fn available() -> Vec<String> {
    let outcome = Rpd::plain(["avail", "--backend", "sim", "--json", "info", "--pmc"])
        .run()
        .success();
    let all: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let counters = all["gpus"][0]["counters"].as_array().expect("counters");
    counters
        .iter()
        .filter(|counter| counter["available"] == true && counter["constant"] == false)
        .map(|counter| counter["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn every_available_counter_has_a_value_for_every_dispatch() {
    let names = available();
    assert!(names.len() > 250, "{} counters", names.len());
    let auto = format!("auto:{}", names.join(","));
    let outcome = Rpd::new(["--pmc", &auto, "-f", "csv", "-o", "x"])
        .workload("transpose", [""; 0])
        .success();
    let table = Table::read(&outcome.file("x_passes.csv"));
    let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let all = table.column("Counter_Name").into_iter();
    for (counter, value) in all.zip(table.column("Counter_Value")) {
        let value: f64 = value.parse().expect("a number");
        assert!(value.is_finite() && value >= 0.0, "{counter} is {value}");
        values.entry(counter.to_owned()).or_default().push(value);
    }
    // Rows stand in one order of dispatches, so values of two counters can be compared one by one.
    let mut sums = 0;
    for name in &names {
        let found = values.get(name).map_or(0, Vec::len);
        assert_eq!(found, 4, "{name}: three launches and a fill");
        if let Some(of) = name.strip_suffix("_sum").and_then(|of| values.get(of)) {
            assert_eq!(values[name], *of, "{name}");
            sums += 1;
        }
    }
    assert!(sums > 50, "{sums} sums were compared");
    for (whole, parts) in [
        ("SQ_WAVES", &["SQ_WAVES_EQ_64", "SQ_WAVES_LT_64"][..]),
        ("SQ_INSTS_VMEM", &["SQ_INSTS_VMEM_RD", "SQ_INSTS_VMEM_WR"]),
        ("TCC_REQ", &["TCC_HIT", "TCC_MISS"]),
    ] {
        for (dispatch, found) in values[whole].iter().enumerate() {
            let sum: f64 = parts.iter().map(|part| values[*part][dispatch]).sum();
            assert_eq!(*found, sum, "{whole}");
        }
    }
}

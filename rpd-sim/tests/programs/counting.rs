//! Counting services of the simulated provider, driven through the ABI as a tool does.
//!
//! `counting.c` is tool and program in one; its output is compared with a snapshot.

use crate::common;

use std::{collections::HashMap, path::Path};

fn output_of(name: &str, gpus: &str) -> (String, String) {
    let libraries = ["-lrocprofiler-sdk", "-lamdhip64"];
    let (directory, program) = common::build(name, "counting.c", &["-rdynamic"], &libraries);
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rpd-gfx/testdata/kernels-O3.co");
    let module = module.to_str().expect("a path");
    common::run_loudly(&directory, &program, &[module], &[("RPD_SIM_GPUS", gpus)])
}

#[test]
fn the_counting_services_answer_as_the_reference_says() {
    let (said, complaints) = output_of("counting", "1");
    // Numbers of instructions are the compiler's affair; what they have to do with each other is not.
    let mut values: HashMap<&str, f64> = HashMap::new();
    let mut ours = Vec::new();
    for line in said.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [
            name @ ("SQ_INSTS_VALU" | "SQ_WAVES" | "VALUInsts" | "MINE" | "TWICE"),
            value,
            "in",
            ..,
        ] = words[..]
        {
            values.insert(name, value.parse().expect("a number"));
        }
        if !line.starts_with("  SQ_INSTS_VALU ") && !line.starts_with("  VALUInsts ") {
            ours.push(line);
        }
        if line.starts_with("  CU_NUM ") && values.contains_key("MINE") {
            let ratio = values["SQ_INSTS_VALU"] / values["SQ_WAVES"];
            assert!(
                ratio > 10.0 && (values["VALUInsts"] / ratio - 1.0).abs() < 1e-4,
                "{values:?}"
            );
            assert_eq!(values["TWICE"], 2.0 * values["SQ_WAVES"]);
            assert_eq!(values["MINE"], 64.0 * values["TWICE"]);
        }
    }
    insta::assert_snapshot!("counting", ours.join("\n"));
    let complaints: Vec<&str> = complaints.lines().collect();
    assert_eq!(
        complaints,
        [
            "rpd-sim: counter definitions: X: there is no counter `NO_SUCH`",
            "rpd-sim: counter YOURS: column 3: expected a number, a counter or `(`, found the end",
            "rpd-sim: counter YOURS: YOURS: `YOURS` refers to itself",
        ]
    );
}

#[test]
fn every_gpu_has_counters_of_its_own() {
    let (said, _) = output_of("counting-two", "2");
    let own = "rocprofiler_create_counter_config(agent[0], list, 1, &merged) 20\n\
               rocprofiler_create_counter_config(agent[1], list, 1, &merged) 0\n";
    assert!(said.contains(own), "{said}");
}

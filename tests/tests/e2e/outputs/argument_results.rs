//! Arguments through which calls return something.

use rpd_tests::run::{Outcome, Rpd};

/// Function, argument, type and value of every recorded argument.
fn arguments(outcome: &Outcome) -> Vec<[String; 4]> {
    let rows = outcome.database().rows(
        "SELECT r.name, a.name, a.type, a.value FROM region_args a JOIN regions r ON r.id = a.id ORDER BY r.start, a.name",
    );
    let row = |row: Vec<String>| <[String; 4]>::try_from(row).expect("four columns");
    rows.into_iter().map(row).collect()
}

/// Types and values of an argument in the calls of a function, in their order.
fn of<'a>(found: &'a [[String; 4]], function: &str, name: &str) -> Vec<(&'a str, &'a str)> {
    let wanted = found
        .iter()
        .filter(|row| row[0] == function && row[1] == name);
    wanted
        .map(|row| (row[2].as_str(), row[3].as_str()))
        .collect()
}

#[test]
fn output_arguments_have_the_value_that_the_call_returned() {
    for provider in ["sdk", "direct"] {
        let outcome = Rpd::new([
            "--hip-trace",
            "--provider",
            provider,
            "-f",
            "rocpd",
            "json",
            "pftrace",
        ])
        .workload("results", [""; 0])
        .success();
        let found = arguments(&outcome);
        let json = std::fs::read_to_string(outcome.file("_results.json")).expect("JSON");
        let mut failed = "";
        for line in outcome.stdout.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [function, name, value] = words[..] else {
                failed = words[1];
                continue;
            };
            let values = of(&found, function, name);
            assert_eq!(
                values[0].1, value,
                "{provider}: {function} {name}: {values:?}"
            );
            let text = format!("\"name\":\"{name}\",\"value\":\"{value}\"");
            assert!(json.contains(&text), "{provider}: no {text} in JSON");
        }
        let of = |function, name| of(&found, function, name);
        let types = |function, name| of(function, name)[0].0;
        assert_eq!(types("hipMalloc", "ptr"), "void*", "{provider}");
        assert_eq!(types("hipMallocPitch", "pitch"), "unsigned long");
        assert_eq!(types("hipStreamCreate", "stream"), "ihipStream_t*");
        // The memory that is freed is found by its address.
        assert_eq!(of("hipFree", "ptr")[0], of("hipMalloc", "ptr")[0]);
        // A call that failed has returned nothing: the argument is the address of the variable.
        assert_eq!(
            of("hipMalloc", "ptr")[1..],
            [("void**", failed), ("void**", "(null)")]
        );
    }
}

#[test]
fn compat_mode_shows_output_arguments_as_addresses() {
    for provider in ["sdk", "direct"] {
        let options = [
            "--compat",
            "rocprofv3",
            "--hip-trace",
            "--provider",
            provider,
            "-f",
            "rocpd",
        ];
        let outcome = Rpd::new(options).workload("results", [""; 0]).success();
        let found = arguments(&outcome);
        let variable = outcome
            .stdout
            .lines()
            .last()
            .and_then(|line| line.strip_prefix("failed "));
        let expected = ("void**", variable.expect("the address of the variable"));
        assert_eq!(
            of(&found, "hipMalloc", "ptr")[..2],
            [expected, expected],
            "{provider}"
        );
        assert_eq!(of(&found, "hipGetDevice", "deviceId")[0].0, "int*");
    }
}

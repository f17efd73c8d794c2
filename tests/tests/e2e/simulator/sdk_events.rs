//! The simulator's SDK against the real one: the events that a tool receives for `vector-ops 1 1`, event by
//! event. `golden/sdk-events-vector-ops-1-1.txt` is the real SDK's transcript.
//!
//! Left out of the comparison, because runtimes differ in it: allocations, the runtime's own kernels
//! and their code object, register counts and sizes of code objects, and where between the events of
//! the program's threads the completions fall.

use std::collections::HashMap;
use std::fs;

use rpd_tests::run::simulated_with;
use rpd_tests::{install, workloads};

/// The events of a transcript that have to be the same everywhere.
#[derive(Debug, Default, PartialEq)]
struct Transcript {
    /// In their order: calls, markers, streams, enqueues, submitted copies, code objects.
    on_threads: Vec<String>,
    /// Events from the runtime's own threads, in their order.
    completions: Vec<String>,
}

fn transcript(text: &str) -> Transcript {
    let mut found = Transcript::default();
    // Ids of kernels are given in an order that hash tables make; they are compared by name.
    let mut kernels = HashMap::new();
    let mut programs_code_object = String::new();
    for line in text.lines() {
        let Some((_, event)) = line.split_once(" cb ") else {
            continue;
        };
        let words: Vec<&str> = event.split(' ').collect();
        let after = |label: &str| {
            let at = words.iter().position(|word| *word == label);
            at.and_then(|at| words.get(at + 1))
                .copied()
                .unwrap_or_default()
                .to_owned()
        };
        let [phase, kind, operation] = words[..3] else {
            panic!("not an event: {line}")
        };
        let head = words[..8].join(" ");
        match (kind, operation) {
            ("MEMORY_ALLOCATION" | "RUNTIME_INITIALIZATION", _) => {}
            (_, "CODE_OBJECT_LOAD") if phase == "ENTER" && after("uri_scheme") == "file://" => {
                programs_code_object = after("id");
                found
                    .on_threads
                    .push(format!("{head} storage {}", after("storage")));
            }
            (_, "CODE_OBJECT_LOAD") if after("id") == programs_code_object => {
                found.on_threads.push(head)
            }
            (_, "CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER")
                if after("co") == programs_code_object =>
            {
                kernels.insert(after("kernel"), after("name"));
                let sizes = format!(
                    "kernarg {} group {} private {}",
                    after("kernarg"),
                    after("group"),
                    after("private")
                );
                found
                    .on_threads
                    .push(format!("{head} {} {sizes}", after("name")));
            }
            ("CODE_OBJECT", _) => {}
            ("KERNEL_DISPATCH", _) => {
                let kernel = kernels.get(&after("kernel")).cloned().unwrap_or_default();
                let event = format!(
                    "{head} dispatch {} of {kernel} grid {} wg {} dur_set {}",
                    after("dispatch"),
                    after("grid"),
                    after("wg"),
                    after("dur_set")
                );
                let list = if phase == "NONE" {
                    &mut found.completions
                } else {
                    &mut found.on_threads
                };
                list.push(event);
            }
            ("MEMORY_COPY", _) if phase == "EXIT" => found.completions.push(event.to_owned()),
            // The real SDK's transcript has no message here, because of where the tool looked for it.
            ("MARKER_CORE_RANGE_API", "roctxProcessRangeA") => found.on_threads.push(head),
            // Before a call its outputs hold anything.
            ("HIP_RUNTIME_API" | "HIP_COMPILER_API", _) if phase == "ENTER" => {
                found.on_threads.push(head)
            }
            _ => found.on_threads.push(event.to_owned()),
        }
    }
    // The symbols of a code object, too, come in any order.
    for run in found
        .on_threads
        .chunk_by_mut(|a, b| a.contains("KERNEL_SYMBOL") && b.contains("KERNEL_SYMBOL"))
    {
        run.sort();
    }
    found
}

fn assert_same(ours: &[String], real: &[String]) {
    for (index, (ours, real)) in ours.iter().zip(real).enumerate() {
        assert_eq!(ours, real, "event {index}");
    }
    assert_eq!(
        ours.len(),
        real.len(),
        "ours ends with {:?}, the real one with {:?}",
        ours.last(),
        real.last()
    );
}

#[test]
fn the_simulator_delivers_the_events_of_the_real_sdk() {
    let golden = install::source_root().join("tests/golden/sdk-events-vector-ops-1-1.txt");
    let golden = transcript(&fs::read_to_string(golden).expect("the golden transcript"));
    assert!(
        golden.on_threads.len() > 90 && golden.completions.len() == 7,
        "the golden transcript is understood"
    );

    let tool = workloads::path("event-log.so");
    let variables = [
        ("ROCP_TOOL_LIBRARIES", tool.as_os_str()),
        ("RPD_EVENT_LOG", "events".as_ref()),
    ];
    let outcome = simulated_with(variables, "vector-ops", ["1", "1"]).success();
    assert_eq!(outcome.stderr, "");
    let events =
        fs::read_to_string(outcome.directory.path().join("events")).expect("the tool's transcript");
    let ours = transcript(&events);
    assert_same(&ours.on_threads, &golden.on_threads);
    assert_same(&ours.completions, &golden.completions);
    assert!(
        events.trim_end().ends_with("tool finalize"),
        "finalised last"
    );
}

/// Tools keep the pointers to names and read them when they finalise, after the code objects have gone.
#[test]
fn names_of_kernels_outlive_their_code_objects() {
    let tool = workloads::path("event-log.so");
    let variables = [
        ("ROCP_TOOL_LIBRARIES", tool.as_os_str()),
        ("RPD_EVENT_LOG", "events".as_ref()),
        ("RPD_EVENT_KINDS", "CODE_OBJECT".as_ref()),
        ("RPD_EVENT_NAMES", "1".as_ref()),
    ];
    let outcome = simulated_with(variables, "module-load", [] as [&str; 0]).success();
    let events = fs::read(outcome.directory.path().join("events")).expect("the tool's transcript");
    let events = String::from_utf8(events).expect("names are text");
    let registered: Vec<&str> = events
        .lines()
        .filter_map(|line| line.split_once(" name ")?.1.split_once(" kernarg "))
        .map(|(name, _)| name)
        .collect();
    let read_again: Vec<&str> = events
        .lines()
        .filter(|line| !line.contains(" cb "))
        .filter_map(|line| line.split_once(" name "))
        .map(|(_, name)| name)
        .filter(|name| !name.contains("://"))
        .collect();
    assert!(registered.len() > 4, "{events}");
    assert_eq!(read_again, registered);
}

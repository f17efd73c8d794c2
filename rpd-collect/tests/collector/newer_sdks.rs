//! Kinds that newer SDKs have.

use super::harness::run_one;

/// sdk-newer-3
#[test]
fn kinds_of_newer_providers_are_found_by_name() {
    let found = run_one(
        "hip_graph=1,hip_event=1,kernel=1,newer_sdk=1",
        &["calls", "1"],
    );
    for kind in ["HIP_GRAPH", "HIP_EVENT"] {
        let note = format!("{kind} is not recorded: this provider does not have it");
        let notes = found.notes.iter().filter(|found| found.starts_with(&note));
        assert_eq!(notes.count(), 1, "{:?}", found.notes);
    }
    // Aggregates include them, and are given to providers of any version.
    let found = run_one("hip_graph=1,hip_event=1,kernel=1", &["calls", "1"]);
    assert!(
        found.notes.iter().all(|note| !note.contains("HIP_")),
        "{:?}",
        found.notes
    );
}

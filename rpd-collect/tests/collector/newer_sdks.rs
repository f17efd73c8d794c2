//! Kinds that newer SDKs have.

use rpd_spool::format::{KfdEvent, kfd_kind, tag};
use rpd_spool::record::RecordKind;

use super::harness::{each_record, launch, newer_provider, note_text, run_one};

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

/// Operations of calls, events of the driver with their kinds, and notes.
fn newer(options: &str, variables: &[&str]) -> (Vec<u32>, Vec<(u16, KfdEvent)>, Vec<String>) {
    let program = newer_provider();
    let (status, _, run) = if variables.is_empty() {
        launch(program, options, &["newer"], &[])
    } else {
        let path = program.to_string_lossy();
        let arguments = [variables, &[&*path, "newer"]].concat();
        launch(
            std::path::Path::new("/usr/bin/env"),
            options,
            &arguments,
            &[],
        )
    };
    assert!(status.success(), "{status}");
    let (mut calls, mut events, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    each_record(run.path(), |record| match record.header.tag {
        tag::API => {
            let (call, _) = record
                .parse::<rpd_spool::format::CallRecord>()
                .expect("whole");
            calls.push(call.operation);
        }
        kind if kind == RecordKind::KfdEvent.tag() => {
            let (event, _) = record.parse::<KfdEvent>().expect("whole");
            events.push((record.header.aux, event));
        }
        tag::NOTE => notes.extend(note_text(record)),
        _ => {}
    });
    (calls, events, notes)
}

/// sdk-newer-79
#[test]
fn calls_of_newer_libraries_are_recorded_by_the_names_of_their_kinds() {
    assert_eq!(newer("rocshmem=1", &[]).0, [5, 6]);
    assert_eq!(newer("hipfile=1", &[]).0, [5]);
    // The other provider lacks them.
    let found = run_one("rocshmem=1,hipfile=1,newer_sdk=1", &["calls", "1"]);
    for (kind, since) in [("ROCSHMEM_API", "1.3"), ("HIPFILE_API", "1.3.5")] {
        let note = format!(
            "{kind} is not recorded: this provider does not have it; ROCprofiler-SDK {since} "
        );
        let is_there = found.notes.iter().any(|found| found.starts_with(&note));
        assert!(is_there, "{:?}", found.notes);
    }
}

/// sdk-newer-37 and sdk-newer-38
#[test]
fn driver_events_are_read_as_their_kinds_say() {
    let options = "kfd_page_migration=1,kfd_dropped_events=1,newer_sdk=1";
    let (_, events, notes) = newer(options, &[]);
    assert_eq!(notes, Vec::<String>::new());
    let [(migration, moved), (lost, dropped)] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(
        (*migration, moved.pid, moved.agent, moved.dst_agent),
        (kfd_kind::PAGE_MIGRATE, 4711, 0, 0)
    );
    assert_eq!((moved.address, moved.end_address), (0x10000, 0x12000));
    assert!(moved.end > moved.start);
    assert_eq!(
        (*lost, dropped.pid, dropped.count, dropped.start),
        (kfd_kind::EVENT_DROPPED_EVENTS, 4712, 5, dropped.end)
    );
}

/// sdk-newer-42
#[test]
fn provider_or_driver_without_events_is_named_in_one_line() {
    let found = run_one(
        "kfd_queue=1,kfd_page_mapping=1,newer_sdk=1",
        &["calls", "1"],
    );
    let notes = found.notes.iter().filter(|note| note.contains("KFD_"));
    assert_eq!(notes.count(), 1, "{:?}", found.notes);
    assert_eq!(found.calls.len(), 0);
    let options = "kfd_page_migration=1,kfd_dropped_events=1,newer_sdk=1";
    let (_, events, notes) = newer(options, &["DRIVER_TOO_OLD=1"]);
    assert!(events.is_empty(), "{events:?}");
    assert_eq!(
        notes,
        ["events of the kernel driver is not recorded: the provider reports: some error"]
    );
    // Aggregates include them.
    let (_, _, notes) = newer("kfd_page_migration=1", &["DRIVER_TOO_OLD=1"]);
    assert_eq!(notes, Vec::<String>::new());
}

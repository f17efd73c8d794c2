//! Every fact of a session is in a database, or listed here as one that a database leaves out.

use rpd_core::ids::{AgentHandle, CodeObjectId, CorrelationId, KernelId};
use rpd_core::options::{Format, Options};
use rpd_core::session::{
    CodeObject, HostFunction, LoadOptions, Region, ResourceKind, ResourceName, Session,
};
use rpd_formats::rocpd::read::Database;

use crate::support::write::write;
use crate::tables::{session_with, target};

/// Facts that databases do not hold.
const LEFT_OUT: [&str; 3] = ["host functions", "regions", "names of the provider"];

/// Numbers of the facts of each kind, and whether this test adds some.
///
/// Without `..`: a new field of a session is counted here, or named as one that another test is about.
fn facts(session: &Session) -> Vec<(&'static str, usize)> {
    let Session {
        process,
        strings: _,
        operations: _,
        agents,
        code_objects,
        kernel_symbols,
        host_functions,
        regions,
        resource_names,
        provider_names,
        counters,
        // Tables of records and the dispatches with values: `tables.rs`.
        api: _,
        dispatches: _,
        copies: _,
        allocations: _,
        scratch: _,
        counted: _,
        samples: _,
        // `traces.rs` and the tests of rpd-symbols and rpd-cli, which have code and stacks to look up.
        device_totals: _,
        sampling: _,
        thread_traces: _,
        code: _,
        stacks: _,
        // About the recording or the session itself.
        origin: _,
        callback_kinds: _,
        ledger: _,
        storage: _,
    } = session;
    vec![
        ("process", process.pid.0 as usize),
        ("agents", agents.len()),
        ("code objects", code_objects.len()),
        ("kernel symbols", kernel_symbols.len()),
        ("host functions", host_functions.len()),
        ("regions", regions.len()),
        ("names of resources", resource_names.len()),
        ("names of the provider", provider_names.len()),
        ("counters", counters.len()),
    ]
}

#[test]
fn every_fact_survives_in_a_database() {
    let written = session_with(|session| {
        session.code_objects.push(CodeObject {
            id: CodeObjectId(7),
            agent: AgentHandle(2),
            uri: "file:///a".to_owned(),
            load_base: 4096,
            load_size: 4096,
            load_delta: 0,
            storage_type: 1,
            memory_base: 0,
            memory_size: 0,
            size: 88,
        });
        session.host_functions.push(HostFunction {
            id: 1,
            kernel: KernelId(1),
            code_object: CodeObjectId(7),
            address: 8192,
            modules: 0,
            thread_limit: u32::MAX,
            name: "stub".to_owned(),
        });
        let message = session.strings.intern("a region");
        session.regions.push(Region {
            message,
            correlation: CorrelationId(1),
        });
        session.resource_names.push(ResourceName {
            kind: ResourceKind::Thread,
            resource: 42,
            name: "main".to_owned(),
        });
        (session.provider_names).push(("HIP_RUNTIME_API".to_owned(), vec!["hipInit".to_owned()]));
    });
    let directory = tempfile::tempdir().expect("a directory");
    let (options, target) = (Options::default(), target(directory.path()));
    let files = write(Format::Rocpd, &written, None, &options, &target).expect("written");
    let database = Database::open(&files[0]).expect("a database");
    let (read, _) = database
        .session(&database.recordings()[0], LoadOptions::default())
        .expect("a session");
    for ((name, before), (_, after)) in facts(&written).into_iter().zip(facts(&read)) {
        assert!(before > 0, "this test writes no {name}");
        let expected = if LEFT_OUT.contains(&name) { 0 } else { before };
        assert_eq!(after, expected, "{name}");
    }
}

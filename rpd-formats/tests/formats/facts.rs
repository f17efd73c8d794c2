//! Every fact of a session is in the files of every format and is read back from a database, or listed here as one that is left
//! out.

use rpd_core::agent::{Agent, AgentType};
use rpd_core::domain::Domain;
use rpd_core::ids::{AgentHandle, CodeObjectId, CorrelationId, KernelId, Nanoseconds, ProcessId};
use rpd_core::options::{Format, KernelNames, Options};
use rpd_core::session::code::{CodeLine, Instruction, Sampling, SourceFile};
use rpd_core::session::samples::Issue;
use rpd_core::session::stacks::{LocationKind, StackFrame, StackLocation, StackModule, StackNode};
use rpd_core::session::totals::Place;
use rpd_core::session::traces::{OccupiedTime, OccupiedUnit, TraceSummary, TracedLine, TracedWave};
use rpd_core::session::{
    CodeObject, DeviceTotal, HostFunction, LoadOptions, Origin, Region, RemovedOf, RemovedTotal,
    ResourceKind, ResourceName, Session, StackRef, Table, TotalOf,
};
use rpd_core::spool::sampling::{SamplingMethod, SamplingUnit};
use rpd_formats::rocpd::read::Database;

use crate::support::write::write;
use crate::tables::{add_row, session_with, target, with_every_format};

/// A fact: what one field of a session holds, or several that belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    Process,
    Agents,
    CodeObjects,
    KernelSymbols,
    HostFunctions,
    Regions,
    ResourceNames,
    ProviderNames,
    Counters,
    DeviceTotals,
    Removed,
    Sampling,
    SampleCounts,
    Captured,
    ThreadTraces,
    Code,
    Stacks,
    Origin,
    Ledger,
}

/// The facts, each with a number by which its absence shows.
///
/// Without `..`: a new field of a session is a fact here, or none.
fn facts(session: &Session) -> Vec<(Fact, usize)> {
    let Session {
        process,
        agents,
        code_objects,
        kernel_symbols,
        host_functions,
        regions,
        resource_names,
        provider_names,
        counters,
        device_totals,
        removed,
        sampling,
        sample_counts,
        captured,
        thread_traces,
        code,
        stacks,
        origin,
        ledger,
        // What facts and records refer to.
        strings: _,
        operations: _,
        // A part of the names of the provider.
        callback_kinds: _,
        // Tables of records and the dispatches with values: `tables.rs`.
        calls: _,
        dispatches: _,
        copies: _,
        allocations: _,
        scratch: _,
        counted: _,
        samples: _,
        graph_launches: _,
        hip_events: _,
        kfd_events: _,
        // Where the session has its tables.
        storage: _,
    } = session;
    vec![
        (Fact::Process, process.command.len()),
        (Fact::Agents, agents.len()),
        (Fact::CodeObjects, code_objects.len()),
        (Fact::KernelSymbols, kernel_symbols.len()),
        (Fact::HostFunctions, host_functions.len()),
        (Fact::Regions, regions.len()),
        (Fact::ResourceNames, resource_names.len()),
        (Fact::ProviderNames, provider_names.len()),
        (Fact::Counters, counters.len()),
        (Fact::DeviceTotals, device_totals.len()),
        (Fact::Removed, removed.len()),
        (Fact::Sampling, sampling.len()),
        (Fact::SampleCounts, sample_counts.total() as usize),
        (Fact::Captured, captured.len()),
        (Fact::ThreadTraces, thread_traces.lines.len()),
        (Fact::Code, code.instructions.len()),
        (Fact::Stacks, stacks.nodes.len()),
        (Fact::Origin, origin.iter().len()),
        (Fact::Ledger, ledger.notes.len()),
    ]
}

/// Whether a format shows nothing of a fact.
pub(crate) fn leaves_out(format: Format, fact: Fact) -> bool {
    match format {
        Format::Csv => matches!(
            fact,
            Fact::Process
                | Fact::CodeObjects
                | Fact::HostFunctions
                | Fact::ResourceNames
                | Fact::ProviderNames
                | Fact::Sampling
                | Fact::Captured
                | Fact::ThreadTraces
                | Fact::Stacks
                | Fact::Origin
                | Fact::Ledger
        ),
        Format::Json => matches!(
            fact,
            Fact::ResourceNames
                | Fact::Removed
                | Fact::Sampling
                | Fact::Captured
                | Fact::ThreadTraces
                | Fact::Ledger
        ),
        Format::Pftrace => matches!(
            fact,
            Fact::HostFunctions
                | Fact::ProviderNames
                | Fact::DeviceTotals
                | Fact::Removed
                // They have no times.
                | Fact::SampleCounts
                | Fact::Captured
                | Fact::ThreadTraces
                | Fact::Code
                | Fact::Origin
                | Fact::Ledger
        ),
        Format::Otf2 => !matches!(
            fact,
            Fact::Process | Fact::Agents | Fact::KernelSymbols | Fact::Regions | Fact::Origin
        ),
        Format::Rocpd => matches!(fact, Fact::HostFunctions | Fact::Ledger),
        Format::Parquet => matches!(
            fact,
            Fact::HostFunctions
                | Fact::ResourceNames
                | Fact::ProviderNames
                | Fact::DeviceTotals
                | Fact::Removed
                | Fact::Sampling
                | Fact::SampleCounts
                | Fact::Captured
                | Fact::Stacks
                | Fact::Ledger
        ),
        // Sums of all device work are in its statistics, which are not of the session.
        Format::Html => matches!(
            fact,
            Fact::HostFunctions
                | Fact::ResourceNames
                | Fact::ProviderNames
                | Fact::DeviceTotals
                | Fact::Removed
                | Fact::Captured
        ),
    }
}

/// Facts that are not read from a database. The names of the provider are only among its texts.
const NOT_READ: [Fact; 4] = [
    Fact::HostFunctions,
    Fact::ProviderNames,
    Fact::Removed,
    Fact::Ledger,
];

/// A session with every fact; `changed` has other content than in the session without.
pub(crate) fn session(changed: Option<Fact>) -> Session {
    session_with(|session| {
        let is = |fact| changed == Some(fact);
        for table in [Table::Dispatches, Table::Counted, Table::Samples] {
            add_row(session, table, 200);
        }
        // A dispatch that no region renames.
        add_row(session, Table::Dispatches, 300);
        // A sample in code of the runtime, which no code object has.
        add_row(session, Table::Samples, 300);
        session.samples.object[1] = CodeObjectId(0);
        let process = &mut session.process;
        let word = if is(Fact::Process) { "changed" } else { "app" };
        process.command = vec![format!("/bin/{word}")];
        process.executable = format!("/bin/{word}");
        process.cwd = format!("/home/{word}");
        process.environment = vec![("NAME".to_owned(), word.to_owned())];
        if is(Fact::Process) {
            process.ppid = ProcessId(7);
            process.init_time = Nanoseconds(1);
        }
        session.agents.push(Agent {
            handle: AgentHandle(3),
            agent_type: AgentType::Gpu,
            node_id: 1,
            logical_node_id: 1,
            ..Agent::default()
        });
        if is(Fact::Agents) {
            session.agents[0].name = "gfx942".to_owned();
            session.agents[0].cu_count = 7;
            session.agents[0].logical_node_id = 2;
        }
        session.code_objects.push(CodeObject {
            id: CodeObjectId(7),
            agent: AgentHandle(if is(Fact::CodeObjects) { 3 } else { 2 }),
            uri: if is(Fact::CodeObjects) {
                "file:///b"
            } else {
                "file:///a"
            }
            .to_owned(),
            load_base: 4096,
            load_size: if is(Fact::CodeObjects) { 8192 } else { 4096 },
            load_delta: 0,
            storage_type: 1,
            memory_base: 0,
            memory_size: 0,
            size: 88,
        });
        if is(Fact::KernelSymbols) {
            session.kernel_symbols[0].name = "another.kd".to_owned();
            session.kernel_symbols[0].sgpr_count = 16;
        }
        session.host_functions.push(HostFunction {
            id: 1,
            kernel: KernelId(1),
            code_object: CodeObjectId(7),
            address: if is(Fact::HostFunctions) { 12288 } else { 8192 },
            modules: 0,
            thread_limit: u32::MAX,
            name: if is(Fact::HostFunctions) {
                "other"
            } else {
                "stub"
            }
            .to_owned(),
        });
        let message = if is(Fact::Regions) { "other" } else { "region" };
        let message = session.strings.intern(message);
        session.regions.push(Region {
            message,
            correlation: CorrelationId(1),
        });
        session.dispatches.region[0] = 1;
        session.resource_names.push(ResourceName {
            kind: ResourceKind::Thread,
            resource: 42,
            name: if is(Fact::ResourceNames) {
                "worker"
            } else {
                "main"
            }
            .to_owned(),
        });
        let kind = if is(Fact::ProviderNames) {
            "HSA_CORE_API"
        } else {
            "HIP_RUNTIME_API"
        };
        (session.provider_names).push((kind.to_owned(), vec!["hipInit".to_owned()]));
        session.callback_kinds = 1;
        if is(Fact::Counters) {
            session.counters[0].name = "SQ_BUSY".to_owned();
            session.counters[0].description = "changed".to_owned();
        }
        let totals = if is(Fact::DeviceTotals) { 3 } else { 2 };
        session.device_totals.push(DeviceTotal {
            of: TotalOf::Kernel(KernelId(1)),
            count: totals,
            total: 100 * totals,
            min: 100,
            max: 100,
            spread: 0.0,
            bytes: 0,
            first: Nanoseconds(100),
            last: Nanoseconds(200),
            durations: Vec::new(),
        });
        session.removed.push(RemovedTotal {
            table: Table::Dispatches,
            of: RemovedOf::Kernel(KernelId(1)),
            domain: Domain::KernelDispatch,
            count: if is(Fact::Removed) { 3 } else { 2 },
            total: 200,
            min: 100,
            max: 100,
            spread: 0.0,
            bytes: 0,
            first: Nanoseconds(100),
            last: Nanoseconds(200),
        });
        session.sampling.push(Sampling {
            agent: AgentHandle(if is(Fact::Sampling) { 3 } else { 2 }),
            method: SamplingMethod::HostTrap,
            unit: SamplingUnit::Time,
            interval: if is(Fact::Sampling) { 50 } else { 100 },
        });
        session.sample_counts.add(
            Place {
                kernel: KernelId(1),
                object: CodeObjectId(9),
                offset: 3 << 32,
            },
            Issue::ISSUED,
            if is(Fact::SampleCounts) { 6 } else { 5 },
        );
        let captured = CorrelationId(if is(Fact::Captured) { 3 } else { 2 });
        session.captured.insert((1, 2), captured);
        add_traces(session, is(Fact::ThreadTraces));
        add_code(session, is(Fact::Code));
        add_stacks(session, is(Fact::Stacks));
        session.origin = Some(Origin {
            guid: "00000057-e5b7-75b7-b481-79f7795676a5".to_owned(),
            hostname: if is(Fact::Origin) { "other" } else { "host" }.to_owned(),
            ..Origin::default()
        });
        let note = if is(Fact::Ledger) {
            "another"
        } else {
            "a note"
        };
        session.ledger.notes.push(note.to_owned());
        session.ledger.dropped = if is(Fact::Ledger) { 4 } else { 3 };
    })
}

/// The trace of a dispatch.
fn add_traces(session: &mut Session, changed: bool) {
    let more = u64::from(changed);
    let traces = &mut session.thread_traces;
    traces.summaries.push(TraceSummary {
        agent: AgentHandle(2),
        trace: 1,
        kernel: KernelId(1),
        engine: 4,
        bytes: 1000 + more,
        capacity: 2000,
        full: true,
        started: 9 + more,
        waves: 2,
        instructions: 4 + more,
        unmatched: 0,
        lost: 1,
        incomplete_waves: 0,
    });
    traces.waves.push(TracedWave {
        stream: 0,
        cu: 1,
        simd: 2,
        slot: 0,
        begin: 100,
        end: 400,
        instructions: 2 + more,
        latency: 250 + more,
        stall: 200,
        complete: true,
    });
    traces.occupied_times.push(OccupiedTime {
        stream: 0,
        begin: 100,
        end: 356,
        wave_cycles: 512 + more,
    });
    traces.occupied_units.push(OccupiedUnit {
        stream: 0,
        cu: 1,
        waves: 2 + more,
        wave_cycles: 600 + more,
    });
    traces.lines.push(TracedLine {
        kernel: KernelId(1),
        agent: AgentHandle(2),
        trace: 1,
        object: CodeObjectId(7),
        offset: 200,
        hits: 2 + more,
        latency: 8 + more,
        idle: 6,
        stalls: Vec::new(),
    });
}

/// The instruction that was sampled and traced, with its line.
fn add_code(session: &mut Session, changed: bool) {
    let strings = &mut session.strings;
    let file = strings.intern("kernel.hip");
    let function = strings.intern("kernel");
    let text = strings.intern(if changed { "s_sleep 1" } else { "s_endpgm" });
    session.code.lines.push(CodeLine {
        function,
        file,
        line: if changed { 8 } else { 7 },
        column: 0,
    });
    session.code.instructions.push(Instruction {
        object: CodeObjectId(7),
        offset: 200,
        length: 4,
        text,
        function,
        first_line: 0,
        lines: 1,
    });
    session.code.sources.push(SourceFile {
        path: file,
        text: if changed { "changed" } else { "source" }.to_owned(),
    });
}

/// A stack of one frame, that of each call.
pub(crate) fn add_stacks(session: &mut Session, changed: bool) {
    let path = session.strings.intern("/bin/app");
    let function = session
        .strings
        .intern(if changed { "changed" } else { "main" });
    let file = session.strings.intern("app.c");
    let stacks = &mut session.stacks;
    stacks.modules.push(StackModule {
        id: 1,
        path,
        build_id: String::new(),
        base: 0,
        start: 0,
        end: 4096,
        seen_from: Nanoseconds(1),
        seen_to: None,
    });
    stacks.locations.push(StackLocation {
        id: 1,
        kind: LocationKind::Native,
        owner: 1,
        offset: 16,
    });
    stacks.nodes.push(StackNode {
        id: 1,
        parent: 0,
        location: 1,
        depth: 0,
    });
    stacks.frames.push(StackFrame {
        location: 1,
        inline_depth: 0,
        function,
        file,
        line: if changed { 8 } else { 7 },
        column: 0,
        evidence: "dwarf".to_owned(),
    });
    let stack = StackRef { stack: 1, flags: 0 };
    session.calls.stack.set_last(stack);
    session.calls.stack.fill(stack);
}

#[test]
fn every_format_has_every_fact() {
    let options = Options {
        kernel_names: KernelNames {
            rename: true,
            ..KernelNames::default()
        },
        ..Options::default()
    };
    with_every_format(&options, |format, files| {
        let without_changes = files(&session(None));
        assert!(
            without_changes == files(&session(None)),
            "{format:?}: the same session has other files"
        );
        for (fact, _) in facts(&Session::default()) {
            let is_shown = without_changes != files(&session(Some(fact)));
            assert_eq!(
                !is_shown,
                leaves_out(format, fact),
                "{format:?}, {fact:?}: not as `leaves_out` states"
            );
        }
    });
}

#[test]
fn database_keeps_every_fact() {
    let written = session(None);
    let directory = tempfile::tempdir().expect("a directory");
    let (options, target) = (Options::default(), target(directory.path()));
    let files = write(Format::Rocpd, &written, None, &options, &target).expect("written");
    let database = Database::open(&files[0]).expect("a database");
    let (read, _) = database
        .session(&database.recordings()[0], LoadOptions::default())
        .expect("a session");
    for ((fact, before), (_, after)) in facts(&written).into_iter().zip(facts(&read)) {
        assert!(before > 0, "this test writes no {fact:?}");
        let expected = if NOT_READ.contains(&fact) { 0 } else { before };
        assert_eq!(after, expected, "{fact:?}");
    }
}

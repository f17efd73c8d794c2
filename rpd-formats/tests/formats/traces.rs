//! Thread traces in the database and on the page.

use crate::support::write as written;

use std::path::Path;
use std::process::Command;

use rpd_core::agent::{Agent, AgentType};
use rpd_core::ids::{AgentHandle, CodeObjectId, KernelId, ProcessId, StringId};
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::session::code::{CodeLine, Instruction};
use rpd_core::session::samples::Issue;
use rpd_core::session::totals::{Measure, Totals};
use rpd_core::session::traces::{TraceSummary, TracedLine, TracedWave};
use rpd_core::session::{KernelSymbol, LoadOptions, Session};
use rpd_core::stats::SessionStats;
use rpd_formats::rocpd::read::Database;
use written::write_one;

/// A traced dispatch of two waves that wait at the second of two instructions.
fn session() -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    session.process.pid = ProcessId(4711);
    session.process.command = vec!["app".to_owned()];
    session.agents.push(Agent {
        handle: AgentHandle(2),
        agent_type: AgentType::Gpu,
        name: "gfx90a".to_owned(),
        ..Default::default()
    });
    session.kernel_symbols.push(KernelSymbol {
        id: KernelId(1),
        code_object: CodeObjectId(1),
        name: "loads.kd".to_owned(),
        sgpr_count: 16,
        arch_vgpr_count: 8,
        ..Default::default()
    });
    let file = session.strings.intern("loads.hip");
    let texts = ["s_load_dword s0, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)"];
    for (index, text) in texts.into_iter().enumerate() {
        let text = session.strings.intern(text);
        let function = session.strings.intern("loads");
        session.code.lines.push(CodeLine {
            function: StringId(0),
            file,
            line: 7,
            column: 0,
        });
        session.code.instructions.push(Instruction {
            object: CodeObjectId(1),
            offset: 0x100 + 8 * index as u64,
            length: 8,
            text,
            function,
            first_line: index as u32,
            lines: 1,
        });
    }
    let traces = &mut session.thread_traces;
    traces.summaries.push(TraceSummary {
        agent: AgentHandle(2),
        trace: 3,
        kernel: KernelId(1),
        engine: 4,
        bytes: 1000,
        capacity: 2000,
        full: true,
        started: 9,
        waves: 2,
        instructions: 4,
        unmatched: 0,
        lost: 1,
        incomplete_waves: 0,
    });
    for slot in 0..2 {
        traces.waves.push(TracedWave {
            stream: 0,
            cu: 1,
            simd: 2,
            slot,
            begin: 100,
            end: 400,
            instructions: 2,
            latency: 250,
            stall: 200,
            complete: true,
        });
    }
    let line = |offset, latency, stalls| TracedLine {
        kernel: KernelId(1),
        agent: AgentHandle(2),
        trace: 3,
        object: CodeObjectId(1),
        offset,
        hits: 2,
        latency,
        idle: 6,
        stalls,
    };
    traces.lines.push(line(0x100, 8, Vec::new()));
    traces
        .lines
        .push(line(0x108, 492, vec![(Issue(3), 390), (Issue(7), 10)]));
    session
}

fn write(format: Format, directory: &Path) -> std::path::PathBuf {
    let target = Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    };
    let (stats, options) = (SessionStats::default(), Options::default());
    write_one(format, &session(), Some(&stats), &options, &target)
        .expect("written")
        .expect("a file")
}

#[test]
fn a_database_has_what_was_found_in_traces() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(Format::Rocpd, directory.path());
    let database = Database::open(&file).expect("a database");
    let recording = &database.recordings()[0];
    let written = session().thread_traces;
    let (read, ..) = database
        .session(recording, LoadOptions::default())
        .expect("a session");
    let (hot, _, sampled) = database.samples(recording).expect("sums");
    assert!(sampled.places.is_empty());
    for found in [&read, &hot] {
        let traces = &found.thread_traces;
        assert_eq!(traces.waves, written.waves);
        assert_eq!(traces.lines.len(), 2);
        let key = |line: &TracedLine| {
            (
                line.trace,
                line.offset,
                line.hits,
                line.latency,
                line.idle,
                line.stalls.clone(),
            )
        };
        assert!(
            traces
                .lines
                .iter()
                .map(key)
                .eq(written.lines.iter().map(key))
        );
        let [summary] = traces.summaries.as_slice() else {
            panic!("{:?}", traces.summaries);
        };
        assert_eq!((summary.engine, summary.full, summary.lost), (4, true, 1));
        let totals = Totals::of_any(found);
        assert_eq!(totals.measure, Measure::Cycles);
        let cycles: u64 = (totals.places.values())
            .flat_map(|place| &place.counts)
            .map(|(_, count)| count.samples)
            .sum();
        assert_eq!(cycles, 500);
    }
    let query = "SELECT instruction, hits, latency, stall, idle, stall_reasons FROM thread_trace_instructions LIMIT 1; \
        SELECT kernel, file, line, latency FROM thread_trace_lines; \
        SELECT trace, shader_engine, simd, slot, duration FROM thread_trace_waves";
    let output = Command::new("sqlite3").arg(&file).arg(query).output();
    if let Ok(output) = output {
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "s_waitcnt lgkmcnt(0)|2|492|400|6|WAITCNT=390 ARBITER_WIN_EX_STALL=10\n\
             loads|loads.hip|7|500\n\
             3|4|2|0|300\n3|4|2|1|300\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_page_shows_waves_and_cycles_in_a_browser() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(Format::Html, directory.path());
    let text = std::fs::read_to_string(&file).expect("a page");
    assert!(text.contains("\"measure\":\"cycles\""), "cycles");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            directory.path().join("profile").display()
        ))
        .arg(format!("file://{}", file.display()))
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: the page in a browser: no chromium");
        return;
    };
    let page = String::from_utf8_lossy(&output.stdout);
    for expected in [
        "Waves of trace 3: loads",
        "SE 4 CU 1 SIMD 2 slot 1",
        "300 cycles, 250 in instructions, 200 stalled",
        "500 of 500 cycles",
        "WAITCNT 79.3 %",
    ] {
        assert!(page.contains(expected), "{expected} is not in the page");
    }
    assert!(!page.contains(" lanes"));
}

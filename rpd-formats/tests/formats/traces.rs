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
use rpd_core::session::totals::{InstructionTotals, Measure};
use rpd_core::session::traces::{OccupiedTime, OccupiedUnit, TraceSummary, TracedLine, TracedWave};
use rpd_core::session::{KernelSymbol, LoadOptions, Session};
use rpd_core::stats::SessionStats;
use rpd_formats::rocpd::read::Database;
use rpd_tests::skips::tool_for;
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
        name: "gfx942".to_owned(),
        num_xcc: 2,
        num_shader_banks: 8,
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
    traces.occupied_times.push(OccupiedTime {
        stream: 0,
        begin: 100,
        end: 356,
        wave_cycles: 512,
    });
    traces.occupied_times.push(OccupiedTime {
        stream: 0,
        begin: 356,
        end: 400,
        wave_cycles: 88,
    });
    for (cu, waves) in [(1, 2), (9, 1)] {
        traces.occupied_units.push(OccupiedUnit {
            stream: 0,
            cu,
            waves,
            wave_cycles: 300 * waves,
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

fn write(format: Format, session: &Session, directory: &Path) -> std::path::PathBuf {
    let target = Target {
        directory: directory.to_owned(),
        prefix: "trace".to_owned(),
    };
    let (stats, options) = (SessionStats::default(), Options::default());
    write_one(format, session, Some(&stats), &options, &target)
        .expect("written")
        .expect("a file")
}

#[test]
fn database_has_the_findings_of_traces() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(Format::Rocpd, &session(), directory.path());
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
        assert_eq!(traces.occupied_times, written.occupied_times);
        assert_eq!(traces.occupied_units, written.occupied_units);
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
        let totals = InstructionTotals::from_any(found);
        assert_eq!(totals.measure, Measure::Cycles);
        let cycles: u64 = (totals.places.values())
            .flat_map(|place| &place.counts)
            .map(|(_, count)| count.samples)
            .sum();
        assert_eq!(cycles, 500);
    }
    let query = "SELECT instruction, hits, latency, stall, idle, stall_reasons FROM thread_trace_instructions LIMIT 1; \
        SELECT kernel, file, line, latency FROM thread_trace_lines; \
        SELECT trace, shader_engine, simd, slot, duration FROM thread_trace_waves; \
        SELECT trace, shader_engine, start, \"end\", waves FROM thread_trace_occupancy; \
        SELECT trace, shader_engine, cu, waves, wave_cycles FROM thread_trace_units";
    if let Some(sqlite3) = tool_for("views of thread traces in the eyes of sqlite3", "sqlite3") {
        let output = Command::new(sqlite3).arg(&file).arg(query).output();
        let output = output.expect("sqlite3 starts");
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "s_waitcnt lgkmcnt(0)|2|492|400|6|WAITCNT=390 ARBITER_WIN_EX_STALL=10\n\
             loads|loads.hip|7|500\n\
             3|4|2|0|300\n3|4|2|1|300\n\
             3|4|100|356|2.0\n3|4|356|400|2.0\n\
             3|4|1|2|600\n3|4|9|1|300\n",
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// A script that acts as a reader of the page of a trace, put after the page's own: points, zooms, moves, and reads the
/// tables.
const READER: &str = r##"<script>
const seen = [];
const section = document.querySelector("#traces section"), canvas = section.querySelector("canvas");
const tip = section.querySelector(".tip"), range = () => section.querySelectorAll(".hint")[1].textContent.split(". ")[0];
const point = (x, y) => {
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + x * box.width, clientY: box.top + y}));
  return tip.hidden ? "" : tip.textContent;
};
const ink = () => {
  const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let hash = 0;
  for (const value of pixels) hash = (hash * 31 + value) | 0;
  return hash;
};
const button = (name) => section.querySelector(`button[aria-label="${name}"]`);
seen.push(section.querySelector("h2").textContent, range(), point(0.5, 40), point(0.5, 100));
const first = ink();
button("Zoom in").click();
seen.push(range(), ink() !== first);
button("Earlier").click();
seen.push(range());
button("All").click();
seen.push(ink() === first);
seen.push([...section.querySelectorAll(".units tr")].map((row) => [...row.cells].map((cell) => cell.textContent).join()).join(" / "));
seen.push(section.querySelector(".units td").title.replaceAll("\n", ", "));
const code = document.querySelector("#code section");
seen.push(code.querySelector(".hint").textContent.split(". ")[0]);
seen.push([...code.querySelectorAll("thead th")].map((head) => head.textContent).join());
seen.push([...code.querySelectorAll(".stack")].at(-1).title.split("\n")[1]);
document.body.dataset.seen = seen.join("|");
</script></body>"##;

/// Lines that [`READER`] prints about a page; `None` without a browser.
fn read_page(page: &Path) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(page).expect("a page");
    std::fs::write(page, text.replace("</body>", READER)).expect("written");
    let profile = page.with_extension("profile");
    let chromium = tool_for("the page of a thread trace in a browser", "chromium")?;
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg("--window-size=1000,800")
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("chromium starts");
    let page = String::from_utf8_lossy(&output.stdout);
    let seen = page.split_once("data-seen=\"").map(|(_, rest)| rest);
    let Some((seen, _)) = seen.and_then(|seen| seen.split_once('"')) else {
        panic!(
            "the script failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    // Numbers and units are joined by a narrow space that does not break.
    let seen = seen.replace('\u{202f}', " ");
    Some(seen.split('|').map(str::to_owned).collect())
}

#[test]
fn html_page_shows_waves_units_and_cycles_in_a_browser() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(Format::Html, &session(), directory.path());
    let Some(seen) = read_page(&file) else {
        return;
    };
    assert_eq!(
        seen,
        [
            "Trace 3: loads",
            "0 cycles to 300 cycles of 300 cycles",
            "2.0 waves at 150 cycles",
            "XCC 1 SE 0 CU 1 SIMD 2 slot 0: 300 cycles, 250 in instructions, 200 stalled, at 0",
            "75 cycles to 225 cycles of 300 cycles",
            "true",
            "25 cycles to 175 cycles of 300 cycles",
            "true",
            ",CU 1,CU 9 / XCC 1 SE 0,2,1",
            "XCC 1 SE 0 CU 1, 2 waves, 600 cycles, 2.0 at a time",
            "500 of 500 cycles",
            "Line,Source,Cycles,Share %,Issue,Offset,Instruction",
            "WAITCNT 79.3 %",
        ]
    );
}

/// A trace with more waves than are drawn one by one: the page stays small, and is as quick to look at.
#[test]
fn html_page_of_many_waves_has_sums() {
    const WAVES: i64 = 200_000;
    let mut session = session();
    let traces = &mut session.thread_traces;
    let wave = traces.waves[0];
    traces.waves = (0..WAVES)
        .map(|index| TracedWave {
            slot: (index % 40 / 4) as u8,
            simd: (index % 4) as u8,
            begin: 100 + index / 40 * 500,
            end: 500 + index / 40 * 500,
            stall: 100,
            ..wave
        })
        .collect();
    let directory = tempfile::tempdir().expect("a directory");
    let file = write(Format::Html, &session, directory.path());
    let bytes = std::fs::metadata(&file).expect("a page").len();
    assert!(bytes < 1_000_000, "{bytes}");
    let Some(seen) = read_page(&file) else {
        return;
    };
    assert_eq!(seen[1], "0 cycles to 2.5 M cycles of 2.5 M cycles");
    let bin = seen[3].strip_prefix("XCC 1 SE 0 CU 1 SIMD 0 slot 0: waves for ");
    let bin = bin.and_then(|bin| bin.strip_suffix(" % of 1.221 k cycles at 1.25 M cycles"));
    let shares = bin.and_then(|bin| bin.split_once(" %, stalled for "));
    let (waves, stalled) = shares.unwrap_or_else(|| panic!("{}", seen[3]));
    let share = |text: &str| text.parse::<u32>().expect("a number");
    // Of each 500 cycles a wave has 400, of which 100 are stalled; two to three waves are in a part.
    assert!((70..=90).contains(&share(waves)), "{}", seen[3]);
    assert!((17..=23).contains(&share(stalled)), "{}", seen[3]);
    assert_eq!((seen[5].as_str(), seen[7].as_str()), ("true", "true"));
}

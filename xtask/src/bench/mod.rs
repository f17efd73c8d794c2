//! `cargo xtask bench`: the figures the design holds itself to, each with its target. Everything is
//! measured from outside, on real processes.

mod captures;
mod direct;
mod examples;
mod measure;
mod rows;
mod simulator;
mod traces;

use anyhow::{Result, bail};

use crate::shell;

const USAGE: &str = "\
usage: cargo xtask bench [--release] [--records N] [--large] [--largest] [--millions N] [--texts few|own] [--steps STEP,...]
                           [--strict] [ROW ...]

Rows (all of them unless some are named):
  call      one traced API call over the floor that an empty SDK tool sets
  stacks    one traced API call with its native stack; bytes of stacks in a database
  launch    one traced kernel launch over the same floor
  direct    calls, dispatches and copies recorded without an SDK, over the bare program
  counters  one kernel dispatch with and without counters
  jobs      an input file of 10000 jobs
  idle      collector loaded, nothing enabled, and a program prepared by rpd idle, over the bare program
  start     start to end of a small GPU program, over the bare one; on ROCm as well where it is installed
  sim       the simulated GPU: instructions a second, a program with kernels, start of a program
  load      collector load and initialisation in a program that never uses the GPU
  exit      what we add between the end of main() and the end of the process
  spool     bytes of spool for one API record
  writers   opening the session and writing it, records per second; bytes of a database row
  open      opening a session of 10 M records
  stats     statistics over 10 M records
  formats   each writer alone, on synthetic records
  dataset   a data set of 100 ranks with 100000 records each, and its time by kernel and rank in DuckDB, if python3 has that
  large     opening, each format, statistics and each command that reads databases, for 2 M records, with few texts
            and with long ones that all differ: rate and peak memory
  view      tiles of the timeline for 10 M records: rate, memory, first answer and one tile
  walks     captures of native call stacks, with framehop's figures beside them
  captures  captured calls and data, their size, opening a capture of 1 M calls, and replay
  python    one merged stack with 30 Python frames, in the python3 on the path
  symbols   functions and lines of 5000 addresses of one library
  att       decoding 2 GB of thread traces: rate and peak memory
  trace     from a thread trace of 100 MB to the page about it
  samples   PC samples into a database, and added up by source line
  sampling  kernels with PC sampling over the same kernels without

  --records N  records in the rows exit, writers and formats (default 2000000)
  --large      32 M records as well in the row large (25 GB of disk space, 2 hours)
  --largest    32 M and 128 M records as well in the row large (100 GB of disk space, 8 hours)
  --millions N  in the row large only recordings of so many million records
  --texts WHICH  in the row large only recordings with few texts, or with texts of their own
  --steps LIST  in the row large only these: formats, open, statistics, export, and commands as they are printed; from one
               source with `recording:` or `database:` before the name
  --release    measure a release build (default: the dev profile, whose hot crates are optimised)
  --strict     fail when a figure misses its target
";

/// Target of a figure.
#[derive(Clone, Copy)]
enum Target {
    AtMost(f64),
    AtLeast(f64),
    /// Context for another row, without a target of its own.
    None,
}

/// One line of the report.
struct Row {
    what: String,
    figure: f64,
    unit: &'static str,
    target: Target,
}

impl Row {
    fn new(what: impl Into<String>, figure: f64, unit: &'static str, target: Target) -> Self {
        Self {
            what: what.into(),
            figure,
            unit,
            target,
        }
    }

    fn holds(&self) -> bool {
        match self.target {
            Target::AtMost(limit) => self.figure <= limit,
            Target::AtLeast(limit) => self.figure >= limit,
            Target::None => true,
        }
    }

    fn print(&self) {
        let number = |value: f64| {
            if value.abs() < 100.0 {
                format!("{value:.2}")
            } else {
                format!("{value:.0}")
            }
        };
        let target = match self.target {
            Target::AtMost(limit) => format!("<= {} {}", number(limit), self.unit),
            Target::AtLeast(limit) => format!(">= {} {}", number(limit), self.unit),
            Target::None => String::new(),
        };
        let verdict = match (self.target, self.holds()) {
            (Target::None, _) => "",
            (_, true) => "holds",
            (_, false) => "MISSED",
        };
        let line = format!(
            "{:<60} {:>12} {:<10} {target:<20} {verdict}",
            self.what,
            number(self.figure),
            self.unit
        );
        println!("{}", line.trim_end());
    }
}

/// Settings from the command line.
struct Settings {
    release: bool,
    records: u64,
    /// Millions of records in the row large.
    millions: Vec<u64>,
    /// Recordings of the row `large`: whether records have texts of their own. One or both values.
    texts: Vec<bool>,
    /// Steps of the row `large`; empty for all.
    steps: Vec<String>,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut settings = Settings {
        release: false,
        records: 2_000_000,
        millions: vec![2],
        texts: vec![false, true],
        steps: Vec::new(),
    };
    let mut strict = false;
    let mut wanted = Vec::new();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => {
                print!("{USAGE}");
                return Ok(());
            }
            "--release" => settings.release = true,
            "--strict" => strict = true,
            "--large" => settings.millions = vec![2, 32],
            "--largest" => settings.millions = vec![2, 32, 128],
            "--millions" => match arguments.next().map(|value| value.parse()) {
                Some(Ok(millions)) if millions > 0 => settings.millions = vec![millions],
                _ => bail!("--millions needs a positive number"),
            },
            "--texts" => match arguments.next().map(String::as_str) {
                Some("few") => settings.texts = vec![false],
                Some("own") => settings.texts = vec![true],
                _ => bail!("--texts needs `few` or `own`"),
            },
            "--steps" => match arguments.next() {
                Some(steps) => settings.steps = steps.split(',').map(str::to_owned).collect(),
                None => bail!("--steps needs the names of steps"),
            },
            "--records" => match arguments.next().map(|value| value.parse()) {
                Some(Ok(records)) if records > 0 => settings.records = records,
                _ => bail!("--records needs a positive number"),
            },
            name if rows::ALL.iter().any(|(row, _)| *row == name) => wanted.push(name),
            other => bail!("unknown row or option `{other}`\n{USAGE}"),
        }
    }
    // First, so that older binaries are never measured.
    let bench = measure::Bench::new(shell::build(settings.release)?)?;
    let mut missed = 0;
    for (name, measure) in rows::ALL {
        if !wanted.is_empty() && !wanted.contains(name) {
            continue;
        }
        for row in measure(&bench, &settings)? {
            row.print();
            missed += usize::from(!row.holds());
        }
    }
    if missed > 0 {
        // On a busy machine figures miss their targets by chance: only `--strict` takes that for an error.
        println!("{missed} missed");
        if strict {
            bail!("{missed} figures missed their targets");
        }
    }
    Ok(())
}

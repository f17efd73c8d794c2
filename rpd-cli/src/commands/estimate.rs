//! `rpd estimate -- ./app`: how much a recording with these options takes, and which option makes it small.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rpd_core::compat::Compat;
use rpd_core::domain::Kind;
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_core::text::os_text;
use rpd_spool::follow::Follower;
use rpd_spool::format::{self, RecordHeader, call_flag, space};
use rpd_spool::record::{RecordKind, RecordRole, Table};
use rpd_spool::removed::Removed;
use rpd_spool::writer::now;
use serde_json::json;
use zerocopy::FromBytes as _;

use crate::exit_status::SUCCESS;
use crate::failure::Failure;
use crate::launch::{self, TargetState};
use crate::long_run::size;
use crate::options::parse::{self, Parsed};
use crate::options::resolve::{Environment, resolve};
use crate::run_directory::RunDirectory;

const NAME: &str = "estimate";

const HELP: &str = "Show how much a recording takes, by kind of record, and which option makes it small

Usage: rpd estimate [--seconds N] [--json] [OPTIONS] -- PROGRAM [ARGUMENTS]

The program runs with the options of rpd until N seconds after its first call, copy or kernel [default: 2], or to its
end. Then it is ended with SIGTERM. No outputs are made.

Options:
      --seconds N  Seconds to record
      --json       Print an object for machines instead of a table
  -h, --help       Print help
The other options are those of rpd (rpd --help).
";

/// Interval at which the recording is read.
const STEP: Duration = Duration::from_millis(50);
/// Time that a program has to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(3);

/// The arguments of the command.
struct Arguments {
    time: Duration,
    json: bool,
    /// Options of rpd, and the program.
    others: Vec<OsString>,
}

fn parse_arguments(words: &[OsString]) -> Result<Option<Arguments>, Failure> {
    let mut given = Arguments {
        time: Duration::from_secs(2),
        json: false,
        others: Vec::new(),
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let value = match word.to_str() {
            Some("-h" | "--help") => return Ok(None),
            Some("--json") => {
                given.json = true;
                continue;
            }
            Some("--seconds") => rest.next().and_then(|value| value.to_str()),
            Some(text) if text.starts_with("--seconds=") => text.strip_prefix("--seconds="),
            Some("--") => {
                given.others.push(word.clone());
                given.others.extend(rest.cloned());
                break;
            }
            _ => {
                given.others.push(word.clone());
                continue;
            }
        };
        let seconds = value.and_then(|text| text.parse::<f64>().ok());
        // A day is longer than anyone waits for an estimate.
        let seconds = seconds.filter(|seconds| (0.1..=86_400.0).contains(seconds));
        given.time = seconds.map(Duration::from_secs_f64).ok_or_else(|| {
            Failure::usage(format!(
                "{NAME}: --seconds: expected a number of seconds from 0.1 to 86400"
            ))
        })?;
    }
    Ok(Some(given))
}

/// Kinds of records as the estimate tells them apart, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Hip,
    Hsa,
    OtherCalls,
    Markers,
    Dispatches,
    Copies,
    Allocations,
    Scratch,
    Counters,
    Samples,
    GraphLaunches,
    HipEvents,
    DriverEvents,
    Stacks,
    Facts,
}

impl Sort {
    const fn label(self) -> &'static str {
        match self {
            Sort::Hip => "HIP calls",
            Sort::Hsa => "HSA calls",
            Sort::OtherCalls => "other calls",
            Sort::Markers => "markers",
            Sort::Dispatches => "kernel dispatches",
            Sort::Copies => "memory copies",
            Sort::Allocations => "allocations",
            Sort::Scratch => "scratch memory",
            Sort::Counters => "counters",
            Sort::Samples => "PC samples",
            Sort::GraphLaunches => "graph launches",
            Sort::HipEvents => "HIP events",
            Sort::DriverEvents => "driver events",
            Sort::Stacks => "call stacks",
            Sort::Facts => "names and facts",
        }
    }

    /// Facts are written once, however long the program runs.
    const fn grows(self) -> bool {
        !matches!(self, Sort::Stacks | Sort::Facts)
    }
}

/// Records of a sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    records: u64,
    bytes: u64,
    /// Bytes that are arguments of calls.
    arguments: u64,
}

/// What was recorded so far.
#[derive(Debug, Default)]
struct Recorded {
    followers: BTreeMap<String, Follower>,
    /// Kinds of calls by number, of each process.
    kinds: BTreeMap<(String, u16), Sort>,
    amounts: BTreeMap<Sort, Amount>,
    /// The earliest start and the latest end of a row, on the clock of records.
    span: Option<(u64, u64)>,
}

impl Recorded {
    fn read(&mut self, run: &RunDirectory) -> Result<()> {
        for recording in run.recordings()? {
            let held = run.open_recording(&recording)?;
            let path = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
            let name = &recording.directory;
            let mut follower = self.followers.remove(name).unwrap_or_default();
            // A process that has just ended leaves its directory to the report: there is none here.
            let _ = follower.read(&path, |header, bytes, _| self.take(name, header, bytes));
            self.followers.insert(name.clone(), follower);
        }
        Ok(())
    }

    fn take(&mut self, process: &str, header: RecordHeader, bytes: &[u8]) {
        let Some(kind) = RecordKind::from_tag(header.tag) else {
            return;
        };
        let mut arguments = 0;
        let sort = match (kind, kind.role()) {
            (RecordKind::KindName, _) => {
                if let Ok((name, tail)) = format::Name::read_from_prefix(bytes)
                    && name.space == space::CALLBACK
                {
                    let len = (name.text_len as usize).min(tail.len());
                    let text = String::from_utf8_lossy(&tail[..len]);
                    let key = (process.to_owned(), name.kind as u16);
                    self.kinds.insert(key, sort_of_calls(&text));
                }
                Sort::Facts
            }
            (_, RecordRole::Row(Table::Calls) | RecordRole::HalfRow(Table::Calls)) => {
                arguments = bytes_of_arguments(kind, bytes);
                let key = (process.to_owned(), header.aux);
                match kind {
                    RecordKind::RangeEnd => Sort::Markers,
                    _ => self.kinds.get(&key).copied().unwrap_or(Sort::OtherCalls),
                }
            }
            (_, RecordRole::Row(table) | RecordRole::HalfRow(table)) => match table {
                Table::Calls => Sort::OtherCalls,
                Table::Dispatches => Sort::Dispatches,
                Table::Copies => Sort::Copies,
                Table::Allocations => Sort::Allocations,
                Table::Scratch => Sort::Scratch,
                Table::Counted => Sort::Counters,
                Table::Samples => Sort::Samples,
                Table::GraphLaunches => Sort::GraphLaunches,
                Table::HipEvents => Sort::HipEvents,
                Table::KfdEvents => Sort::DriverEvents,
            },
            (RecordKind::Selected, _) => Sort::Counters,
            (
                RecordKind::StackModule
                | RecordKind::StackCode
                | RecordKind::StackLocation
                | RecordKind::StackNode
                | RecordKind::StackSource
                | RecordKind::StackObject,
                _,
            ) => Sort::Stacks,
            (_, RecordRole::Fact | RecordRole::Completeness | RecordRole::Capture(_)) => {
                Sort::Facts
            }
        };
        if let Some(row) = Removed::from_record(header, bytes) {
            let end = row.end.max(row.start);
            let (first, last) = self.span.unwrap_or((row.start, end));
            self.span = Some((first.min(row.start), last.max(end)));
        }
        let amount = self.amounts.entry(sort).or_default();
        amount.records += 1;
        amount.bytes += bytes.len() as u64;
        amount.arguments += arguments;
    }
}

/// The sort of the calls of a kind of the provider.
fn sort_of_calls(name: &str) -> Sort {
    use rpd_core::domain::Domain;
    match Kind::from_name(name).map(Kind::domain) {
        Some(Domain::HipApi) => Sort::Hip,
        Some(Domain::HsaApi) => Sort::Hsa,
        Some(Domain::MarkerApi) => Sort::Markers,
        _ => Sort::OtherCalls,
    }
}

/// Bytes of a call's record that are arguments.
fn bytes_of_arguments(kind: RecordKind, bytes: &[u8]) -> u64 {
    let Ok((call, tail)) = format::CallRecord::read_from_prefix(bytes) else {
        return 0;
    };
    let has_arguments = call.flags & (call_flag::ARGUMENTS | call_flag::ARGUMENT_TEXTS) != 0;
    if kind == RecordKind::Call && has_arguments {
        tail.len() as u64
    } else {
        0
    }
}

/// The estimate: what was recorded in a time.
struct Estimate {
    amounts: BTreeMap<Sort, Amount>,
    time: Duration,
}

impl Estimate {
    fn per_minute(&self, bytes: u64) -> f64 {
        bytes as f64 * 60.0 / self.time.as_secs_f64().max(1e-3)
    }

    fn bytes_of(&self, wanted: impl Fn(Sort) -> bool) -> u64 {
        let amounts = self.amounts.iter().filter(|(sort, _)| wanted(**sort));
        amounts.map(|(_, amount)| amount.bytes).sum()
    }

    /// What makes it smaller, the most effective first: text and bytes a minute.
    fn advice(&self) -> Vec<(String, f64)> {
        let all = self.bytes_of(Sort::grows);
        let of = |sort: Sort| self.amounts.get(&sort).copied().unwrap_or_default();
        let mut found = Vec::new();
        let device = self.bytes_of(|sort| matches!(sort, Sort::Dispatches | Sort::Copies));
        let has_device = device > 0;
        let hsa = of(Sort::Hsa).bytes;
        if hsa > 0 {
            let text = "without HSA calls (--runtime-trace for --sys-trace)".to_owned();
            found.push((text, self.per_minute(all - hsa)));
        }
        let arguments: u64 = self.amounts.values().map(|amount| amount.arguments).sum();
        if arguments > 0 {
            let text = "without arguments of HIP calls (RPDT_ROCPROF_NOARGS=1)".to_owned();
            found.push((text, self.per_minute(all - arguments)));
        }
        if has_device && device < all {
            let text = "kernels and copies only (--kernel-trace --memory-copy-trace)".to_owned();
            found.push((text, self.per_minute(device)));
        }
        if has_device {
            let text = "sums of kernels and copies, and the latest 64 MB (--light)".to_owned();
            found.push((text, 0.0));
        }
        // Options that are as good as none are no advice.
        found.retain(|(_, rate)| *rate < 0.95 * self.per_minute(all));
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found
    }

    fn json(&self) -> serde_json::Value {
        let kinds: Vec<_> = (self.amounts.iter())
            .map(|(sort, amount)| {
                json!({
                    "kind": sort.label(),
                    "records": amount.records,
                    "bytes": amount.bytes,
                    "bytes_per_minute": if sort.grows() { self.per_minute(amount.bytes) } else { 0.0 },
                })
            })
            .collect();
        let advice: Vec<_> = (self.advice().into_iter())
            .map(|(text, rate)| json!({"option": text, "bytes_per_minute": rate}))
            .collect();
        json!({
            "seconds": self.time.as_secs_f64(),
            "bytes_per_minute": self.per_minute(self.bytes_of(Sort::grows)),
            "kinds": kinds,
            "smaller": advice,
        })
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:<20}{:>18}{:>16}\n",
            "Kind", "Records a minute", "Size a minute"
        );
        for (sort, amount) in self.amounts.iter().filter(|(sort, _)| sort.grows()) {
            text += &format!(
                "{:<20}{:>18.0}{:>16}\n",
                sort.label(),
                self.per_minute(amount.records),
                size(self.per_minute(amount.bytes))
            );
        }
        let all = self.per_minute(self.bytes_of(Sort::grows));
        text += &format!("{:<20}{:>18}{:>16}\n", "all", "", size(all));
        let once = self.bytes_of(|sort| !sort.grows());
        text += &format!("and {} once, for names and facts\n", size(once as f64));
        for (option, rate) in self.advice() {
            text += &match rate {
                0.0 => format!("  {option}: no more, however long it runs\n"),
                rate => format!("  {option}: {} a minute\n", size(rate)),
            };
        }
        text += "  --spool-limit SIZE keeps the latest records, and sums of the others; --rotate TIME writes them out meanwhile\n";
        text
    }
}

/// Runs `rpd estimate [options] -- PROGRAM`; returns the exit status.
pub(crate) fn run(words: &[OsString]) -> Result<u8> {
    let Some(given) = parse_arguments(words)? else {
        return crate::print(HELP);
    };
    let (options, command) = match parse::parse(&given.others)? {
        Parsed::Run(options, command) => (options, command),
        Parsed::Help(_) | Parsed::Version => return crate::print(HELP),
    };
    let environment = Environment::current(Compat::None)?;
    let mut plan = resolve(*options, command, &environment)?;
    for warning in &plan.warnings {
        eprintln!("{}", environment.compat.warning(warning));
    }
    let [pass] = plan.passes.as_mut_slice() else {
        let text = format!("{NAME}: the options ask for several passes: give those of one");
        return Err(Failure::usage(text).into());
    };
    if pass.options.command.is_empty() {
        let text = format!("{NAME}: expected a program: rpd {NAME} [OPTIONS] -- PROGRAM");
        return Err(Failure::usage(text).into());
    }
    let place = TemporaryDirectory::new()?;
    pass.options.output_directory = os_text::escape(place.path().as_os_str());
    // What is estimated is the whole recording.
    pass.options.rotate = None;
    pass.options.collector.in_pieces = false;
    pass.options.collector.spool_limit = None;
    let (_, estimate) = launch::watched(pass, &environment, |run, target| {
        look(run, target, given.time)
    })?;
    let Some(estimate) = estimate else {
        let text =
            format!("{NAME}: nothing was recorded: the program made no GPU call that is traced");
        return Err(Failure::failed(text).into());
    };
    let text = if given.json {
        format!("{}\n", estimate.json())
    } else {
        estimate.text()
    };
    crate::print(&text)?;
    Ok(SUCCESS)
}

/// Reads the recording until the time is over, and ends the program then. `None` when nothing was recorded.
fn look(run: &RunDirectory, target: &TargetState, time: Duration) -> Result<Option<Estimate>> {
    let mut recorded = Recorded::default();
    loop {
        // In this order: what was recorded before the end is read.
        let has_ended = target.has_ended();
        recorded.read(run)?;
        let is_over = recorded
            .span
            .is_some_and(|(first, _)| now().saturating_sub(first) >= time.as_nanos() as u64);
        if has_ended || is_over {
            break;
        }
        std::thread::sleep(STEP);
    }
    let Some((first, last)) = recorded.span else {
        return Ok(None);
    };
    if !target.has_ended() {
        end(run, target);
    }
    // Of what was read: reading takes time as well.
    let time = Duration::from_nanos(last - first);
    Ok(Some(Estimate {
        amounts: recorded.amounts,
        time: time.max(STEP),
    }))
}

/// Ends the program and its processes: first in its own way, then for good.
fn end(run: &RunDirectory, target: &TargetState) {
    for (signal, patience) in [(Signal::SIGTERM, PATIENCE), (Signal::SIGKILL, PATIENCE)] {
        for attached in run.attached() {
            if let Ok(pid) = i32::try_from(attached.seen.0) {
                // It may have ended already.
                let _ = kill(Pid::from_raw(pid), signal);
            }
        }
        let begin = Instant::now();
        while !target.has_ended() && begin.elapsed() < patience {
            std::thread::sleep(STEP);
        }
        if target.has_ended() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(amounts: &[(Sort, u64, u64)]) -> Estimate {
        let amount = |&(sort, bytes, arguments): &(Sort, u64, u64)| {
            let records = bytes / 100;
            let amount = Amount {
                records,
                bytes,
                arguments,
            };
            (sort, amount)
        };
        Estimate {
            amounts: amounts.iter().map(amount).collect(),
            time: Duration::from_secs(2),
        }
    }

    #[test]
    fn estimate_names_the_options_that_leave_most_out() {
        let found = estimate(&[
            (Sort::Hip, 3_000_000, 1_000_000),
            (Sort::Hsa, 6_000_000, 0),
            (Sort::Dispatches, 1_000_000, 0),
            (Sort::Facts, 77, 0),
        ]);
        let advice = found.advice();
        let rates: Vec<f64> = advice.iter().map(|(_, rate)| *rate).collect();
        assert_eq!(rates, [0.0, 30e6, 120e6, 270e6]);
        assert!(advice[1].0.contains("--kernel-trace"));
        let text = found.text();
        assert!(text.contains("300 MB"), "{text}");
        assert_eq!(found.json()["bytes_per_minute"], 300e6);
        let kernels = estimate(&[(Sort::Dispatches, 1_000_000, 0)]);
        assert_eq!(kernels.advice().len(), 1, "only --light is less");
    }
}

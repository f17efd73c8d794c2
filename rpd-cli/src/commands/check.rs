//! `rpd check -- PROGRAM`: runs a program on the simulated GPU and reports the errors of its kernels.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use rpd_core::options::{Backend, CollectorOptions, Options};
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_core::text::os_text;
use rpd_gfx::isa::lane_numbers;
use rpd_gfx::source;
use rpd_spool::demangle::demangle_any;
use rpd_spool::kernel_check::{FINDINGS, LAUNCHES, UNCHECKED};
use rpd_spool::regular_file::{self, LARGEST_CODE, Links};
use rpd_symbols::code::DebugInfo;
use serde::Serialize;

use crate::exit_status::FAILED;
use crate::failure::Failure;
use crate::options::{Choice as _, SimulatedGpu};
use crate::process::spawn::{self, Signals};
use crate::process::{backend, environment, program};
use crate::wording::count;

const NAME: &str = "check";
/// Beginning of the names of HIP's own kernels.
const RUNTIMES_KERNELS: &str = "__amd_rocclr_";
/// Greatest number of kernels that the last line names.
const MOST_NAMED: usize = 10;

/// Largest file of findings that is read, in bytes; the program can write to it, too.
const LARGEST_REPORT: u64 = 256 << 20;

/// Run a program on the simulated GPU and report errors of its kernels
///
/// The errors are data races in LDS and global memory, reads of memory that was never written, accesses outside of
/// allocations and to freed memory, misaligned atomics, and barriers that a part of a wave skips. The program's output is not
/// changed; the report is printed to standard error when the program has ended. Without a launch there is nothing to check: the
/// exit status is then 1.
#[derive(Debug, Parser)]
#[command(override_usage = "rpd check [options] -- PROGRAM [ARGUMENT...]")]
struct Arguments {
    /// File for the findings as JSON, which are then not printed; - is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Exit status if errors were found and the program ended with 0
    #[arg(long, value_name = "STATUS", default_value_t = FAILED)]
    error_exitcode: u8,
    /// GPU to simulate [default: RPD_SIM_GPU, or gfx90a]
    #[arg(long, value_name = "GPU", value_parser = PossibleValuesParser::new(SimulatedGpu::WORDS))]
    sim_gpu: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// A place in code.
#[derive(Debug, Clone, Serialize)]
struct CodePlace {
    /// Address in the code object.
    address: u64,
    /// Source lines, the innermost of an inline chain first.
    lines: Vec<String>,
}

/// The second access of a race.
#[derive(Debug, Clone, Serialize)]
struct OtherAccess {
    place: CodePlace,
    workgroup: u64,
    wave: u32,
    writes: bool,
}

/// A finding, as the simulator wrote it.
#[derive(Debug, Clone, Serialize)]
struct Finding {
    /// Description of the finding.
    kind: String,
    /// Name of the kernel, demangled.
    kernel: String,
    place: CodePlace,
    workgroup: u64,
    wave: u32,
    /// Numbers of the lanes, ranges with a dash; empty for a scalar load.
    lanes: String,
    /// Address that was accessed; of LDS an offset.
    address: u64,
    /// Bytes of each lane; 0 if nothing was accessed.
    bytes: u32,
    writes: bool,
    /// Number of occurrences in the first dispatch that showed it.
    times: u64,
    /// Description of the address.
    memory: Option<String>,
    other: Option<OtherAccess>,
}

pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = super::parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    if given.command.is_empty() {
        return Err(Failure::usage("check: no program given (rpd check -- PROGRAM)").into());
    }
    let output = match &given.json {
        Some(path) => Some(super::destination(NAME, Some(path), &given.command[..1])?),
        None => None,
    };
    let directory = TemporaryDirectory::new().context(NAME)?;
    let status = execute(&given, directory.path())?;
    let findings = read(directory.path())?;
    if let Some(reason) = unchecked(directory.path())? {
        let text = format!("check: the kernels of a process were not checked: {reason}");
        return Err(Failure::failed(text).into());
    }
    let launches = launches(directory.path())?;
    match output {
        // Without a launch it is not known whether there are errors.
        None if launches.is_empty() && findings.is_empty() => {}
        None => crate::print_message(&report(&findings)),
        Some(output) => output.write(|out| -> Result<()> {
            let text = json(&findings)?;
            Ok(writeln!(out, "{text}")?)
        })?,
    }
    eprintln!("rpd: {}", checked(&launches));
    Ok(match status {
        0 if !findings.is_empty() => given.error_exitcode,
        // Nothing is known of kernels that did not run.
        0 if launches.is_empty() => FAILED,
        status => status,
    })
}

/// The launches of all processes of the run that were checked, by the name of the kernel.
fn launches(directory: &Path) -> Result<BTreeMap<String, u64>> {
    let mut launches = BTreeMap::new();
    for file in files_of_processes(directory, LAUNCHES)? {
        let text = regular_file::read_text(&file, LARGEST_REPORT)
            .with_context(|| format!("check: {} cannot be read", file.display()))?;
        for line in text.lines() {
            let Some((count, name)) = line.split_once('\t') else {
                continue;
            };
            // Kernels with which the runtime copies and fills are not the program's.
            if !name.starts_with(RUNTIMES_KERNELS) {
                let count = count.parse::<u64>().unwrap_or(0);
                *launches.entry(demangle_any(name).into_owned()).or_default() += count;
            }
        }
    }
    Ok(launches)
}

/// Text for the kernels that were checked.
fn checked(launches: &BTreeMap<String, u64>) -> String {
    if launches.is_empty() {
        return "nothing was checked: the program launched no kernel".to_owned();
    }
    let mut kernels: Vec<(&String, &u64)> = launches.iter().collect();
    kernels.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let shown = kernels.iter().take(MOST_NAMED);
    let shown: Vec<String> = shown
        .map(|(name, times)| format!("{name} ({times})"))
        .collect();
    let more = match kernels.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "checked {} of {}: {}{more}",
        count(launches.values().sum::<u64>(), "launch"),
        count(launches.len() as u64, "kernel"),
        shown.join(", ")
    )
}

/// Runs the program to its end. Returns its exit status.
fn execute(given: &Arguments, directory: &Path) -> Result<u8> {
    let options = Options {
        command: given
            .command
            .iter()
            .map(|word| os_text::escape(word))
            .collect(),
        backend: Backend::Sim,
        sim_gpu: given.sim_gpu.clone(),
        collector: CollectorOptions {
            check_kernels: true,
            disable_signal_handlers: true,
            ..CollectorOptions::default()
        },
        ..Options::default()
    };
    let file = program::of_pass(&options)?;
    let inherited = |name: &str| std::env::var_os(name);
    let library_path = inherited("LD_LIBRARY_PATH");
    let links = directory.join("lib");
    std::fs::create_dir(&links).with_context(|| links.display().to_string())?;
    let provider = backend::choose(&options, &[], library_path.as_deref(), &links)?;
    let changes = environment::changes(&options, &provider, directory, true, &inherited)?;
    let signals = Signals::hold()?;
    let target = spawn::start(&file, &options.command, &changes, &signals)?;
    Ok(spawn::wait(target, &signals)?.status())
}

/// The files of all processes of the run whose names begin like this, in the order of their process ids.
fn files_of_processes(directory: &Path, prefix: &str) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .with_context(|| directory.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with(prefix))
        })
        .collect();
    files.sort();
    Ok(files)
}

/// Reason why the kernels of the first unchecked process were not checked; `None` if all were.
fn unchecked(directory: &Path) -> Result<Option<String>> {
    let files = files_of_processes(directory, UNCHECKED)?;
    let Some(file) = files.first() else {
        return Ok(None);
    };
    let text = regular_file::read_text(file, LARGEST_REPORT);
    let text = text.with_context(|| format!("check: {} cannot be read", file.display()))?;
    Ok(Some(text))
}

/// The findings of all processes of the run, in the order of their process ids.
fn read(directory: &Path) -> Result<Vec<Finding>> {
    let mut objects = Objects {
        directory,
        known: HashMap::new(),
    };
    let mut findings = Vec::new();
    for file in files_of_processes(directory, FINDINGS)? {
        let text = regular_file::read_text(&file, LARGEST_REPORT)
            .with_context(|| format!("check: {} cannot be read", file.display()))?;
        for line in text.lines() {
            // The last line of a program that was killed may be incomplete.
            if let Some(finding) = finding(line, &mut objects) {
                add(&mut findings, finding);
            }
        }
    }
    Ok(findings)
}

/// Adds a finding, to a finding of the same lines if there is one: loops that were unrolled have several instructions
/// for a line.
fn add(findings: &mut Vec<Finding>, finding: Finding) {
    fn key(finding: &Finding) -> (&str, &str, &[String], Option<&[String]>) {
        let other = finding.other.as_ref().map(|other| &*other.place.lines);
        (&finding.kind, &finding.kernel, &finding.place.lines, other)
    }
    let has_lines = !finding.place.lines.is_empty();
    let known = findings
        .iter_mut()
        .find(|known| has_lines && key(known) == key(&finding));
    match known {
        Some(known) => known.times += finding.times,
        None => findings.push(finding),
    }
}

/// Code objects that the simulator saved, and the places in them that have been looked up.
struct Objects<'a> {
    directory: &'a Path,
    known: HashMap<(String, u64), Vec<String>>,
}

impl Objects<'_> {
    fn place(&mut self, object: &str, address: u64) -> CodePlace {
        let key = (object.to_owned(), address);
        let lines = match self.known.get(&key) {
            Some(lines) => lines.clone(),
            None => {
                let lines = self.lines(object, address);
                self.known.insert(key, lines.clone());
                lines
            }
        };
        CodePlace { address, lines }
    }

    fn lines(&self, object: &str, address: u64) -> Vec<String> {
        // A program without debug information, or one that has damaged its code object, has no lines.
        let path = self.directory.join(object);
        let Ok(bytes) = regular_file::read(&path, Links::Refuse, LARGEST_CODE) else {
            return Vec::new();
        };
        let Ok(code) = DebugInfo::parse(&bytes) else {
            return Vec::new();
        };
        let places = code.places(address).into_iter();
        places.map(|place| place.to_string()).collect()
    }
}

/// A line of the simulator's file; `None` if it is incomplete.
fn finding(line: &str, objects: &mut Objects<'_>) -> Option<Finding> {
    let mut fields = line.split('\t');
    let mut next = || fields.next();
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let kind = next()?.to_owned();
    let kernel = demangle_any(next()?).into_owned();
    let object = next()?;
    let address = hex(next()?)?;
    let workgroup = next()?.parse().ok()?;
    let wave = next()?.parse().ok()?;
    let lanes = lane_numbers(hex(next()?)?);
    let data = hex(next()?)?;
    let bytes = next()?.parse().ok()?;
    let writes = next()? == "1";
    let times = next()?.parse().ok()?;
    let memory = Some(next()?)
        .filter(|text| !text.is_empty())
        .map(str::to_owned);
    let other = match next()? {
        "" => None,
        other => Some(OtherAccess {
            place: objects.place(object, hex(other)?),
            workgroup: next()?.parse().ok()?,
            wave: next()?.parse().ok()?,
            writes: next()? == "1",
        }),
    };
    Some(Finding {
        kind,
        kernel,
        place: objects.place(object, address),
        workgroup,
        wave,
        lanes,
        address: data,
        bytes,
        writes,
        times,
        memory,
        other,
    })
}

fn json(findings: &[Finding]) -> Result<String> {
    serde_json::to_string_pretty(findings).context("check: cannot write the findings as JSON")
}

/// The findings as text.
fn report(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let place = |place: &CodePlace| {
            source::chain(&place.lines).unwrap_or_else(|| {
                format!("{:#x} (compile with -g for source lines)", place.address)
            })
        };
        // Several lanes are written as a list with ranges.
        let lanes = match finding.lanes.as_str() {
            "" => String::new(),
            many if many.contains([',', '-']) => format!(", lanes {many}"),
            one => format!(", lane {one}"),
        };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "rpd: {}: kernel {}", finding.kind, finding.kernel);
        // A finding without bytes is about control flow: a barrier that not all lanes reach.
        let access = match (finding.bytes, finding.writes) {
            (0, _) => "reached".to_owned(),
            (bytes, true) => format!("write of {bytes} bytes"),
            (bytes, false) => format!("read of {bytes} bytes"),
        };
        let _ = writeln!(
            text,
            "  {access} at {}, workgroup {}, wave {}{lanes}",
            place(&finding.place),
            finding.workgroup,
            finding.wave,
        );
        if let Some(memory) = &finding.memory {
            let _ = writeln!(text, "  address {:#x}: {memory}", finding.address);
        // Addresses of LDS are offsets, and belong to no allocation.
        } else if finding.kind.contains("LDS") {
            let _ = writeln!(text, "  byte {} of LDS", finding.address);
        }
        if let Some(other) = &finding.other {
            let what = match (finding.bytes, other.writes) {
                (0, _) => "other lanes continue",
                (_, true) => "unordered write",
                (_, false) => "unordered read",
            };
            let _ = writeln!(
                text,
                "  {what} at {}, workgroup {}, wave {}",
                place(&other.place),
                other.workgroup,
                other.wave,
            );
        }
        if finding.times > 1 {
            let _ = writeln!(text, "  {} times in this dispatch", finding.times);
        }
    }
    let _ = match findings.len() {
        0 => writeln!(text, "rpd: no errors found"),
        1 => writeln!(text, "rpd: 1 error found"),
        n => writeln!(text, "rpd: {n} errors found"),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_findings_leave_out_incomplete_lines() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut objects = Objects {
            directory: directory.path(),
            known: HashMap::new(),
        };
        let line =
            "data race in LDS\t_Z4racePi\tobject-1-0.co\t1f8\t3\t1\tf\t10\t4\t1\t7\t\t1c0\t3\t0\t1";
        let whole = finding(line, &mut objects).expect("a finding");
        assert_eq!(
            (whole.kernel.as_str(), whole.lanes.as_str()),
            ("race(int*)", "0-3")
        );
        assert_eq!(
            report(&[whole]),
            "rpd: data race in LDS: kernel race(int*)\n  \
             write of 4 bytes at 0x1f8 (compile with -g for source lines), workgroup 3, wave 1, lanes 0-3\n  \
             byte 16 of LDS\n  \
             unordered write at 0x1c0 (compile with -g for source lines), workgroup 3, wave 0\n  \
             7 times in this dispatch\nrpd: 1 error found\n"
        );
        for end in 0..line.len() {
            let _ = finding(&line[..end], &mut objects);
        }
    }
}

//! `rpd replay`: plays a capture back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::{Parser, ValueEnum};
use rpd_core::options::{Backend, Options, ProviderChoice};
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_formats::destination::Destination;
use rpd_replay::{
    KernelChoice, KernelName, KernelRuns, Placement, Player, Repeat, ReplayError, Report, Status,
    Step, Verify,
};
use rpd_spool::kernel_filter::{Matcher, compile};

use super::Opened;
use crate::exit_status::{self, DAMAGED, DIFFERS, FAILED, SUCCESS};
use crate::failure::Failure;
use crate::process::backend;
use crate::wording::count;

const NAME: &str = "replay";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Addresses {
    /// The addresses of the capture; the replay is refused where they cannot be had
    Same,
    /// Other addresses; arguments are translated
    Remap,
    /// The addresses of the capture where they can be had
    Auto,
}

impl Addresses {
    pub(super) fn placement(self) -> Placement {
        match self {
            Addresses::Same => Placement::Same,
            Addresses::Remap => Placement::Remap,
            Addresses::Auto => Placement::Auto,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Streams {
    /// As in the capture
    Keep,
    /// All work in one stream
    Serial,
}

/// Play the GPU calls of a capture, without the program that made them
#[derive(Debug, Parser)]
struct Arguments {
    /// Capture: a directory, or a capsule (a file of rpd capture pack)
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,
    /// First call whose results are compared; the calls before it are played, too [default: 1]
    #[arg(long, value_name = "N")]
    from: Option<u64>,
    /// Last call to play [default: the last of the capture]
    #[arg(long, value_name = "N")]
    until: Option<u64>,
    /// Addresses of memory
    #[arg(long, value_enum, default_value = "auto")]
    va: Addresses,
    /// In remap mode, translate words of uploaded data that look like addresses
    #[arg(long)]
    deep: bool,
    /// Take arguments for addresses only where the kernel declares them as pointers
    #[arg(long)]
    no_guess: bool,
    /// Streams of the replay
    #[arg(long, value_enum, default_value = "keep")]
    streams: Streams,
    /// Compare results: exact, tol:ABSOLUTE,RELATIVE, self[:ABSOLUTE,RELATIVE] (plays twice, and tolerates that only where the two
    /// replays differ) or off
    #[arg(long, value_name = "HOW", default_value = "exact", value_parser = verify)]
    verify: Verify,
    /// Write the results to FILE and do not compare them: the first of the two replays of `--verify self`
    #[arg(long, value_name = "FILE", hide = true)]
    keep_results: Option<PathBuf>,
    /// Device NEW to use for device OLD of the capture; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = device)]
    device: Vec<(i32, i32)>,
    /// Launch to run many times: a kernel by its name, a part of it or a regular expression, and the number of the launch
    #[arg(long, value_name = "NAME|REGEX[#N]")]
    kernel: Option<String>,
    /// Number of measured runs of that launch
    #[arg(long, value_name = "N", default_value_t = 100, requires = "kernel")]
    iterations: u32,
    /// Number of runs before those, not measured
    #[arg(long, value_name = "N", default_value_t = 3, requires = "kernel")]
    warmup: u32,
    /// Code object FILE to use for a kernel; may be repeated
    #[arg(long, value_name = "KERNEL=FILE", value_parser = replacement)]
    replace: Vec<(String, PathBuf)>,
    /// End with status 0 although there is no result to compare
    #[arg(long)]
    allow_no_results: bool,
    /// Stop before each call and ask for a command
    #[arg(long)]
    step: bool,
    /// Leave out calls that cannot be replayed
    #[arg(long)]
    force: bool,
    /// File for the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Platform to play on: rocm, sim or auto
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = super::parse_backend)]
    backend: Backend,
    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

impl Arguments {
    /// The destination of the results: neither in the capture nor one of the code objects.
    fn output(&self, json: &Path) -> Result<Destination, Failure> {
        let mut inputs = vec![rpd_capture::resolve(&self.capture)];
        inputs.extend(self.replace.iter().map(|(_, file)| file.clone()));
        crate::commands::destination(NAME, Some(json), inputs)
    }
}

/// Tolerances of `--verify self` for results that differ from replay to replay: relative, absolute.
const VARYING: (f64, f64) = (1e-5, 1e-5);

fn verify(text: &str) -> Result<Verify, String> {
    let numbers = |numbers: &str| {
        let (absolute, relative) = numbers.split_once(',')?;
        let parsed = (absolute.parse::<f64>().ok()?, relative.parse::<f64>().ok()?);
        (parsed.0 >= 0.0 && parsed.1 >= 0.0).then_some(parsed)
    };
    let known = match text.split_once(':') {
        None if text == "exact" => Some(Verify::Exact),
        None if text == "off" => Some(Verify::Off),
        None if text == "self" => Some(Verify::Repeated(VARYING.0, VARYING.1)),
        Some(("tol", rest)) => numbers(rest).map(|(a, r)| Verify::Tolerance(a, r)),
        Some(("self", rest)) => numbers(rest).map(|(a, r)| Verify::Repeated(a, r)),
        _ => None,
    };
    known.ok_or_else(|| {
        "expected exact, off, self, self:ABSOLUTE,RELATIVE or tol:ABSOLUTE,RELATIVE such as tol:1e-6,1e-5".to_owned()
    })
}

fn device(text: &str) -> Result<(i32, i32), String> {
    text.split_once('=')
        .and_then(|(old, new)| Some((old.parse().ok()?, new.parse().ok()?)))
        .ok_or_else(|| "expected two numbers of devices such as 0=1".to_owned())
}

fn replacement(text: &str) -> Result<(String, PathBuf), String> {
    text.split_once('=')
        .filter(|(name, file)| !name.is_empty() && !file.is_empty())
        .map(|(name, file)| (name.to_owned(), PathBuf::from(file)))
        .ok_or_else(|| "expected a kernel and a file such as scale=scale.co".to_owned())
}

/// Selection of kernels, and the number of a launch of them, from `NAME[#N]` or `REGEX[#N]`.
pub(super) fn launch_of(text: &str) -> Option<(KernelName, u64)> {
    let (name, launch) = match text.rsplit_once('#') {
        Some((name, number)) => (name, number.parse().ok()?),
        None => (text, 1),
    };
    if launch == 0 || name.is_empty() {
        return None;
    }
    let pattern = compile(name)
        .map_err(|error| error.to_string())
        .and_then(|table| {
            Matcher::from_bytes(table).ok_or_else(|| "its table is damaged".to_owned())
        });
    Some((KernelName::new(name.to_owned(), pattern), launch))
}

/// The kernel and launch of the option `--kernel`.
pub(super) fn kernel(command: &str, text: &str) -> Result<(KernelName, u64), Failure> {
    launch_of(text).ok_or_else(|| {
        Failure::usage(format!(
            "{command}: --kernel: expected a name or pattern, and perhaps the number of a launch such as scale#3"
        ))
    })
}

/// The HIP runtime of a replay.
pub(super) struct Runtime {
    pub(super) library: PathBuf,
    /// Links to the simulated runtime, which is loaded from there.
    _links: TemporaryDirectory,
}

impl Runtime {
    /// Looks for the runtime. If it is the simulated one because there is no other, a line says so unless `quiet`.
    pub(super) fn choose(wanted: Backend, quiet: bool) -> Result<Runtime> {
        rpd_replay::exit_on_abort(exit_status::API);
        let links = TemporaryDirectory::new()?;
        let mut options = Options {
            backend: wanted,
            ..Options::default()
        };
        // Nothing is recorded: the runtime is all that a replay needs of an installation.
        options.collector.provider = ProviderChoice::Direct;
        let provider = backend::choose(
            &options,
            &crate::options::default_sdk_suffixes(),
            std::env::var_os("LD_LIBRARY_PATH").as_deref(),
            links.path(),
        )?;
        if let Some(reason) = provider.fallback.as_ref().filter(|_| !quiet) {
            eprintln!("rpd: {reason}: the replay runs on the simulated GPU");
        }
        Ok(Runtime {
            library: backend::hip(&provider)?,
            _links: links,
        })
    }
}

pub(super) fn failure(error: ReplayError) -> Failure {
    let status = match error.status {
        Status::Failed => FAILED,
        Status::Damaged => DAMAGED,
        Status::Api => exit_status::API,
        Status::Differs => DIFFERS,
        Status::Incompatible => exit_status::INCOMPATIBLE,
        Status::Unsupported => exit_status::UNSUPPORTED,
    };
    Failure::new(status, error.message)
}

/// A replay by another process, because a runtime that has played a capture cannot give the same addresses again.
struct OtherReplay {
    file: PathBuf,
    _directory: TemporaryDirectory,
}

impl OtherReplay {
    /// Makes a replay with these arguments in another process. Returns its exit status when it did not play to its end.
    fn make(arguments: &[OsString]) -> Result<Result<OtherReplay, u8>> {
        let directory = TemporaryDirectory::new()?;
        let file = directory.path().join("results");
        let program = std::env::current_exe().context("cannot find the path of rpd")?;
        let status = std::process::Command::new(program)
            .arg(NAME)
            .args(arguments)
            .arg("--keep-results")
            .arg(&file)
            .status()
            .context("cannot start the first of the two replays")?;
        Ok(if status.success() {
            Ok(OtherReplay {
                file,
                _directory: directory,
            })
        } else {
            Err(status
                .code()
                .and_then(|code| u8::try_from(code).ok())
                .unwrap_or(FAILED))
        })
    }
}

/// Runs `rpd replay`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(mut given) = crate::commands::parse::<Arguments>(NAME, arguments)? else {
        return Ok(SUCCESS);
    };
    super::check_range(NAME, given.from.unwrap_or(0), given.until)?;
    // The other replay reports nothing of its own: its user is this process.
    given.quiet |= given.keep_results.is_some();
    // Opened before the replay, so that a file that cannot be written is an error at once.
    let json = match &given.json {
        Some(json) => Some(given.output(json)?),
        None => None,
    };
    let opened = Opened::new(&given.capture)?;
    let path = opened.path();
    // Before a runtime is looked for: a capture that cannot be read needs none.
    let manifest = rpd_capture::Manifest::read(path).map_err(super::failure)?;
    let other = match (given.verify, &given.keep_results) {
        (Verify::Repeated(..), None) => match OtherReplay::make(arguments)? {
            Ok(other) => Some(other),
            // The child has printed the reason.
            Err(status) => return Ok(status),
        },
        _ => None,
    };
    let repeat = match (&given.keep_results, &other) {
        (Some(file), _) => Some(Repeat::Keep(file.clone())),
        (None, Some(other)) => Some(Repeat::Compare(other.file.clone())),
        (None, None) => None,
    };
    let runtime = Runtime::choose(given.backend, given.quiet)?;
    // Told before the replay, which may take long and end early.
    if !manifest.clean && !given.quiet {
        eprintln!(
            "rpd: {}: the capture is unclean; it is played up to its last complete call",
            given.capture.display()
        );
    }
    let kernel = match &given.kernel {
        Some(text) => {
            let (name, launch) = kernel(NAME, text)?;
            Some(KernelChoice {
                name,
                launch,
                iterations: given.iterations,
                warmup: given.warmup,
                seq: None,
            })
        }
        None => None,
    };
    let options = rpd_replay::Options {
        library: runtime.library,
        from: given.from,
        until: given.until,
        placement: given.va.placement(),
        serial: given.streams == Streams::Serial,
        verify: given.verify,
        repeat,
        devices: given.device.iter().copied().collect::<BTreeMap<_, _>>(),
        force: given.force,
        deep: given.deep,
        guess: !given.no_guess,
        kernel,
        replace: given.replace.clone(),
        print_note: notes(given.quiet),
    };
    let mut prompt = Prompt {
        on: given.step && given.keep_results.is_none(),
        until: None,
    };
    let report = rpd_replay::replay(path, options, |player, call| prompt.prompt(player, call))
        .map_err(failure)?;
    // Results are compared in the process that started this one.
    if given.keep_results.is_some() {
        return Ok(SUCCESS);
    }
    if let Some(json) = json {
        json.write(|out| -> Result<()> {
            serde_json::to_writer_pretty(&mut *out, &report)
                .context("cannot write the report as JSON")?;
            Ok(writeln!(out)?)
        })?;
    }
    print_report(&given, &report);
    // Different results matter more than missing ones.
    if !report.mismatches.is_empty() {
        return Ok(DIFFERS);
    }
    if report.compared == 0 && wants_results(&given) {
        eprintln!(
            "rpd: {}: there is no result to compare: the calls that were played copy none to the host, or it was captured without \
             (--outputs, --data); --allow-no-results ends with status 0",
            given.capture.display()
        );
        return Ok(FAILED);
    }
    Ok(SUCCESS)
}

/// Whether a replay without a result to compare is a failure: not where something else is of interest.
fn wants_results(given: &Arguments) -> bool {
    let is_measured = given.kernel.is_some() || given.step;
    !is_measured && given.verify != Verify::Off && !given.allow_no_results
}

/// Prints a note of a replay, or nothing.
pub(super) fn notes(quiet: bool) -> fn(&str) {
    if quiet {
        |_| {}
    } else {
        |note| eprintln!("rpd: {note}")
    }
}

/// Number of results that are reported one by one.
const MOST_SHOWN: usize = 10;

fn print_report(given: &Arguments, report: &Report) {
    // One mistake can make thousands of results differ.
    for mismatch in report.mismatches.iter().take(MOST_SHOWN) {
        eprintln!("rpd: {mismatch}");
    }
    if report.mismatches.len() > MOST_SHOWN {
        eprintln!(
            "rpd: and {} more results differ",
            report.mismatches.len() - MOST_SHOWN
        );
    }
    if given.quiet {
        return;
    }
    // Differences within the tolerance are remarks; `--quiet` leaves errors only.
    for varying in report.varying.iter().take(MOST_SHOWN) {
        eprintln!("rpd: {varying}");
    }
    if report.varying.len() > MOST_SHOWN {
        eprintln!(
            "rpd: and {} more results differ from replay to replay",
            report.varying.len() - MOST_SHOWN
        );
    }
    let (certain, probable) = report.translated;
    if certain + probable > 0 {
        eprintln!(
            "rpd: {certain} pointers were translated, and {probable} words because they look like addresses"
        );
    }
    if let Some(kernel) = &report.kernel {
        eprintln!("{}", times(kernel));
    }
    let place = if report.same_addresses {
        "at the addresses of the capture"
    } else {
        "at other addresses"
    };
    let verified = match report.compared {
        0 => "no result was compared".to_owned(),
        compared => {
            let varying = report.varying.len() as u64;
            let equal = compared - report.mismatches.len() as u64 - varying;
            let close = match varying {
                0 => String::new(),
                some => format!(", {some} are equal within the tolerance"),
            };
            format!("{equal} of {compared} results are equal{close}")
        }
    };
    eprintln!(
        "rpd: played {} with {} in {:.1} ms {place}; {verified}",
        count(report.calls, "call"),
        count(report.launches, "launch"),
        report.duration as f64 / 1e6
    );
}

fn times(kernel: &KernelRuns) -> String {
    let (mean, deviation) = kernel.mean();
    let micro = |milliseconds: f64| milliseconds * 1e3;
    format!(
        "rpd: {}: {} runs, min {:.1} us, p50 {:.1}, p95 {:.1}, mean {:.1}, deviation {:.1}; {} bytes of {} put back before each",
        kernel.name,
        kernel.milliseconds.len(),
        micro(kernel.quantile(0.0)),
        micro(kernel.quantile(0.5)),
        micro(kernel.quantile(0.95)),
        micro(mean),
        micro(deviation),
        kernel.restored,
        kernel.reachable
    )
}

/// Stops before each call and prompts.
struct Prompt {
    on: bool,
    /// Go on to the next launch of a kernel with this in its name; empty: any.
    until: Option<String>,
}

const HELP: &str = "n  make this call            k [NAME]  go on to the next launch (of a kernel)\n\
    s  show this call            m ADDRESS [BYTES]  print memory at an address of the capture\n\
    c  go on without asking      q  end the replay here\n";

/// Bytes of memory that the prompt prints at most.
const MOST_PRINTED: u64 = 4096;

impl Prompt {
    fn prompt(
        &mut self,
        player: &mut Player,
        call: &rpd_capture::Call,
    ) -> Result<Step, ReplayError> {
        if !self.on {
            return Ok(Step::Go);
        }
        // `k NAME` runs on to the next launch of a kernel with this text in its name.
        if let Some(name) = &self.until {
            let text = rpd_capture::describe(call, true);
            let kernel = text
                .lines()
                .find(|line| line.trim_start().starts_with("kernel "));
            if !kernel.is_some_and(|line| line.contains(name.as_str())) {
                return Ok(Step::Go);
            }
            self.until = None;
        }
        let mut out = std::io::stdout();
        let _ = writeln!(out, "{}", rpd_capture::describe(call, false));
        loop {
            let _ = write!(out, "> ");
            let _ = out.flush();
            let mut line = String::new();
            if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
                // Standard input has ended.
                self.on = false;
                return Ok(Step::Go);
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                [] | ["n"] => return Ok(Step::Go),
                ["c"] => {
                    self.on = false;
                    return Ok(Step::Go);
                }
                ["q"] => return Ok(Step::End),
                // Without a name every kernel matches.
                ["k", name @ ..] => {
                    self.until = Some(
                        name.first()
                            .map_or(String::new(), |name| (*name).to_owned()),
                    );
                    return Ok(Step::Go);
                }
                ["s"] => {
                    let _ = writeln!(out, "{}", rpd_capture::describe(call, true));
                }
                ["m", address, rest @ ..] => {
                    let text = address.trim_start_matches("0x");
                    let len = rest.first().map_or(Ok(64), |len| len.parse());
                    // The number of bytes is limited, so that a slip of the finger does not fill the terminal.
                    let shown = match (u64::from_str_radix(text, 16), len) {
                        (Err(_), _) => "expected an address such as 0x7f0000001000".to_owned(),
                        (Ok(address), Ok(len @ 1..=MOST_PRINTED)) => match player
                            .peek(address, len)?
                        {
                            None => format!("{address:#x}: no memory of the capture is there now"),
                            Some(bytes) => dump(address, &bytes),
                        },
                        (Ok(_), _) => {
                            format!("expected a number of bytes from 1 to {MOST_PRINTED}")
                        }
                    };
                    let _ = writeln!(out, "{shown}");
                }
                _ => {
                    let _ = write!(out, "{HELP}");
                }
            }
        }
    }
}

fn dump(address: u64, bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes
        .chunks(16)
        .enumerate()
        .map(|(index, line)| {
            let words: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{:#x}  {}", address + index as u64 * 16, words.join(" "))
        })
        .collect();
    lines.join("\n")
}

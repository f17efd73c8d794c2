//! `rpd top`: what running programs do on their GPUs, refreshed.

mod metrics;
mod model;
mod screen;
mod stacks;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Parser;
use rpd_core::compat::Compat;
use rpd_core::storage::temporary::TemporaryDirectory;
use rpd_core::text::os_text;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::control;
use crate::exit_status::SUCCESS;
use crate::failure::Failure;
use crate::launch::{self, TargetState};
use crate::options::parse::{self, Parsed};
use crate::options::resolve::{Environment, resolve};
use crate::run_directory::RunDirectory;
use metrics::Page;
use model::{Model, Snapshot};
use screen::{Asked, Screen, View};

const NAME: &str = "top";

/// Bound on the recording of a program that top starts: it is only looked at.
const LIMIT: &str = "64M";

/// Show what running programs do on their GPUs: kernels, calls, copies, how busy each GPU is, memory
///
/// Reads the recordings of programs that run under rpd; nothing in them changes. A program that is named after -- is started and
/// recorded for this only; no outputs are made of it.
///
/// Keys: q quits, 1 to 3 or Tab choose a table, o the order, / filters names, s shows the stack of the hottest call.
#[derive(Debug, Parser)]
#[command(disable_version_flag = true)]
struct Arguments {
    /// Output directory of a run, or the process id of one of its programs or of its rpd [default: the current directory]
    #[arg(value_name = "RUN|PID")]
    run: Option<OsString>,
    /// Seconds between two looks
    #[arg(short, long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// End after so many looks [default: when no process runs any more]
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Print an object for each look, on a line of its own, instead of using the terminal
    #[arg(long)]
    json: bool,
    /// Serve the figures to Prometheus: a port of the loopback interface, or an address with a port
    #[arg(long, value_name = "[HOST:]PORT")]
    metrics: Option<String>,
    /// Frames to record for each call of the program after --: off, native, python or merged
    #[arg(long, value_name = "WHICH", default_value = "off")]
    stacks: String,
    /// The program to start, with its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// How figures are shown.
struct Shown {
    interval: Duration,
    count: Option<u64>,
    json: bool,
    metrics: Option<SocketAddr>,
}

/// Runs `rpd top [RUN|PID | -- PROGRAM]`; returns the exit status.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = super::parse::<Arguments>(NAME, arguments)? else {
        return Ok(SUCCESS);
    };
    // A day is longer than anyone waits for a look.
    if !(0.05..=86_400.0).contains(&given.interval) {
        let text = format!("{NAME}: --interval: expected a number of seconds from 0.05 to 86400");
        return Err(Failure::usage(text).into());
    }
    let metrics = match &given.metrics {
        Some(text) => Some(metrics::address(text)?),
        None => None,
    };
    let shown = Shown {
        interval: Duration::from_secs_f64(given.interval),
        count: given.count,
        json: given.json,
        metrics,
    };
    if !shown.json && shown.metrics.is_none() && !std::io::stdout().is_terminal() {
        let text = format!(
            "{NAME}: standard output is no terminal: --json prints a line for each look, --metrics serves Prometheus"
        );
        return Err(Failure::usage(text).into());
    }
    match (given.run, given.program.as_slice()) {
        (run, []) => {
            let run = run.unwrap_or_else(|| ".".into());
            let runs = control::runs(NAME, &run)?;
            watch(&shown, &mut |model: &mut Model| {
                model.read(&runs);
                model.runs()
            })?;
            Ok(SUCCESS)
        }
        (None, program) => start(&shown, &given.stacks, program),
        (Some(_), _) => {
            let text = format!("{NAME}: give either a run or, after --, a program");
            Err(Failure::usage(text).into())
        }
    }
}

/// Starts a program and shows what it does, until it ends. Returns its exit status.
fn start(shown: &Shown, stacks: &str, program: &[OsString]) -> Result<u8> {
    let options = [
        "--runtime-trace",
        "--spool-limit",
        LIMIT,
        "--stacks",
        stacks,
        "--",
    ];
    let words: Vec<OsString> = (options.iter().map(OsString::from))
        .chain(program.iter().cloned())
        .collect();
    let Parsed::Run(options, command) = parse::parse(&words)? else {
        return Err(Failure::usage(format!("{NAME}: expected a program after --")).into());
    };
    let environment = Environment::current(Compat::None)?;
    let mut plan = resolve(*options, command, &environment)?;
    for warning in &plan.warnings {
        eprintln!("{}", environment.compat.warning(warning));
    }
    let [pass] = plan.passes.as_mut_slice() else {
        let text = format!("{NAME}: several passes are asked for in the environment");
        return Err(Failure::usage(text).into());
    };
    let place = TemporaryDirectory::new()?;
    pass.options.output_directory = os_text::escape(place.path().as_os_str());
    let look = |run: &RunDirectory, target: &TargetState| {
        let runs = std::slice::from_ref(run);
        watch(shown, &mut |model: &mut Model| {
            // In this order: what was recorded before the end is read.
            let has_ended = target.has_ended();
            model.read(runs);
            !has_ended
        })
    };
    let (ending, ()) = launch::watched(pass, &environment, look)?;
    Ok(ending.status())
}

/// Shows what `read` has read into the model, until that returns false or the user has seen enough.
fn watch(shown: &Shown, read: &mut dyn FnMut(&mut Model) -> bool) -> Result<()> {
    let page = Page::default();
    if let Some(address) = shown.metrics {
        let address = metrics::serve(address, page.clone())?;
        eprintln!("rpd: {NAME}: http://{address}/metrics");
    }
    let is_interactive = !shown.json && std::io::stdout().is_terminal();
    let ended = Arc::new(AtomicBool::new(false));
    if is_interactive {
        // A signal would leave the terminal as it is now.
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&ended))?;
        }
    }
    let mut model = Model::default();
    let mut screen = if is_interactive {
        Some(Screen::open()?)
    } else {
        None
    };
    let mut view = View::default();
    let mut looks = 0;
    loop {
        let next = Instant::now() + shown.interval;
        let runs = read(&mut model);
        let snapshot = model.snapshot();
        page.set(&snapshot);
        if shown.json && !print_line(&snapshot)? {
            return Ok(());
        }
        looks += 1;
        let is_last = !runs || shown.count.is_some_and(|count| looks >= count);
        let is_over = match &mut screen {
            Some(screen) => {
                screen.draw(&view, &snapshot)?;
                is_last || keys(screen, &mut view, &model, &snapshot, next, &ended)?
            }
            None => {
                if !is_last {
                    std::thread::sleep(next.saturating_duration_since(Instant::now()));
                }
                is_last
            }
        };
        if is_over {
            return Ok(());
        }
    }
}

/// Handles keys until the next look. True when the user, or a signal, has ended it.
fn keys(
    screen: &mut Screen,
    view: &mut View,
    model: &Model,
    snapshot: &Snapshot,
    next: Instant,
    ended: &AtomicBool,
) -> Result<bool> {
    while Instant::now() < next {
        if ended.load(Ordering::Relaxed) {
            return Ok(true);
        }
        for key in screen.keys(next)? {
            match view.key(key, snapshot) {
                Some(Asked::Quit) => return Ok(true),
                Some(Asked::Stack(name)) => {
                    let frames = model.hottest_stack(&name);
                    view.show_stack(name, frames);
                }
                None => {}
            }
            screen.draw(view, snapshot)?;
        }
    }
    Ok(false)
}

/// Prints a snapshot as a line of JSON. False when nobody reads it any more.
fn print_line(snapshot: &Snapshot) -> Result<bool> {
    let mut line = serde_json::to_vec(snapshot)?;
    line.push(b'\n');
    let mut out = std::io::stdout().lock();
    match out.write_all(&line).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        written => Ok(written.map(|()| true)?),
    }
}

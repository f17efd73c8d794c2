//! A process that waits to be attached to by ROCm's protocol (`ROCP_TOOL_ATTACH=1`): its registration library opens the SDK
//! and the collector in it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rpd_attach::{Environment as Variables, Session, Tree, inspect};
use rpd_core::naming::Namer;
use rpd_core::options::{Options, ProviderChoice};
use rpd_spool::{ATTACHED_COLLECT_VARIABLE, ATTACHED_SPOOL_VARIABLE};

use super::{NAME, announce, failed, wait};
use crate::exit_status::from_complete;
use crate::failure::Failure;
use crate::options::attach::Attach;
use crate::options::resolve::Environment;
use crate::process::libraries;
use crate::process::spawn::Signals;
use crate::report;
use crate::run_directory::RunDirectory;

const COLLECTOR: &str = "librpd_collect.so";

/// Records the process, and where that is wanted its descendants that were prepared as well. Returns the exit status.
pub(super) fn record(
    mut options: Options,
    attach: &Attach,
    environment: &Environment,
) -> Result<u8> {
    let collector = libraries::own(COLLECTOR)?;
    options.collector.provider = ProviderChoice::Sdk;
    options.collector.disable_signal_handlers = true;
    // Nothing is made for a process that refuses.
    check(attach.pid, &collector)?;
    let signals = Signals::hold()?;
    let mut run = RunDirectory::create(&options, &environment.cwd)?;
    let sessions = match begin(attach, &run, &collector, &options) {
        Ok(sessions) => sessions,
        Err(error) => {
            run.take_for_ended();
            run.remove();
            return Err(error);
        }
    };
    let pids: Vec<u32> = sessions
        .iter()
        .filter_map(|session| u32::try_from(session.pid()).ok())
        .collect();
    announce(&pids, "prepared by ROCP_TOOL_ATTACH=1", attach);
    let runs = || {
        sessions
            .iter()
            .any(|session| !session.wait_for_end(Duration::ZERO))
    };
    wait(runs, attach, &signals);
    for session in sessions {
        let pid = session.pid();
        if session.wait_for_end(Duration::ZERO) {
            eprintln!("rpd: process {pid} has ended");
        } else if let Err(error) = session.detach() {
            eprintln!("rpd: {NAME}: {error}; outputs are made of what is recorded by now");
        }
    }
    run.take_for_ended();
    let watch = signals.watch(run.path());
    let written = report::finish(&run, &options, None, None, &mut Namer::default(), None);
    watch.stop()?;
    Ok(from_complete(written?))
}

/// Looks at the process without touching it: whether the collector can be attached.
fn check(pid: u32, collector: &Path) -> Result<(), Failure> {
    let number = i32::try_from(pid).unwrap_or(-1);
    let refused = |error: rpd_attach::Error| Failure::failed(format!("{NAME}: {error}"));
    let inspection = inspect(number).map_err(refused)?;
    inspection.ready(collector).map_err(refused)?;
    // The collector in it goes on writing where it began.
    if inspection.recording.is_some() {
        return Err(failed(
            pid,
            "it was attached to before, and the SDK records a process in one run only; a program that was started with rpd \
             idle is attached to any number of times",
        ));
    }
    Ok(())
}

/// Attaches the collector, which begins to record into the run's directory.
fn begin(
    attach: &Attach,
    run: &RunDirectory,
    collector: &Path,
    options: &Options,
) -> Result<Vec<Session>> {
    let directory = std::fs::canonicalize(run.path())
        .with_context(|| format!("{} cannot be found again", run.path().display()))?;
    let variables = Variables::new()
        .with(ATTACHED_SPOOL_VARIABLE, directory)
        .with(ATTACHED_COLLECT_VARIABLE, options.collector.to_text());
    let pid = i32::try_from(attach.pid).unwrap_or(-1);
    let refused = |error: rpd_attach::Error| Failure::failed(format!("{NAME}: {error}"));
    if !attach.children {
        let session = Session::attach(pid, collector, &variables).map_err(refused)?;
        return Ok(vec![session]);
    }
    let tree = Tree::attach(pid, collector, &variables).map_err(refused)?;
    Ok(tree.sessions)
}

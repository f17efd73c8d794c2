//! The runs of `rpd explain`: each is made by rpd itself, into a directory of its own.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rpd_analysis::explain::chosen;
use rpd_analysis::records::Records as _;
use rpd_core::text::os_text;
use rpd_formats::file::PendingFile;
use rpd_spool::regular_file;
use serde::{Deserialize, Serialize};

use super::plan::{Plan, PlannedRun, expression};
use crate::answers::feed::Loaded;
use crate::commands::{Inputs, Naming};
use crate::failure::Failure;
use crate::launch::Input;
use crate::notices;
use crate::process::environment::Changes;
use crate::process::spawn::{self, Signals, TargetEnd};

/// File with what was run.
const FILE: &str = "explain.json";
/// Form of the file.
const SCHEMA: &str = "rpd.explain/1";
/// Greatest size of the file.
const LARGEST: u64 = 4 << 20;

/// What was run, and what for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    schema: String,
    /// Program and arguments, as escaped text.
    pub(super) command: Vec<String>,
    /// Names of the kernels that later runs look at.
    pub(super) kernels: Vec<String>,
    /// First and last dispatch of each that is counted.
    pub(super) dispatches: Option<(u64, u64)>,
    /// The runs that were made.
    pub(super) runs: Vec<Run>,
}

/// A run that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) options: String,
    pub(super) seconds: f64,
    pub(super) status: u8,
}

impl Manifest {
    /// The file of a directory; `None` when it has none.
    ///
    /// # Errors
    /// When it cannot be read, or has another form.
    pub(super) fn read(directory: &Path) -> Result<Option<Manifest>> {
        let path = directory.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let wrong = |why: String| {
            Failure::failed(format!(
                "explain: {}: {why}; make the recordings again with rpd explain --overwrite",
                path.display()
            ))
        };
        let text = regular_file::read_text(&path, LARGEST)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let manifest: Manifest =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if manifest.schema != SCHEMA {
            return Err(wrong(format!("its form is {}, not {SCHEMA}", manifest.schema)).into());
        }
        Ok(Some(manifest))
    }

    /// Writes it under its name when it is whole.
    fn write(&self, directory: &Path) -> Result<()> {
        let mut file = PendingFile::create(directory.join(FILE))?;
        let text = serde_json::to_string_pretty(self)?;
        writeln!(file.file(), "{text}")
            .with_context(|| format!("{} cannot be written", file.path().display()))?;
        file.finish()?;
        Ok(())
    }
}

/// Makes the directory.
///
/// # Errors
/// When there is something that is not to be replaced, or it cannot be made.
pub(super) fn prepare(directory: &Path, is_overwritten: bool) -> Result<()> {
    let shown = directory.display();
    if directory.exists() {
        let is_ours = directory.join(FILE).exists();
        if !(is_overwritten && is_ours) {
            let hint = if is_ours {
                format!("rpd explain {shown} prints its page; --overwrite replaces it")
            } else {
                "give another directory with -d".to_owned()
            };
            return Err(Failure::failed(format!("explain: {shown} exists: {hint}")).into());
        }
        fs::remove_dir_all(directory).with_context(|| format!("{shown} cannot be removed"))?;
    }
    fs::create_dir_all(directory).with_context(|| format!("{shown} cannot be made"))
}

/// Makes all runs. Returns whether all went well; what failed is on standard error, and in the file of the directory.
///
/// # Errors
/// When the first run recorded nothing, or a signal ended a run.
pub(super) fn record(plan: &Plan, directory: &Path, command: &[OsString]) -> Result<bool> {
    let signals = Signals::hold()?;
    let escaped: Vec<String> = command.iter().map(|word| os_text::escape(word)).collect();
    let changes = plan.changes();
    let mut recorder = Recorder {
        changes: &changes,
        directory,
        command: &escaped,
        input: Input::from_standard_input(),
        signals,
        manifest: Manifest {
            schema: SCHEMA.to_owned(),
            command: escaped.clone(),
            ..Manifest::default()
        },
    };
    let program = command.first().cloned().unwrap_or_default();
    notice!("{}", plan.announcement(&program));
    for note in &plan.notes {
        eprintln!("rpd: {note}");
    }
    let status = recorder.run(&plan.trace())?;
    let Ok(paths) = Inputs::from_path(directory.to_owned()).paths("explain") else {
        // rpd has said what is wrong with the program.
        let _ = fs::remove_dir_all(directory);
        let text = format!(
            "explain: nothing was recorded: {} ended with status {status}",
            program.to_string_lossy()
        );
        return Err(Failure::new(status.max(1), text).into());
    };
    if status != 0 {
        eprintln!("rpd: explain: the first run ended with status {status}; no further run is made");
        return Ok(false);
    }
    let loaded = Loaded::read(&paths, &Naming::default())?;
    let found = chosen(&loaded);
    let is_simulated = loaded.facts().gpus.iter().any(|gpu| gpu.is_simulated);
    drop(loaded);
    let simulated_waves = is_simulated.then_some(found.waves);
    if found.kernels.is_empty() {
        eprintln!("rpd: explain: the program ran no kernel; no further run is made");
        return Ok(true);
    }
    recorder.manifest.kernels.clone_from(&found.kernels);
    recorder.manifest.dispatches = Some(found.dispatches);
    let kernels = expression(&found.kernels);
    let hottest = expression(&found.kernels[..1]);
    let mut is_whole = true;
    for run in plan.others(&kernels, &hottest, found.dispatches, simulated_waves) {
        let status = recorder.run(&run)?;
        if status != 0 {
            eprintln!(
                "rpd: explain: the run {} ended with status {status}",
                run.name
            );
            is_whole = false;
        }
    }
    Ok(is_whole)
}

struct Recorder<'a> {
    directory: &'a Path,
    /// Program and arguments, as escaped text.
    command: &'a [String],
    /// Changes of the environment that select the GPU to simulate.
    changes: &'a Changes,
    input: Option<Input>,
    signals: Signals,
    manifest: Manifest,
}

impl Recorder<'_> {
    /// Makes a run; the exit status of rpd.
    fn run(&mut self, run: &PlannedRun) -> Result<u8> {
        // Every run reads the same input, as one would.
        if let Some(input) = &self.input {
            input.rewind();
        }
        let place = os_text::escape(self.directory.join(run.name).as_os_str());
        let mut words = vec!["rpd".to_owned()];
        words.extend(
            run.options
                .iter()
                .map(|word| os_text::escape(word.as_ref())),
        );
        words.extend(run.destination(place));
        if notices::are_silenced() {
            words.push(format!("--{}", notices::OPTION));
        }
        words.push("--".to_owned());
        words.extend(self.command.iter().cloned());
        let program = std::env::current_exe().context("rpd does not know its own path")?;
        let begin = Instant::now();
        let child = spawn::start_beside(&program, &words, self.changes, &self.signals)?;
        let end = spawn::wait(child, &self.signals)?;
        let status = end.status();
        self.manifest.runs.push(Run {
            name: run.name.to_owned(),
            what: run.what.clone(),
            options: run.options.join(" "),
            seconds: begin.elapsed().as_secs_f64(),
            status,
        });
        self.manifest.write(self.directory)?;
        if let Some(signal) = self.signals.interrupted() {
            let status = TargetEnd::Signalled(signal as i32).status();
            let shown = self.directory.display();
            let text = format!(
                "explain: interrupted in the run {}; rpd explain {shown} shows what was recorded",
                run.name
            );
            return Err(Failure::new(status, text).into());
        }
        Ok(status)
    }
}

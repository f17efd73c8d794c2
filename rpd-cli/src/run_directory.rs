//! The directory of a run: where the collector leaves what it records, until all outputs exist.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_core::ids::ProcessId;
use rpd_core::naming::{self, Namer, Target};
use rpd_core::options::Options;
use rpd_spool::kernel_filter;
use rpd_spool::{EXCLUDE_FILE, EXTRA_COUNTERS_FILE, INCLUDE_FILE, OPTIONS_FILE, SPOOL_VARIABLE};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Folder within an output directory that holds run directories.
pub(crate) const SPOOL_FOLDER: &str = ".rpd";
const STATE_FILE: &str = "report.json";
const RUN_PREFIX: &str = "run-";
const PROCESS_PREFIX: &str = "proc-";

/// What has been reported of a run so far, so that a later report of the rest overwrites nothing.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct State {
    /// The process that rpd started.
    pub(crate) root: Option<ProcessId>,
    /// Names that are taken.
    pub(crate) names: Namer,
    /// Names given to recordings, by their folder: a second attempt writes the same files.
    pub(crate) targets: BTreeMap<String, Target>,
}

/// A run's directory.
#[derive(Debug, Clone)]
pub(crate) struct RunDirectory {
    path: PathBuf,
}

/// What one process image recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recording {
    pub(crate) path: PathBuf,
    pub(crate) pid: ProcessId,
    /// When the image was loaded, `CLOCK_BOOTTIME` ns.
    pub(crate) loaded: u64,
    /// Whether it still runs.
    pub(crate) alive: bool,
}

/// Makes sure that outputs can be written where `options` want them, before anything starts. Mode bits do
/// not stop root, so a file is really made.
fn probe(directory: &Path) -> Result<(), Failure> {
    let refuse = |error: std::io::Error| {
        Failure::failed(format!(
            "the output directory {} cannot be written: {error}",
            directory.display()
        ))
    };
    std::fs::create_dir_all(directory).map_err(refuse)?;
    let mut file = tempfile::Builder::new()
        .prefix(".rpd-probe-")
        .tempfile_in(directory)
        .map_err(refuse)?;
    file.write_all(b"probe").map_err(refuse)?;
    file.close().map_err(refuse)
}

impl Recording {
    /// Name of its folder.
    pub(crate) fn folder(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }
}

impl RunDirectory {
    /// Makes the directory for a run with these options.
    pub(crate) fn create(options: &Options, cwd: &Path) -> Result<RunDirectory> {
        let literal = naming::literal_parent(&options.output_directory);
        let output = cwd.join(literal);
        check_prefix(options, &output)?;
        probe(&output)?;
        let spool = output.join(SPOOL_FOLDER);
        let path = spool.join(format!(
            "{RUN_PREFIX}{}-{}",
            std::process::id(),
            options.launch_time
        ));
        let make = |path: &Path| {
            DirBuilder::new()
                .mode(0o700)
                .recursive(true)
                .create(path)
                .map_err(|error| {
                    Failure::failed(format!("cannot make {}: {error}", path.display()))
                })
        };
        make(&path)?;
        let run = RunDirectory { path };
        let text = serde_json::to_vec_pretty(options).context("the options")?;
        let written = std::fs::write(run.path.join(OPTIONS_FILE), text)
            .map_err(anyhow::Error::from)
            .and_then(|()| run.write_selection(options));
        if let Err(error) = written {
            run.remove();
            return Err(error.context(format!(
                "the output directory {} cannot be written",
                output.display()
            )));
        }
        Ok(run)
    }

    /// Files for the collector: which kernels to count, and the user's counters.
    fn write_selection(&self, options: &Options) -> Result<()> {
        for (pattern, file) in [
            (&options.kernel_include, INCLUDE_FILE),
            (&options.kernel_exclude, EXCLUDE_FILE),
        ] {
            if !pattern.is_empty() {
                let table = kernel_filter::compile(pattern)
                    .with_context(|| format!("the kernel filter {pattern}"))?;
                std::fs::write(self.path.join(file), table)?;
            }
        }
        if !options.extra_counters.is_empty() {
            std::fs::write(self.path.join(EXTRA_COUNTERS_FILE), &options.extra_counters)?;
        }
        Ok(())
    }

    /// Makes sure that a run directory could be created, and leaves nothing behind.
    pub(crate) fn check(options: &Options, cwd: &Path) -> Result<(), Failure> {
        let output = cwd.join(naming::literal_parent(&options.output_directory));
        check_prefix(options, &output)?;
        let missing: Vec<&Path> = output
            .ancestors()
            .take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists())
            .collect();
        let probed = probe(&output);
        for folder in missing {
            // Whatever is in it by now is not ours.
            let _ = std::fs::remove_dir(folder);
        }
        probed
    }

    /// An existing run directory.
    pub(crate) fn open(path: &Path) -> RunDirectory {
        RunDirectory {
            path: path.to_owned(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The rpd that made this run, if it still runs.
    pub(crate) fn front_end(&self) -> Option<u32> {
        let name = self.path.file_name()?.to_str()?;
        let pid: u32 = name
            .strip_prefix(RUN_PREFIX)?
            .split('-')
            .next()?
            .parse()
            .ok()?;
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let own = std::env::current_exe().ok()?;
        (pid != std::process::id() && program.file_name() == own.file_name()).then_some(pid)
    }

    /// The options of the run.
    pub(crate) fn options(&self) -> Result<Options> {
        let file = self.path.join(OPTIONS_FILE);
        let text =
            std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", file.display()))
    }

    /// What has been reported before.
    pub(crate) fn state(&self) -> State {
        std::fs::read(self.path.join(STATE_FILE))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Keeps what has been reported.
    pub(crate) fn set_state(&self, state: &State) -> Result<()> {
        let file = self.path.join(STATE_FILE);
        let fresh = self.path.join(format!("{STATE_FILE}.new"));
        std::fs::write(&fresh, serde_json::to_vec(state)?)
            .and_then(|()| std::fs::rename(&fresh, &file))
            .with_context(|| format!("{} cannot be written", file.display()))
    }

    /// The recorded process images, in the order in which they were loaded.
    pub(crate) fn recordings(&self) -> Result<Vec<Recording>> {
        let mut found: Vec<Recording> = Vec::new();
        let entries = std::fs::read_dir(&self.path)
            .with_context(|| format!("{} cannot be read", self.path.display()))?;
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let Some((pid, loaded)) = name
                .strip_prefix(PROCESS_PREFIX)
                .and_then(|rest| rest.split_once('-'))
                .and_then(|(pid, time)| Some((pid.parse().ok()?, time.parse().ok()?)))
            else {
                continue;
            };
            found.push(Recording {
                path,
                pid: ProcessId(pid),
                loaded,
                alive: false,
            });
        }
        found.sort_by_key(|recording| (recording.loaded, recording.pid));
        for index in 0..found.len() {
            let recording = &found[index];
            // An image that a later one of the same process has replaced is over.
            let replaced = found[index + 1..]
                .iter()
                .any(|later| later.pid == recording.pid);
            found[index].alive = !replaced && is_alive(recording.pid, recording.loaded);
        }
        Ok(found)
    }

    /// Running processes that were started with this directory to record to, whether they have recorded or
    /// not: one that was forked makes its recording when there is something to record.
    pub(crate) fn attached(&self) -> Vec<ProcessId> {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut variable = SPOOL_VARIABLE.as_bytes().to_vec();
        variable.push(b'=');
        variable.extend(path.as_os_str().as_bytes());
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        processes
            .flatten()
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                // Empty for a zombie.
                let environment = std::fs::read(entry.path().join("environ")).ok()?;
                let ours = environment
                    .split(|byte| *byte == 0)
                    .any(|one| one == variable);
                (ours && pid != std::process::id()).then_some(ProcessId(pid))
            })
            .collect()
    }

    /// Removes the directory if nothing recorded is left in it and nobody will record to it, and what of
    /// `.rpd` is empty then.
    pub(crate) fn remove_if_done(&self) -> Result<()> {
        // In this order: what an attached process makes after the second look keeps the directory as well.
        let attached = self.attached();
        let recordings = self.recordings()?;
        for pid in &attached {
            if !recordings.iter().any(|recording| recording.pid == *pid) {
                eprintln!(
                    "rpd: process {pid}, started by the target, still runs; once it has ended, \
                     `rpd recover {}` writes what it did",
                    self.path.display()
                );
            }
        }
        if attached.is_empty() && recordings.is_empty() {
            self.remove();
        }
        Ok(())
    }

    /// Removes the directory. A failure leaves files behind and harms nothing.
    pub(crate) fn remove(&self) {
        let _ = std::fs::remove_dir_all(&self.path);
        if let Some(parent) = self.path.parent() {
            let _ = std::fs::remove_dir(parent);
        }
    }
}

/// The run directories that `path` means: itself, those in it or in its `.rpd`, and those of the passes below it.
pub(crate) fn find_runs(path: &Path) -> Vec<RunDirectory> {
    if path.join(OPTIONS_FILE).is_file() {
        return vec![RunDirectory::open(path)];
    }
    let folders = |folder: &Path, begins: fn(&str) -> bool| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter(|entry| begins(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect()
    };
    let mut places = vec![path.to_owned(), path.join(SPOOL_FOLDER)];
    let passes = folders(path, |name| {
        name.starts_with("pass_") || name.starts_with("pmc_")
    });
    places.extend(passes.iter().map(|pass| pass.join(SPOOL_FOLDER)));
    let mut found = Vec::new();
    for place in places {
        let runs = folders(&place, |name| name.starts_with(RUN_PREFIX));
        found.extend(
            runs.into_iter()
                .filter(|run| run.join(OPTIONS_FILE).is_file()),
        );
    }
    found.sort();
    found.iter().map(|path| RunDirectory::open(path)).collect()
}

/// Where the prefix adds directories, what stands in the way is found out before the start.
fn check_prefix(options: &Options, output: &Path) -> Result<(), Failure> {
    let literal = naming::literal_parent(&options.output_file);
    let mut path = output.to_owned();
    let folders = Path::new(&options.output_file)
        .parent()
        .map_or(0, |parent| parent.components().count());
    for component in literal.components().take(folders) {
        path.push(component);
        if path.exists() && !path.is_dir() {
            return Err(Failure::failed(format!(
                "{} is in the way: it should be a directory for --output-file {}",
                path.display(),
                options.output_file
            )));
        }
    }
    Ok(())
}

/// Whether the process that was loaded at this time still runs; a zombie does not.
fn is_alive(pid: ProcessId, loaded: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // The command name, in parentheses, may hold anything.
    let Some((_, rest)) = stat.rsplit_once(") ") else {
        return false;
    };
    let fields: Vec<&str> = rest.split(' ').collect();
    let state = fields.first().copied().unwrap_or_default();
    let start_ticks: u64 = fields
        .get(19)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0);
    let ticks_per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK)
        .ok()
        .flatten()
        .and_then(|ticks| u64::try_from(ticks).ok())
        .unwrap_or(100);
    let started = start_ticks.saturating_mul(1_000_000_000 / ticks_per_second.max(1));
    // Another process that got the same number started after the recording.
    !matches!(state, "Z" | "X") && started <= loaded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_its_successors_are_not() {
        let pid = ProcessId(std::process::id());
        assert!(is_alive(pid, u64::MAX));
        assert!(!is_alive(pid, 0), "started after the recording");
        assert!(!is_alive(ProcessId(u32::MAX), u64::MAX));
    }

    #[test]
    fn processes_that_may_yet_record_keep_the_directory() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let run = RunDirectory::open(&folder.path().join("run-1-1"));
        std::fs::create_dir(run.path()).expect("a folder");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env(SPOOL_VARIABLE, run.path())
            .spawn()
            .expect("sleep starts");
        // In the middle of its exec a process shows no environment.
        while std::fs::read(format!("/proc/{}/environ", child.id()))
            .is_ok_and(|text| text.is_empty())
        {
            std::thread::yield_now();
        }
        assert_eq!(run.attached(), [ProcessId(child.id())]);
        run.remove_if_done().expect("nothing to do");
        assert!(run.path().is_dir());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(run.attached(), []);
        run.remove_if_done().expect("removable");
        assert!(!run.path().exists());
    }

    #[test]
    fn only_the_last_image_of_a_process_can_be_alive() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let pid = std::process::id();
        for name in [
            format!("proc-{pid}-{}", u64::MAX),
            format!("proc-{pid}-{}", u64::MAX - 1),
            "proc-4294967295-5".to_owned(),
            "other".to_owned(),
        ] {
            std::fs::create_dir(folder.path().join(name)).expect("a sub-folder");
        }
        let recordings = RunDirectory::open(folder.path())
            .recordings()
            .expect("readable");
        let alive: Vec<bool> = recordings.iter().map(|recording| recording.alive).collect();
        assert_eq!(alive, [false, false, true]);
    }

    #[test]
    fn a_file_in_the_way_is_found_before_the_start() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("taken"), "").expect("writable");
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        for (directory, prefix, fails) in [
            (folder.path().join("new/deep"), "x", false),
            (folder.path().join("taken"), "x", true),
            (folder.path().join("taken/deep"), "x", true),
            (folder.path().to_owned(), "taken/x", true),
            (folder.path().to_owned(), "taken", false),
            (PathBuf::from("/proc/nowhere"), "x", true),
        ] {
            let options = Options {
                output_directory: text(&directory),
                output_file: prefix.to_owned(),
                ..Options::default()
            };
            let run = RunDirectory::create(&options, Path::new("/"));
            assert_eq!(run.is_err(), fails, "{} {prefix}", directory.display());
            if let Ok(run) = run {
                assert_eq!(run.options().expect("written"), options);
                run.remove();
                assert!(!directory.join(SPOOL_FOLDER).exists());
            }
        }
    }
}

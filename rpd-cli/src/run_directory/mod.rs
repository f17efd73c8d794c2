//! The directory of a run: holds the collector's recordings until all outputs are written.
//!
//! A recording whose outputs are complete is renamed from `proc-*` to `done-*` before its first file is removed, and so is a
//! run, from `run-*` to `done-*`. A `done-*` directory has no data that is still needed: any later rpd removes it.

mod control;
mod directory;
mod find;
mod processes;
mod state;

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_core::naming;
use rpd_core::options::Options;
use rpd_spool::image::{DONE_PREFIX, PROCESS_PREFIX, ProcessImage};
use rpd_spool::kernel_filter;
use rpd_spool::{EXCLUDE_FILE, EXTRA_COUNTERS_FILE, INCLUDE_FILE, OPTIONS_FILE};

use crate::failure::Failure;
pub(crate) use control::next_directory;
use directory::Directory;
pub(crate) use find::{FoundRuns, find_runs};
pub(crate) use processes::{Attached, ImageState, run_of};
pub(crate) use state::RunState;

/// Directory within an output directory that holds run directories.
const SPOOL_DIRECTORY: &str = ".rpd";
const RUN_PREFIX: &str = "run-";
/// Largest size of a file of options, in bytes. It holds counter definitions and the environment.
const LARGEST_OPTIONS: u64 = 64 << 20;
/// Attempts to create a run directory while ending runs remove its parent directory.
const ATTEMPTS: usize = 100;

/// The directory of a run, open and owned by this process.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    path: PathBuf,
    name: String,
    /// The directory `.rpd` that contains the run's directory.
    spool: Directory,
    directory: Directory,
    /// The user says that all processes have ended.
    forced: bool,
}

/// A recording: the data of one process image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Recording {
    /// Name of its directory.
    pub(crate) directory: String,
    /// Process image that was recorded.
    pub(crate) image: ProcessImage,
    /// Whether the process image is still running.
    pub(crate) state: ImageState,
}

impl Recording {
    /// Whether all that it will ever have is there.
    pub(crate) fn has_ended(&self) -> bool {
        self.state == ImageState::Ended
    }

    /// Whether another image of the same process took the place of this one.
    pub(crate) fn is_replaced(&self, all: &[Recording]) -> bool {
        all.iter().any(|other| {
            other.image.is_of_same_process(&self.image) && other.image.loaded > self.image.loaded
        })
    }
}

/// Checks that files and directories can be made in `directory`, which is the output directory or the part of it that exists.
/// Mode bits do not stop root, so a file is really made.
fn probe(output: &Path, directory: &Path) -> Result<(), Failure> {
    let attempt = || tempfile::tempfile_in(directory)?.write_all(b"probe");
    attempt().map_err(|error| unwritable(output, &error))
}

fn unwritable(output: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!(
        "the output directory {} cannot be written: {error}",
        output.display()
    ))
}

impl RunDirectory {
    /// Creates the directory for a run with these options.
    pub(crate) fn create(options: &Options, cwd: &Path) -> Result<RunDirectory> {
        let literal = naming::literal_parent(&options.output_directory);
        let output = cwd.join(literal);
        check_prefix(options, &output)?;
        std::fs::create_dir_all(&output).map_err(|error| unwritable(&output, &error))?;
        probe(&output, &output)?;
        Self::create_in(&output, options).map_err(|error| {
            error.context(format!(
                "the output directory {} cannot be written",
                output.display()
            ))
        })
    }

    /// Creates the directory for a run with these options in `place`, which may be another directory than that of the
    /// outputs: a process that is attached to may not see that one.
    pub(crate) fn create_in(place: &Path, options: &Options) -> Result<RunDirectory> {
        let run = Self::make(place, options.launch_time)?;
        let text =
            serde_json::to_vec_pretty(options).context("cannot write the options as JSON")?;
        let written = run
            .write_selection(options)
            .and_then(|()| run.directory.write(OPTIONS_FILE, &text));
        if let Err(error) = written {
            run.remove();
            return Err(error);
        }
        Ok(run)
    }

    /// Writes a file for the collector.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        self.directory.write(name, content)
    }

    fn make(output: &Path, launch_time: u64) -> Result<RunDirectory> {
        let name = format!("{RUN_PREFIX}{}-{launch_time}", std::process::id());
        let path = output.join(SPOOL_DIRECTORY).join(&name);
        let failed =
            |error: io::Error| Failure::failed(format!("cannot make {}: {error}", path.display()));
        let output = Directory::open(output).map_err(failed)?;
        let mut attempts = 0;
        loop {
            attempts += 1;
            let made = output.make_or_open(SPOOL_DIRECTORY).and_then(|spool| {
                let directory = spool.make(&name)?;
                Ok((spool, directory))
            });
            match made {
                Ok((spool, directory)) => {
                    // File systems without locks leave the process id in the name.
                    let _ = directory.try_lock();
                    remove_done(&spool);
                    return Ok(RunDirectory {
                        path,
                        name,
                        spool,
                        directory,
                        forced: false,
                    });
                }
                // Another run has just ended and removed the directory.
                Err(error)
                    if attempts < ATTEMPTS
                        && (is_missing(&error) || !path.parent().is_some_and(Path::exists)) => {}
                Err(error) => {
                    return Err(match error.downcast::<io::Error>() {
                        Ok(error) => failed(error).into(),
                        Err(error) => error,
                    });
                }
            }
        }
    }

    /// Writes the files for the collector: the kernels to count, and the user's counters.
    fn write_selection(&self, options: &Options) -> Result<()> {
        for (pattern, file) in [
            (&options.kernel_include, INCLUDE_FILE),
            (&options.kernel_exclude, EXCLUDE_FILE),
        ] {
            if !pattern.is_empty() {
                let table = kernel_filter::compile(pattern)
                    .with_context(|| format!("cannot compile the kernel filter {pattern}"))?;
                self.directory.write(file, &table)?;
            }
        }
        if !options.extra_counters.is_empty() {
            self.directory
                .write(EXTRA_COUNTERS_FILE, options.extra_counters.as_bytes())?;
        }
        Ok(())
    }

    /// Checks that a run directory can be created. No directory is made: several rpd may check the same place at once.
    pub(crate) fn check(options: &Options, cwd: &Path) -> Result<()> {
        let output = cwd.join(naming::literal_parent(&options.output_directory));
        check_prefix(options, &output)?;
        // A link to nothing is there, too, and nothing can be made in it.
        let existing = output
            .ancestors()
            .find(|directory| directory.symlink_metadata().is_ok());
        probe(&output, existing.unwrap_or(Path::new("/")))?;
        if let Ok(output) = Directory::open(&output)
            && let Err(error) = output.own(SPOOL_DIRECTORY)
            && !is_missing(&error)
        {
            return Err(error);
        }
        Ok(())
    }

    /// Opens an existing run directory in an open directory, which must belong to this user.
    fn open(spool: Directory, name: &str) -> Result<RunDirectory> {
        let directory = spool.directory(name)?;
        Ok(RunDirectory {
            path: directory.path().to_owned(),
            name: name.to_owned(),
            spool,
            directory,
            forced: false,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The output directory that the run belongs to, without symbolic links.
    pub(crate) fn output(&self) -> Result<PathBuf> {
        let spool = std::fs::canonicalize(self.spool.path())
            .with_context(|| self.spool.path().display().to_string())?;
        Ok(match spool.parent() {
            Some(parent) if is_spool(&spool) => parent.to_owned(),
            _ => spool,
        })
    }

    /// The path of a recording, for messages.
    pub(crate) fn path_of(&self, recording: &Recording) -> PathBuf {
        self.path.join(&recording.directory)
    }

    /// Size on disk of a recording's files, in bytes.
    pub(crate) fn size_of(&self, recording: &Recording) -> u64 {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(directory) = self.directory.directory(&recording.directory) else {
            return 0;
        };
        let entries = std::fs::read_dir(directory.inside(""));
        let files = entries.into_iter().flatten().flatten();
        files
            .filter_map(|entry| entry.metadata().ok())
            .map(|metadata| metadata.blocks() * 512)
            .sum()
    }

    /// Opens the directory of a recording.
    pub(crate) fn open_recording(&self, recording: &Recording) -> Result<OwnedFd> {
        Ok(self
            .directory
            .directory(&recording.directory)?
            .descriptor()?)
    }

    /// The rpd that works on this run, if there is one beside this one, for messages. From then on it is this one.
    pub(crate) fn front_end(&self) -> Option<String> {
        let name = self.name.strip_prefix(RUN_PREFIX)?;
        let pid = processes::front_end(name);
        let shown = |pid| format!("its rpd (process {pid})");
        // It is locked before the options are written. Without them a lock would take its place.
        if !self.directory.has(OPTIONS_FILE) {
            return pid.map(shown);
        }
        match self.directory.try_lock() {
            Ok(true) => None,
            Ok(false) => Some(pid.map_or_else(|| "another rpd".to_owned(), shown)),
            Err(_) => pid.map(shown),
        }
    }

    /// The options of the run.
    pub(crate) fn options(&self) -> Result<Options> {
        let file = self.path.join(OPTIONS_FILE);
        let text = self
            .directory
            .read(OPTIONS_FILE, LARGEST_OPTIONS)
            .with_context(|| format!("{} cannot be read", file.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} is damaged", file.display()))
    }

    /// Reads the state of the reports of the run.
    pub(crate) fn state(&self) -> Result<RunState> {
        RunState::read(&self.directory)
    }

    /// Writes the state of the reports of the run.
    pub(crate) fn set_state(&self, state: &RunState) -> Result<()> {
        state.write(&self.directory)
    }

    /// The recorded process images, in the order in which they were loaded.
    pub(crate) fn recordings(&self) -> Result<Vec<Recording>> {
        let mut found: Vec<Recording> = Vec::new();
        for name in self.directory.names()? {
            if let Some(image) = ProcessImage::from_directory(&name) {
                found.push(Recording {
                    directory: name,
                    image,
                    state: ImageState::Ended,
                });
            }
        }
        found.sort_by_key(|recording| (recording.image.loaded, recording.image.pid));
        for index in 0..found.len() {
            // An image that was replaced by a later one of the same process has ended.
            if !self.forced && !found[index].is_replaced(&found) {
                let image = found[index].image;
                let directory = self.directory.own(&found[index].directory);
                found[index].state = match directory {
                    Ok(directory) => processes::state(&image, &directory),
                    // Reading it reports why it cannot be opened.
                    Err(_) => ImageState::Ended,
                };
            }
        }
        Ok(found)
    }

    /// Running processes that were started with this directory to record to, whether they have recorded or
    /// not: one that was forked makes its recording when there is something to record.
    pub(crate) fn attached(&self) -> Vec<Attached> {
        if self.forced {
            return Vec::new();
        }
        processes::attached(&self.path)
    }

    /// Makes all processes of the run count as ended.
    pub(crate) fn take_for_ended(&mut self) {
        self.forced = true;
    }

    /// Marks a recording as reported by a rename, then removes it.
    pub(crate) fn discard(&self, recording: &Recording) -> Result<()> {
        let context = || format!("cannot remove {}", self.path_of(recording).display());
        let rest = recording.directory.strip_prefix(PROCESS_PREFIX);
        let done = format!("{DONE_PREFIX}{}", rest.unwrap_or(&recording.directory));
        self.directory
            .rename(&recording.directory, &done)
            .with_context(context)?;
        self.directory.remove_all(&done).with_context(context)
    }

    /// Removes the directory if it holds no recording and no process still records to it, then `.rpd` if that
    /// is empty.
    pub(crate) fn remove_if_done(&self) -> Result<()> {
        // In this order, because a process may start recording between the two checks.
        let attached = self.attached();
        let recordings = self.recordings()?;
        for Attached { seen, own } in &attached {
            let number = own.unwrap_or(*seen);
            let records = |recording: &Recording| recording.image.pid == number.0;
            if !recordings.iter().any(records) {
                eprintln!(
                    "rpd: process {seen}, started by the target, still runs; once it has ended, \
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

    /// Marks the run as done by a rename, and removes its directory. A failure only leaves files behind.
    pub(crate) fn remove(&self) {
        let rest = self.name.strip_prefix(RUN_PREFIX).unwrap_or(&self.name);
        let done = format!("{DONE_PREFIX}{rest}");
        // The open directory is used, not one that may have been put at its path since.
        if self.spool.is_at(&self.name, &self.directory)
            && self.spool.rename(&self.name, &done).is_ok()
        {
            let _ = self.spool.remove_all(&done);
        }
        remove_spool(&self.spool);
    }

    /// Removes recordings that were reported before rpd was killed.
    pub(crate) fn remove_reported(&self) {
        remove_done(&self.directory);
    }
}

/// Whether the error means that a file does not exist.
fn is_missing(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Whether a path is that of a directory of run directories.
fn is_spool(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == SPOOL_DIRECTORY)
}

/// Whether a name is this prefix, a process id and a time.
fn is_named(name: &str, prefix: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix(prefix)
        .and_then(|rest| rest.split_once('-'))
        .is_some_and(|(pid, time)| is_number(pid) && is_number(time))
}

/// The parent directory of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Removes directories whose outputs are complete.
fn remove_done(directory: &Directory) {
    for name in directory.names().unwrap_or_default() {
        if is_named(&name, DONE_PREFIX) {
            let _ = directory.remove_all(&name);
        }
    }
}

/// Removes the directory of run directories if it is empty.
fn remove_spool(spool: &Directory) {
    if is_spool(spool.path())
        && let Ok(output) = Directory::open(parent(spool.path()))
        && output.is_at(SPOOL_DIRECTORY, spool)
    {
        let _ = output.remove_empty(SPOOL_DIRECTORY);
    }
}

impl RunDirectory {
    /// Whether its rpd was killed before it wrote the options, so that no target was started.
    fn is_unused(&self) -> bool {
        self.front_end().is_none()
            && !self.directory.has(OPTIONS_FILE)
            && self
                .recordings()
                .is_ok_and(|recordings| recordings.is_empty())
    }
}

/// Checks, before the start, the existing files at paths where the prefix adds directories.
fn check_prefix(options: &Options, output: &Path) -> Result<(), Failure> {
    let literal = naming::literal_parent(&options.output_file);
    let mut path = output.to_owned();
    let directories = Path::new(&options.output_file)
        .parent()
        .map_or(0, |parent| parent.components().count());
    for component in literal.components().take(directories) {
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

#[cfg(test)]
mod tests {
    use rpd_spool::SPOOL_VARIABLE;

    use super::*;

    #[test]
    fn run_directory_stays_while_processes_may_record() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let run = RunDirectory::make(directory.path(), 1).expect("made");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env(SPOOL_VARIABLE, run.path())
            .spawn()
            .expect("sleep starts");
        // During its exec a process has an empty environment.
        while std::fs::read(format!("/proc/{}/environ", child.id()))
            .is_ok_and(|text| text.is_empty())
        {
            std::thread::yield_now();
        }
        let attached = run.attached();
        let seen: Vec<u32> = attached.iter().map(|attached| attached.seen.0).collect();
        assert_eq!(seen, [child.id()]);
        run.remove_if_done().expect("nothing to do");
        assert!(run.path().is_dir());
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert_eq!(run.attached(), []);
        run.remove_if_done().expect("removable");
        assert!(!run.path().exists());
    }

    #[test]
    fn run_directories_are_made_while_others_are_removed() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let directory = directory.path();
                scope.spawn(move || {
                    for run in 0..200 {
                        let run = RunDirectory::make(directory, thread * 1000 + run).expect("made");
                        assert!(run.path().is_dir());
                        run.remove();
                        assert!(!run.path().exists());
                    }
                });
            }
        });
        assert!(!directory.path().join(SPOOL_DIRECTORY).exists());
    }

    #[test]
    fn find_runs_removes_leftovers_of_finished_runs() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let spool = directory.path().join(SPOOL_DIRECTORY);
        let leave = || {
            std::fs::create_dir_all(spool.join("done-1-2/proc-3-4")).expect("made");
            std::fs::create_dir_all(spool.join("done-list")).expect("made");
        };
        leave();
        let run = RunDirectory::make(directory.path(), 1).expect("made");
        assert!(!spool.join("done-1-2").exists(), "by the next run");
        assert!(spool.join("done-list").exists(), "no name of a run");
        std::fs::create_dir(run.path().join("done-3-4")).expect("made");
        run.remove_reported();
        assert!(!run.path().join("done-3-4").exists());
        run.remove();
        for given in [
            directory.path().to_owned(),
            spool.clone(),
            spool.join("run-1-2"),
        ] {
            leave();
            std::fs::remove_dir(spool.join("done-list")).expect("removed");
            let found = find_runs(&given);
            assert!(
                found.cleaned && found.runs.is_empty(),
                "{}",
                given.display()
            );
            assert!(!spool.exists(), "{}", given.display());
        }
    }

    #[test]
    fn run_directory_takes_only_the_last_image_of_a_process_for_alive() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let run = RunDirectory::make(directory.path(), 1).expect("made");
        let pid = std::process::id();
        for name in [
            format!("proc-{pid}-{}", u64::MAX),
            format!("proc-{pid}-{}", u64::MAX - 1),
            "proc-4294967295-5".to_owned(),
            "other".to_owned(),
        ] {
            std::fs::create_dir(run.path().join(name)).expect("a sub-directory");
        }
        let recordings = run.recordings().expect("readable");
        let ended: Vec<bool> = recordings.iter().map(Recording::has_ended).collect();
        assert_eq!(ended, [true, true, false]);
    }

    #[test]
    fn run_directory_reports_a_file_in_its_place_before_the_start() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("taken"), "").expect("writable");
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        for (directory, prefix, fails) in [
            (directory.path().join("new/deep"), "x", false),
            (directory.path().join("taken"), "x", true),
            (directory.path().join("taken/deep"), "x", true),
            (directory.path().to_owned(), "taken/x", true),
            (directory.path().to_owned(), "taken", false),
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
                assert!(!directory.join(SPOOL_DIRECTORY).exists());
            }
        }
    }
}

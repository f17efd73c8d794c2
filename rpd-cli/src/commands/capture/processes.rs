//! The processes of a run that is captured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_capture::{CaptureError, Recorder, Summary};
use rpd_spool::image::ProcessImage;

use super::directory::{CaptureDirectory, Making, PROCESS};
use super::failure;

/// The processes of a run.
pub(super) struct Captures {
    directory: CaptureDirectory,
    making: Making,
    quiet: bool,
    /// Whether another rpd, which was killed, has begun with the captures.
    resumed: bool,
    /// Processes by the name of their directory, which begins with the process id.
    found: BTreeMap<String, RecordedProcess>,
    /// Name of the process whose capture was requested: the first that makes calls.
    first: Option<String>,
    /// The last reason why the capture of a process could not be begun.
    trouble: Option<anyhow::Error>,
}

/// Bytes that a process needs at least to record a call: its directory, the meta stream, a stream, and the control file.
const LEAST_ROOM: libc::off_t = 128 << 10;

struct RecordedProcess {
    pid: u32,
    recorder: Recorder,
    directory: PathBuf,
    failed: Option<CaptureError>,
}

impl Captures {
    pub(super) fn new(directory: &CaptureDirectory, making: Making, quiet: bool) -> Captures {
        Captures {
            directory: directory.clone(),
            making,
            quiet,
            resumed: false,
            found: BTreeMap::new(),
            first: None,
            trouble: None,
        }
    }

    /// The processes of a run that have ended, and whose rpd was killed.
    pub(super) fn resume(directory: &CaptureDirectory, making: Making) -> Captures {
        Captures {
            resumed: true,
            ..Captures::new(directory, making, false)
        }
    }

    /// Whether nothing but errors is printed.
    pub(super) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Takes data that the processes have staged. True when there were some.
    pub(super) fn poll(&mut self) -> bool {
        let directories = std::fs::read_dir(self.directory.spool())
            .into_iter()
            .flatten()
            .flatten();
        let names: Vec<String> = directories
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        let images = names
            .into_iter()
            .filter_map(|name| Some((ProcessImage::from_directory(&name)?, name)));
        let mut images: Vec<(ProcessImage, String)> = images.collect();
        // Of several processes whose rpd was killed, the first is the one that began first.
        images.sort_by_key(|(image, _)| image.loaded);
        for (ProcessImage { pid, .. }, name) in images {
            let process = self.directory.spool().join(&name);
            let captured = process.join(rpd_spool::capture::CONTROL_FILE).exists();
            if !captured || self.found.contains_key(&name) {
                continue;
            }
            // Until it is known which process is the first that makes calls, each has its own directory.
            let directory = self.directory.work.join(format!(".{name}"));
            debug_assert!(format!(".{name}").starts_with(PROCESS));
            if let Err(error) = std::fs::create_dir_all(&directory) {
                self.trouble = Some(anyhow::anyhow!("{}: {error}", directory.display()));
                continue;
            }
            let (level, outputs) = (self.making.level, self.making.keep_outputs);
            let made = if self.resumed {
                Recorder::resume(&process, &directory, level, outputs)
            } else {
                Recorder::new(&process, &directory, level, outputs)
            };
            match made {
                Ok(recorder) => {
                    let found = RecordedProcess {
                        pid,
                        recorder,
                        directory,
                        failed: None,
                    };
                    self.found.insert(name.clone(), found);
                }
                Err(error) if self.resumed => eprintln!("rpd: process {pid}: {error}"),
                // It is tried again.
                Err(error) => {
                    self.trouble = Some(failure(error).into());
                    continue;
                }
            }
            self.look_at(&name);
        }
        let before = self.progress().1;
        for name in self.found.keys().cloned().collect::<Vec<_>>() {
            self.look_at(&name);
        }
        self.progress().1 != before
    }

    /// Takes data that a process has staged, and notes whether it is the first that makes calls.
    fn look_at(&mut self, name: &str) {
        let Some(found) = self.found.get_mut(name) else {
            return;
        };
        if found.failed.is_none()
            && let Err(error) = found.recorder.poll()
        {
            found.failed = Some(error);
        }
        if self.first.is_none() && found.recorder.has_calls() {
            self.first = Some(name.to_owned());
        }
    }

    /// Calls, bytes of data so far, and bytes that wait.
    pub(super) fn progress(&self) -> (u64, u64, u64) {
        let all = self.found.values().map(|found| found.recorder.progress());
        all.fold((0, 0, 0), |sum, one| {
            (sum.0 + one.0, sum.1 + one.1, sum.2 + one.2)
        })
    }

    /// An error when no process could have recorded a call, because nothing can be stored in the directory.
    fn check_room(&mut self) -> Result<()> {
        if let Some(trouble) = self.trouble.take() {
            return Err(trouble);
        }
        let shown = self.directory.output.display();
        let allocated = tempfile::tempfile_in(self.directory.spool()).and_then(|file| {
            let flags = nix::fcntl::FallocateFlags::empty();
            Ok(nix::fcntl::fallocate(&file, flags, 0, LEAST_ROOM)?)
        });
        match allocated {
            // A file system that cannot allocate ahead says nothing about its room.
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            allocated => {
                allocated.with_context(|| format!("{shown} has no room for the recording"))
            }
        }
    }

    /// Writes the captures; what the first one holds, if any process made calls. `status`: how the program ended.
    pub(super) fn finish(mut self, status: Option<i32>) -> Result<Option<Summary>> {
        self.poll();
        let Some(first) = self.first.clone() else {
            self.check_room().context("nothing was captured")?;
            return Ok(None);
        };
        let mut summary = None;
        for (name, found) in std::mem::take(&mut self.found) {
            let is_first = name == first;
            let wanted = is_first || self.making.children && found.recorder.has_calls();
            if !wanted {
                if found.recorder.has_calls() {
                    eprintln!(
                        "rpd: process {}, started by the program, made GPU calls, which --children captures as well",
                        found.pid
                    );
                }
                let _ = std::fs::remove_dir_all(&found.directory);
                continue;
            }
            let mut manifest = self.making.manifest.clone();
            manifest.pid = found.pid;
            manifest.status = status;
            let made = found.recorder.finish(manifest).map_err(failure)?;
            super::accesses::keep(&self.directory.spool().join(&name), &found.directory)?;
            if is_first {
                take_place(&found.directory, &self.directory.work)?;
                summary = Some(made);
            } else {
                let mut child = self.directory.output.clone().into_os_string();
                child.push(format!("_{}", found.pid));
                std::fs::rename(&found.directory, &child)
                    .with_context(|| format!("{} cannot be made", child.display()))?;
                notice!("rpd: wrote {} ({} calls)", child.display(), made.calls);
            }
        }
        Ok(summary)
    }
}

/// Moves the complete capture of the first process, in `directory`, into the directory that was requested, the description last.
pub(super) fn take_place(directory: &Path, work: &Path) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() != rpd_capture::MANIFEST {
            std::fs::rename(entry.path(), work.join(entry.file_name()))?;
        }
    }
    std::fs::rename(
        directory.join(rpd_capture::MANIFEST),
        work.join(rpd_capture::MANIFEST),
    )?;
    let _ = std::fs::remove_dir(directory);
    Ok(())
}

//! Outputs of what was recorded since the last time, while the program goes on (`--rotate`).
//!
//! Each piece is a run of its own in a directory of its own: what is cut off the recording goes to a recording there, of which
//! outputs are made in the usual way. If rpd is killed meanwhile, `rpd recover` finishes them.

use std::collections::{HashMap, HashSet};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rpd_core::naming::{self, Namer};
use rpd_core::options::{Options, Rotation};
use rpd_core::text::os_text;
use rpd_spool::cut::Cutter;

use crate::failure::line;
use crate::process::spawn::TargetEnd;
use crate::report;
use crate::run_directory::{Recording, RunDirectory, next_directory};

/// Time that a process has to write what its provider holds back. A piece without that is complete all the same: the next one
/// has it.
const FLUSH: Duration = Duration::from_secs(1);

/// The pieces of a run.
pub(crate) struct Pieces {
    every: Rotation,
    begin: Instant,
    /// By the names of the processes' directories.
    cutters: HashMap<String, Cutter>,
    /// Directories of processes whose last piece is made.
    finished: HashSet<String>,
    made: u32,
    is_complete: bool,
}

impl Pieces {
    /// No piece yet; one is due after `every`, from now on.
    pub(crate) fn new(every: Rotation) -> Pieces {
        Pieces {
            every,
            begin: Instant::now(),
            cutters: HashMap::new(),
            finished: HashSet::new(),
            made: 0,
            is_complete: true,
        }
    }

    /// Makes the next piece if it is time for it.
    pub(super) fn make_if_due(&mut self, run: &RunDirectory, options: &Options) {
        let is_due = match self.every {
            Rotation::Time(time) => self.begin.elapsed() >= Duration::from_nanos(time),
            Rotation::Bytes(bytes) => recorded(run) >= bytes,
        };
        if is_due {
            // From now, not from when it was due: where outputs take longer than the time, pieces become longer.
            self.begin = Instant::now();
            self.make(run, options, None);
        }
    }

    /// Makes the last piece, of all that is left. False when an output could not be written, or lacks records.
    pub(crate) fn finish(
        mut self,
        run: &RunDirectory,
        options: &Options,
        ending: TargetEnd,
        names: &mut Namer,
    ) -> Result<bool> {
        self.make(run, options, Some(ending));
        if self.made == 0 || !run.recordings()?.is_empty() {
            // Nothing was recorded, or a process still runs: the report says so.
            let reported = report::finish(run, options, Some(ending), None, names, None)?;
            return Ok(self.is_complete && reported);
        }
        run.remove_if_done()?;
        Ok(self.is_complete)
    }

    /// Makes a piece; errors are printed, and are no reason to end: the next piece may have room again.
    fn make(&mut self, run: &RunDirectory, options: &Options, ending: Option<TargetEnd>) {
        match self.try_make(run, options, ending) {
            Ok(is_complete) => self.is_complete &= is_complete,
            Err(error) => {
                self.is_complete = false;
                eprintln!("rpd: --rotate: {}", line(&error));
            }
        }
    }

    fn try_make(
        &mut self,
        run: &RunDirectory,
        options: &Options,
        ending: Option<TargetEnd>,
    ) -> Result<bool> {
        let recordings = run.recordings()?;
        if recordings.is_empty() {
            return Ok(true);
        }
        let directory = next_directory(&run.output()?, "piece")?;
        let options = of_piece(options, &directory);
        let mut piece = RunDirectory::create(&options, Path::new("/"))?;
        // They run on, but nothing more is recorded to the piece.
        piece.take_for_ended();
        let mut rows = 0;
        let mut failure = None;
        for (index, recording) in recordings.iter().enumerate() {
            match self.cut(run, recording, &piece) {
                Ok(0) if index > 0 || (ending.is_none() && recordings.len() == 1) => {
                    // A process that did nothing is in another piece, or in none.
                    let _ = std::fs::remove_dir_all(piece.path().join(&recording.directory));
                }
                Ok(new) => rows += new,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        // Of a program that does nothing on the GPU there is one piece, which says so.
        if rows == 0 && failure.is_none() && (ending.is_none() || self.made > 0) {
            piece.remove();
            // It holds nothing else.
            let _ = std::fs::remove_dir(&directory);
            return Ok(true);
        }
        self.made += 1;
        let written = report::finish(&piece, &options, ending, None, &mut Namer::default(), None)?;
        match failure {
            Some(error) => Err(error),
            None => Ok(written),
        }
    }

    /// Cuts a recording; returns the number of rows that its piece has, or has lost.
    fn cut(
        &mut self,
        run: &RunDirectory,
        recording: &Recording,
        piece: &RunDirectory,
    ) -> Result<u64> {
        let name = &recording.directory;
        if self.finished.contains(name) {
            return Ok(0);
        }
        let last = recording.has_ended();
        if !last {
            run.flush(recording, FLUSH);
        }
        let into = piece.path().join(name);
        std::fs::create_dir(&into).with_context(|| into.display().to_string())?;
        let held = run.open_recording(recording)?;
        let from = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let cutter = self.cutters.entry(name.clone()).or_default();
        let cut = cutter
            .cut(&from, &into, last)
            .with_context(|| format!("{} is not complete", into.display()))?;
        if last {
            self.finished.insert(name.clone());
            self.cutters.remove(name);
            run.discard(recording)?;
        }
        Ok(cut.rows + cut.removed)
    }
}

/// Bytes of all recordings of a run.
fn recorded(run: &RunDirectory) -> u64 {
    let recordings = run.recordings().unwrap_or_default();
    recordings
        .iter()
        .map(|recording| run.size_of(recording))
        .sum()
}

/// The options with the piece's directory in the place of the output directory. Placeholders below that stay.
fn of_piece(options: &Options, directory: &Path) -> Options {
    let given = &options.output_directory;
    let literal = naming::literal_parent(given);
    let rest = Path::new(given)
        .strip_prefix(&literal)
        .unwrap_or(Path::new(""));
    // Joining nothing would add a slash.
    let whole = if rest.as_os_str().is_empty() {
        directory.to_owned()
    } else {
        directory.join(rest)
    };
    let text = os_text::escape(whole.as_os_str());
    Options {
        output_directory: text,
        ..options.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_a_piece_keeps_placeholders() {
        let of = |given: &str| {
            let options = Options {
                output_directory: given.to_owned(),
                ..Options::default()
            };
            of_piece(&options, Path::new("/out/piece-2")).output_directory
        };
        assert_eq!(of("/out"), "/out/piece-2");
        assert_eq!(of("/out/%rank%/x"), "/out/piece-2/%rank%/x");
    }
}

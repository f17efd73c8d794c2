//! Finding the runs that were not finished.

use std::path::{Path, PathBuf};

use anyhow::Result;

use rpd_spool::OPTIONS_FILE;
use rpd_spool::image::DONE_PREFIX;

use super::directory::Directory;
use super::{
    RUN_PREFIX, RunDirectory, SPOOL_DIRECTORY, is_named, is_spool, parent, remove_done,
    remove_spool,
};

/// The runs that `rpd recover` finds in a directory.
#[derive(Debug, Default)]
pub(crate) struct FoundRuns {
    /// Runs that are not done, with the reason if one cannot be finished.
    pub(crate) runs: Vec<Result<RunDirectory>>,
    /// Whether directories were removed: of runs that were done, or empty ones.
    pub(crate) cleaned: bool,
}

/// The run directories for `path`: itself, those in it or in its `.rpd`, and those of the pass directories below it.
pub(crate) fn find_runs(path: &Path) -> FoundRuns {
    let mut found = FoundRuns::default();
    let name = path.file_name().and_then(|name| name.to_str());
    if let Some(name) = name
        && is_named(name, RUN_PREFIX)
        && let Ok(place) = std::fs::canonicalize(parent(path))
    {
        found.find_run(&place, name);
        return found;
    }
    let own = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if is_spool(&own) {
        if let Ok(output) = Directory::open(parent(&own)) {
            found.look_in(output.directory(SPOOL_DIRECTORY));
        }
        return found;
    }
    if path.join(OPTIONS_FILE).is_file() {
        if let Some(name) = own.file_name().and_then(|name| name.to_str())
            && let Ok(place) = Directory::open(parent(&own))
        {
            found.runs.push(RunDirectory::open(place, name));
        }
        return found;
    }
    // Passes and pieces have directories of their own below the output directory.
    let mut outputs: Vec<PathBuf> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let of_several = ["pass_", "pmc_", "piece-"];
            of_several.iter().any(|prefix| name.starts_with(prefix))
        })
        .map(|entry| entry.path())
        .collect();
    outputs.push(path.to_owned());
    // Reports come in the same order every time.
    outputs.sort();
    for output in outputs {
        if let Ok(output) = Directory::open(&output)
            && output.has(SPOOL_DIRECTORY)
        {
            found.look_in(output.directory(SPOOL_DIRECTORY));
        }
    }
    found
}

impl FoundRuns {
    /// Adds the run of this name, unless it has become done.
    fn find_run(&mut self, place: &Path, name: &str) {
        let spool = match (is_spool(place), Directory::open(parent(place))) {
            (true, Ok(output)) => output.directory(SPOOL_DIRECTORY),
            _ => Directory::open(place).map_err(anyhow::Error::from),
        };
        let spool = match spool {
            Ok(spool) => spool,
            Err(error) => return self.runs.push(Err(error)),
        };
        let done = name.replacen(RUN_PREFIX, DONE_PREFIX, 1);
        if spool.has(name) {
            self.runs.push(RunDirectory::open(spool, name));
        } else if is_spool(place) && spool.has(&done) {
            let _ = spool.remove_all(&done);
            remove_spool(&spool);
            self.cleaned = true;
        }
    }

    /// Adds the runs in a directory of run directories.
    fn look_in(&mut self, spool: Result<Directory>) {
        let spool = match spool {
            Ok(spool) => spool,
            Err(error) => return self.runs.push(Err(error)),
        };
        let names = spool.names().unwrap_or_default();
        for name in names.iter().filter(|name| is_named(name, RUN_PREFIX)) {
            let opened = spool
                .reopen()
                .map_err(anyhow::Error::from)
                .and_then(|spool| RunDirectory::open(spool, name));
            match opened {
                Ok(run) if run.is_unused() => {
                    run.remove();
                    self.cleaned = true;
                }
                other => self.runs.push(other),
            }
        }
        self.cleaned |= names.is_empty() || names.iter().any(|name| is_named(name, DONE_PREFIX));
        remove_done(&spool);
        remove_spool(&spool);
    }
}

//! Finishes captures whose rpd was killed.

use std::path::Path;

use anyhow::Result;

use super::directory::{Unfinished, in_use, unfinished};
use super::processes::{Captures, take_place};
use crate::wording::count;

/// Finishes the captures in `directory`; whether all of them are complete now. `None` when there is none.
pub(crate) fn recover(directory: &Path) -> Result<Option<bool>> {
    let found = unfinished(directory)?;
    if found.is_empty() {
        return Ok(None);
    }
    let mut all = true;
    for one in found {
        all &= finish(one)?;
    }
    Ok(Some(all))
}

fn finish(unfinished: Unfinished) -> Result<bool> {
    let Unfinished { directory, making } = unfinished;
    let shown = directory.output.display();
    // Without a recording the capture is in its place, or on the way there.
    let is_complete =
        directory.work.join(rpd_capture::MANIFEST).is_file() || !directory.spool().is_dir();
    // Killed while the files of the complete capture were moved.
    let moving = directory
        .processes()
        .find(|directory| !making.children && directory.join(rpd_capture::MANIFEST).is_file());
    if let Some(complete) = moving {
        take_place(&complete, &directory.work)?;
    } else if !is_complete {
        let spool = directory.spool();
        let processes = std::fs::read_dir(&spool).into_iter().flatten().flatten();
        for process in processes {
            if let Some(who) = in_use(&process.path()) {
                eprintln!("rpd: {shown}: {who}");
                return Ok(true);
            }
        }
        let captures = Captures::resume(&directory, making);
        let Some(summary) = captures.finish(None)? else {
            directory.discard();
            eprintln!(
                "rpd: {shown}: nothing was captured: the program had made no call of the HIP runtime other than queries"
            );
            return Ok(false);
        };
        for note in &summary.notes {
            eprintln!("rpd: {note}");
        }
        notice!(
            "rpd: wrote {shown}: {}, {}",
            count(summary.calls, "call"),
            count(summary.launches, "launch")
        );
    }
    directory.replace()?;
    directory.complete();
    Ok(true)
}

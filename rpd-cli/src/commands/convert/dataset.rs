//! `rpd convert --dataset`: adds recordings to a data set of Parquet files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;

use anyhow::{Context as _, Result};
use rpd_core::options::Options;
use rpd_core::session::{LoadOptions, Session, Window};
use rpd_formats::parquet::{Added, Dataset};

use super::super::each_recording;
use super::Arguments;
use crate::failure::Failure;

/// Adds recordings to a data set. They are read by one thread and written by another.
pub(super) fn add(
    given: &Arguments,
    directory: &Path,
    paths: &[PathBuf],
    window: Option<&Window>,
) -> Result<()> {
    let set = Dataset::open(directory)
        .with_context(|| format!("the data set {} cannot be read", directory.display()))?;
    let load = LoadOptions {
        args: false,
        ..LoadOptions::default()
    };
    let (sender, receiver) = sync_channel::<(Session, Options)>(1);
    let all: Vec<Added> = std::thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<Vec<Added>> {
            let mut all = Vec::new();
            for (session, options) in receiver {
                all.push(set.add(&session, &options)?);
            }
            Ok(all)
        });
        let read = each_recording(paths, load, window, |_, _, session, settings| {
            let options = given.options(&settings, String::new(), OsStr::new("."))?;
            // A writer that failed has gone; its error is told below.
            sender
                .send((session, options))
                .map_err(|_| Failure::failed("the data set cannot be written").into())
        });
        drop(sender);
        let written = writer
            .join()
            .map_err(|_| Failure::failed("the writer of the data set ended by a fault in rpd"))?;
        // What the writer says comes first: it is why reading ended.
        let all = written?;
        read?;
        anyhow::Ok(all)
    })?;
    let records: usize = all.iter().map(|added| added.records).sum();
    let replaced = all.iter().filter(|added| added.replaced).count();
    let also = match replaced {
        0 => String::new(),
        replaced => format!("; {replaced} of them were there before and are replaced"),
    };
    eprintln!(
        "rpd: {}: {records} records of {} recordings{also}",
        crate::report::shown(directory),
        all.len()
    );
    Ok(())
}

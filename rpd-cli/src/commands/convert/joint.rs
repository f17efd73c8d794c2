//! `rpd convert` of several recordings into one time line.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rpd_core::compat::Compat;
use rpd_core::options::{Format, Options};
use rpd_core::session::{LoadOptions, Session, Window};
use rpd_formats::rocpd::read::{Database, Settings};
use rpd_formats::{JointTimeline, Placed, Together, shown_span};
use rpd_ranks::{Alignment, By, Groups, Member};

use super::super::{barriers, each_recording};
use super::{Arguments, NAME, report};
use crate::failure::Failure;

/// Distance between the ids of processes of two hosts in a time line: one more than the greatest id that Linux gives.
const IDS_OF_HOST: u64 = 1 << 22;
/// Number of hosts whose ids fit into the 32 bits that readers have for them.
const HOSTS: u64 = 1 << 9;

/// A recording on a time line.
struct Part {
    /// Place of its database among the inputs.
    path: usize,
    /// Number of the recording in the database.
    index: usize,
    member: Member,
    /// Number of records that a time line shows, start of the first and end of the last.
    span: Option<(usize, u64, u64)>,
}

/// Writes one file with the time line of all recordings in each format.
pub(super) fn timeline(
    given: &Arguments,
    paths: &[PathBuf],
    window: Option<&Window>,
    compat: Compat,
) -> Result<()> {
    let files = timeline_files(given)?;
    let parts = read_parts(given, paths, window)?;
    let members: Vec<Member> = parts.iter().map(|part| part.member.clone()).collect();
    let alignment = Alignment::new(&members);
    let together = together(&parts, &members, &alignment);
    if together.records == 0 {
        eprintln!("rpd: {NAME}: no records to write");
        return Ok(());
    }
    let mut writers = Vec::new();
    for (format, path) in files {
        // The formats are those that have one.
        writers.extend(JointTimeline::create(format, path, &together)?);
    }
    let mut order: Vec<usize> = (0..parts.len()).collect();
    order.sort_by_key(|number| {
        let member = &members[*number];
        let rank = member.rank.unwrap_or(u64::MAX);
        (member.host.clone(), rank, member.pid, *number)
    });
    for (number, place) in order.into_iter().enumerate() {
        let part = &parts[place];
        let (session, settings) = read(&paths[part.path], part.index, window)?;
        let options = options(given, &settings)?;
        let label = members[place].label();
        let placed = Placed {
            session: &session,
            options: &options,
            label: &label,
            shift: alignment.shift(place),
            number,
            first_id: alignment.of[place] as u64 % HOSTS * IDS_OF_HOST,
        };
        let added: Result<Vec<_>, _> = writers
            .into_iter()
            .map(|writer| writer.with(&placed))
            .collect();
        writers = added?;
    }
    for sentence in &together.notes {
        eprintln!("rpd: {sentence}");
    }
    let written: Result<Vec<_>, _> = writers.into_iter().map(JointTimeline::finish).collect();
    report(&written?, compat);
    Ok(())
}

/// The file in each format.
fn timeline_files(given: &Arguments) -> Result<Vec<(Format, PathBuf)>> {
    let directory = given.output_path.as_deref().unwrap_or(OsStr::new("."));
    let file = |format: &Format| {
        let Some(name) = JointTimeline::file(*format) else {
            return Err(Failure::usage(format!(
                "{NAME}: --one-timeline: {} has no time line of several recordings; choose from pftrace, json, html",
                format.word()
            ))
            .into());
        };
        let mut file = given.output_file.clone().unwrap_or_default();
        if !file.is_empty() {
            file.push("_");
        }
        file.push(name);
        Ok((*format, Path::new(directory).join(file)))
    };
    given.formats.iter().map(file).collect()
}

/// Reads who the recordings are, and what aligns their clocks.
fn read_parts(given: &Arguments, paths: &[PathBuf], window: Option<&Window>) -> Result<Vec<Part>> {
    let barriers = barriers(&given.barrier);
    let places: HashMap<&Path, usize> = paths.iter().map(PathBuf::as_path).zip(0..).collect();
    let mut parts = Vec::new();
    // Arguments tell the communicators of collective operations.
    let load = LoadOptions {
        args: true,
        ..LoadOptions::default()
    };
    each_recording(paths, load, window, |path, index, session, _| {
        parts.push(Part {
            path: places.get(path).copied().unwrap_or(0),
            index,
            member: Member::from_session(&session, &barriers),
            span: shown_span(&session),
        });
        Ok(())
    })?;
    Ok(parts)
}

/// Reads a recording with what a time line shows.
fn read(path: &Path, index: usize, window: Option<&Window>) -> Result<(Session, Settings)> {
    let database = Database::open(path)?;
    let recording = database.recordings().get(index);
    let recording = recording.with_context(|| {
        format!(
            "{} has lost a recording since it was opened; run the command again",
            path.display()
        )
    })?;
    let load = LoadOptions {
        args: true,
        ..LoadOptions::default()
    };
    let (mut session, settings) = database.session(recording, load)?;
    if let Some(window) = window {
        session
            .retain(window)
            .with_context(|| format!("{}: cannot store records", path.display()))?;
    }
    Ok((session, settings))
}

/// The options of a recording: tracks are by GPU and queue, because streams do not tell the GPU.
fn options(given: &Arguments, settings: &Settings) -> Result<Options> {
    Ok(Options {
        group_by_queue: true,
        ..given.options(settings, String::new(), OsStr::new("."))?
    })
}

/// What all recordings are together.
fn together(parts: &[Part], members: &[Member], alignment: &Alignment) -> Together {
    let mut together = Together {
        recordings: parts.len(),
        ..Together::default()
    };
    let shifted = |time: u64, place: usize| time.saturating_add_signed(alignment.shift(place));
    let spans = parts.iter().enumerate();
    let mut spans = spans.filter_map(|(place, part)| {
        let (records, first, last) = part.span?;
        Some((records, shifted(first, place), shifted(last, place)))
    });
    if let Some((records, first, last)) = spans.next() {
        let all = spans.fold((records, first, last), |sum, next| {
            (sum.0 + next.0, sum.1.min(next.1), sum.2.max(next.2))
        });
        (together.records, together.first, together.last) = all;
    }
    let groups = Groups::new(members, By::Rank);
    let hosts = Groups::new(members, By::Host).list.len();
    let count = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    let ranks = groups.list.iter().filter(|group| group.rank.is_some());
    together.title = match ranks.count() {
        0 => count(parts.len(), "process", "processes"),
        ranks => count(ranks, "rank", "ranks"),
    } + " on "
        + &count(hosts, "host", "hosts");
    let named = |list: Vec<String>| {
        /// Names that are listed.
        const MOST: usize = 20;
        let more = list.len().saturating_sub(MOST);
        let text = list[..list.len() - more].join(", ");
        match more {
            0 => text,
            more => format!("{text} and {more} more"),
        }
    };
    let killed = groups.list.iter().filter(|group| !group.ended);
    let killed: Vec<String> = killed.map(|group| group.label(By::Rank)).collect();
    if !killed.is_empty() {
        let note = format!("killed before the end of recording: {}", named(killed));
        together.notes.push(note);
    }
    if !groups.missing.is_empty() {
        let missing = groups.missing.iter().map(u64::to_string).collect();
        let note = format!("no recording of rank {}", named(missing));
        together.notes.push(note);
    }
    together.notes.extend(alignment.sentences());
    together
}

//! Tracks of the timeline: exact slices when there are few records, else bins over the whole time.

use std::collections::HashMap;

use rpd_core::domain::{Domain, Kind};
use rpd_core::ids::{AgentHandle, Nanoseconds, QueueId, StringId, ThreadId};
use rpd_core::kernel_name::KernelLabels;
use rpd_core::options::Options;
use rpd_core::session::{DispatchTable, Session};

use crate::json::Object;
use crate::texts::Texts;

/// With no more records than this, slices are shown as they are.
const EXACT: usize = 12_000;

/// Bins of a track, more than a wide screen has columns.
const BINS: usize = 4096;

/// Tracks of threads that are shown, those with the most records first.
const THREADS: usize = 16;

/// Tracks of queues and copies that are shown.
const DEVICE_TRACKS: usize = 24;

/// A name number that stands for every name beyond 16 bits.
const OTHER: u16 = u16::MAX;

/// Time of the device that is idle, and what ran before and after: numbers of names.
pub(super) struct Gap {
    pub(super) agent: AgentHandle,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// What lies on one track.
struct Track {
    label: String,
    count: usize,
    /// Start, end, name; by start.
    slices: Vec<(u64, u64, u32)>,
    bins: Bins,
}

/// How busy a track is, and with what.
struct Bins {
    origin: u64,
    width: u64,
    busy: Vec<u64>,
    /// Name and weight: whose weight is left when all others are taken from it has the most, or nearly.
    top: Vec<(u32, u64)>,
    covered_until: u64,
}

impl Bins {
    fn new(origin: u64, length: u64) -> Bins {
        Bins {
            origin,
            width: length.div_ceil(BINS as u64).max(1),
            busy: vec![0; BINS],
            top: vec![(0, 0); BINS],
            covered_until: 0,
        }
    }

    /// Calls `visit` with each bin that `start..end` touches and the time within it.
    fn each(&self, start: u64, end: u64, mut visit: impl FnMut(usize, u64)) {
        let (mut at, end) = (start - self.origin, end - self.origin);
        while at < end {
            let bin = at / self.width;
            let stop = ((bin + 1) * self.width).min(end);
            visit((bin as usize).min(BINS - 1), stop - at);
            at = stop;
        }
    }

    fn add(&mut self, start: u64, end: u64, name: u32) {
        let mut top = std::mem::take(&mut self.top);
        self.each(start, end, |bin, time| {
            let (best, weight) = &mut top[bin];
            if *best == name {
                *weight += time;
            } else if time > *weight {
                (*best, *weight) = (name, time - *weight);
            } else {
                *weight -= time;
            }
        });
        self.top = top;
        let from = start.max(self.covered_until);
        if from < end {
            let mut busy = std::mem::take(&mut self.busy);
            self.each(from, end, |bin, time| busy[bin] += time);
            self.busy = busy;
            self.covered_until = end;
        }
    }
}

/// All tracks.
pub(super) struct Timeline<'a> {
    session: &'a Session,
    names: Texts,
    origin: u64,
    end: u64,
    exact: bool,
    tracks: Vec<Track>,
    left_out: usize,
    /// Busy time by agent that ran anything.
    busy: Vec<(String, u64)>,
    gaps: Vec<Gap>,
}

/// The dispatches that were traced; where none was, those that were counted.
fn shown(session: &Session) -> &DispatchTable {
    match session.dispatches.is_empty() {
        true => &session.counted.dispatches,
        false => &session.dispatches,
    }
}

impl<'a> Timeline<'a> {
    pub(super) fn new(session: &'a Session, options: &Options) -> Timeline<'a> {
        let (mut origin, mut end) = (u64::MAX, 0);
        let mut bound = |starts: &[Nanoseconds], ends: &[Nanoseconds]| {
            origin = starts.iter().fold(origin, |least, time| least.min(time.0));
            end = ends.iter().fold(end, |most, time| most.max(time.0));
        };
        bound(&session.api.start, &session.api.end);
        let dispatches = shown(session);
        bound(&dispatches.start, &dispatches.end);
        bound(&session.copies.start, &session.copies.end);
        let mut timeline = Timeline {
            session,
            names: Texts::new(),
            origin: origin.min(end),
            end,
            exact: session.api.len() + dispatches.len() + session.copies.len() <= EXACT,
            tracks: Vec::new(),
            left_out: 0,
            busy: Vec::new(),
            gaps: Vec::new(),
        };
        // Strings keep their numbers.
        for text in session.strings.iter() {
            timeline.names.id(text);
        }
        let work = timeline.device_tracks(options);
        timeline.thread_tracks();
        timeline.idle(work, options);
        timeline
    }

    /// Time shown, in ns.
    pub(super) fn length(&self) -> u64 {
        self.end - self.origin
    }

    /// When it begins.
    pub(super) fn origin(&self) -> u64 {
        self.origin
    }

    /// Share of time that agents worked.
    pub(super) fn busy(&self) -> &[(String, u64)] {
        &self.busy
    }

    pub(super) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    pub(super) fn name(&self, id: u32) -> &str {
        self.names.get(id)
    }

    /// A track of the given records, which are in order of start.
    fn add(&mut self, label: String, slices: impl Iterator<Item = (u64, u64, u32)>) {
        let mut track = Track {
            label,
            count: 0,
            slices: Vec::new(),
            bins: Bins::new(self.origin, self.length()),
        };
        for (start, end, name) in slices {
            let end = end.max(start);
            track.count += 1;
            if self.exact {
                track.slices.push((start, end, name));
            } else {
                track.bins.add(start, end, name);
            }
        }
        self.tracks.push(track);
    }

    /// Kernels by queue, copies by direction. Returns all work of all agents.
    fn device_tracks(&mut self, options: &Options) -> Vec<(AgentHandle, u64, u64, u32)> {
        let session = self.session;
        let dispatches = shown(session);
        let is_traced = !session.dispatches.is_empty();
        let labels = KernelLabels::new(session, options.kernel_names);
        let label = |index| match is_traced {
            true => labels.dispatch(index),
            false => labels.counted(index),
        };
        let mut known = HashMap::new();
        let mut queues: Vec<((AgentHandle, QueueId), Vec<u32>)> = Vec::new();
        let mut queue_positions = HashMap::new();
        let mut names = Vec::with_capacity(dispatches.len());
        let mut work = Vec::with_capacity(dispatches.len() + session.copies.len());
        for index in dispatches.indices() {
            let key = (dispatches.kernel[index], dispatches.region[index]);
            let name = *known
                .entry(key)
                .or_insert_with(|| self.names.id(label(index)));
            names.push(name);
            let (agent, queue) = (dispatches.agent[index], dispatches.queue[index]);
            let position = *queue_positions.entry((agent, queue)).or_insert_with(|| {
                queues.push(((agent, queue), Vec::new()));
                queues.len() - 1
            });
            queues[position].1.push(index as u32);
            work.push((
                agent,
                dispatches.start[index].0,
                dispatches.end[index].0,
                name,
            ));
        }
        queues.sort_by_key(|(key, _)| *key);
        self.left_out += queues.len().saturating_sub(DEVICE_TRACKS);
        for (rank, ((agent, _), indices)) in queues.into_iter().enumerate().take(DEVICE_TRACKS) {
            let label = format!(
                "{} · kernels, queue {rank}",
                agent_name(session, agent, options)
            );
            let slices = indices.into_iter().map(|index| {
                let index = index as usize;
                (
                    dispatches.start[index].0,
                    dispatches.end[index].0,
                    names[index],
                )
            });
            self.add(label, slices);
        }

        let copies = &session.copies;
        let mut ways: Vec<((AgentHandle, AgentHandle, StringId), Vec<u32>)> = Vec::new();
        let mut way_positions = HashMap::new();
        for index in copies.indices() {
            let (from, to) = (copies.src_agent[index], copies.dst_agent[index]);
            let key = (from, to, copies.operation[index]);
            let position = *way_positions.entry(key).or_insert_with(|| {
                ways.push((key, Vec::new()));
                ways.len() - 1
            });
            ways[position].1.push(index as u32);
            // Copies keep the GPU side busy.
            for agent in [from, to] {
                if session
                    .agent(agent)
                    .is_some_and(|agent| agent.agent_type == rpd_core::agent::AgentType::Gpu)
                {
                    let name = copies.operation[index].0;
                    work.push((agent, copies.start[index].0, copies.end[index].0, name));
                }
            }
        }
        ways.sort_by_key(|(key, _)| *key);
        self.left_out += ways.len().saturating_sub(DEVICE_TRACKS);
        for ((from, to, _), indices) in ways.into_iter().take(DEVICE_TRACKS) {
            let label = format!(
                "Copies {} → {}",
                agent_name(session, from, options),
                agent_name(session, to, options)
            );
            let slices = indices.into_iter().map(|index| {
                let index = index as usize;
                (
                    copies.start[index].0,
                    copies.end[index].0,
                    copies.operation[index].0,
                )
            });
            self.add(label, slices);
        }
        work
    }

    /// Calls and markers of each thread.
    fn thread_tracks(&mut self) {
        let session = self.session;
        let api = &session.api;
        let mut threads: Vec<((ThreadId, bool), Vec<u32>)> = Vec::new();
        let mut positions = HashMap::new();
        let mut is_marker = [false; 32];
        for kind in Kind::all() {
            is_marker[kind as usize] = kind.domain() == Domain::MarkerApi;
        }
        for index in api.indices() {
            let key = (api.thread[index], !is_marker[api.kind[index] as usize]);
            let position = *positions.entry(key).or_insert_with(|| {
                threads.push((key, Vec::new()));
                threads.len() - 1
            });
            threads[position].1.push(index as u32);
        }
        threads.sort_by_key(|(_, indices)| std::cmp::Reverse(indices.len()));
        self.left_out += threads.len().saturating_sub(THREADS);
        threads.truncate(THREADS);
        threads.sort_by_key(|(key, _)| *key);
        for ((thread, calls), indices) in threads {
            let what = if calls { "calls" } else { "markers" };
            let slices = indices.into_iter().map(|index| {
                let index = index as usize;
                (
                    api.start[index].0,
                    api.end[index].0,
                    session.api_label(index).0,
                )
            });
            self.add(format!("Thread {thread} · {what}"), slices);
        }
    }

    /// Busy times and gaps between `work`.
    fn idle(&mut self, mut work: Vec<(AgentHandle, u64, u64, u32)>, options: &Options) {
        work.sort_unstable();
        for of_agent in work.chunk_by(|(one, ..), (other, ..)| one == other) {
            let (agent, first, ..) = of_agent[0];
            let (mut busy, mut until, mut before) = (0, first, 0);
            for &(_, start, end, name) in of_agent {
                if start > until {
                    self.gaps.push(Gap {
                        agent,
                        start: until,
                        length: start - until,
                        before,
                        after: name,
                    });
                }
                busy += end.saturating_sub(start.max(until));
                if end > until {
                    until = end;
                    before = name;
                }
            }
            self.busy
                .push((agent_name(self.session, agent, options), busy));
        }
        self.gaps
            .sort_unstable_by_key(|gap| std::cmp::Reverse(gap.length));
    }

    /// What is to be said about the timeline.
    pub(super) fn detail(&self) -> String {
        let mut text = if self.exact {
            String::from("Every record is shown.")
        } else {
            format!(
                "Records are summed up in {BINS} steps: height is the share of time that is busy, colour the name that \
                takes most of it."
            )
        };
        if self.left_out > 0 {
            text.push_str(&format!(
                " {} tracks with fewer records are left out.",
                self.left_out
            ));
        }
        text
    }

    /// Names, by number.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        // Names that no track shows would only make the page longer.
        let mut used = vec![false; self.names.iter().len()];
        let mut mark = |name: u32| {
            if let Some(used) = used.get_mut(name as usize) {
                *used = true;
            }
        };
        for track in &self.tracks {
            track.slices.iter().for_each(|&(.., name)| mark(name));
            let top = track.bins.top.iter();
            top.for_each(|&(name, _)| mark(name));
        }
        let last = used.iter().rposition(|&used| used).map_or(0, |at| at + 1);
        let texts = self.names.iter().zip(used).take(last);
        texts.map(|(text, used)| if used { text } else { "" })
    }

    /// Tracks as JSON.
    pub(super) fn tracks(&self) -> Vec<String> {
        let tracks = self.tracks.iter();
        tracks.map(|track| self.track(track)).collect()
    }

    fn track(&self, track: &Track) -> String {
        let object = Object::new()
            .text("label", &track.label)
            .number("count", track.count);
        if self.exact {
            // The first row that is free: inner slices and crossing ones come under those that are open.
            let mut rows: Vec<u64> = Vec::new();
            let slices = track.slices.iter().map(|&(start, end, name)| {
                let free = rows.iter().position(|&until| until <= start);
                let depth = free.unwrap_or(rows.len());
                match free {
                    Some(row) => rows[row] = end,
                    None => rows.push(end),
                }
                format!("{},{},{name},{depth}", start - self.origin, end - start)
            });
            return object.array("slices", slices).end();
        }
        let bins = &track.bins;
        // Anything at all is to be seen.
        let busy = bins.busy.iter().map(|&busy| match busy {
            0 => 0,
            busy => (busy * 255 / bins.width).clamp(1, 255) as u8,
        });
        let top = bins
            .top
            .iter()
            .flat_map(|&(name, _)| u16::try_from(name).unwrap_or(OTHER).to_le_bytes());
        object
            .text("bins", &base64(&busy.collect::<Vec<_>>()))
            .text("top", &base64(&top.collect::<Vec<_>>()))
            .end()
    }
}

/// How an agent is called on the page.
pub(super) fn agent_name(session: &Session, handle: AgentHandle, options: &Options) -> String {
    match session.agent(handle) {
        Some(agent) => {
            let (label, number) = agent.label(options.agent_index);
            format!("{label} {number} ({})", agent.name)
        }
        None => "unknown agent".to_owned(),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            if digit <= chunk.len() {
                let index = word >> (18 - 6 * digit) & 63;
                text.push(char::from(DIGITS[index as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_of_each_length() {
        let texts = ["", "TQ==", "TWE=", "TWFu", "TWFuTQ=="];
        for (bytes, text) in ["", "M", "Ma", "Man", "ManM"].into_iter().zip(texts) {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }

    #[test]
    fn bins_add_up_without_counting_twice() {
        let mut bins = Bins::new(1000, BINS as u64 * 10);
        bins.add(1000, 1025, 1);
        bins.add(1005, 1015, 2);
        bins.add(1020, 1040, 3);
        assert_eq!(bins.busy[..5], [10, 10, 10, 10, 0]);
        let names: Vec<u32> = bins.top[..4].iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [1, 1, 3, 3]);
        // To the very end, and nothing behind it.
        bins.add(1000 + BINS as u64 * 10 - 1, 1000 + BINS as u64 * 10, 1);
        assert_eq!(bins.busy[BINS - 1], 1);
    }
}

//! Tracks of the timeline: exact slices when there are few records, else bins over the whole time.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::io;

use rpd_core::domain::Domain;
use rpd_core::ids::{AgentHandle, Nanoseconds, StringId};
use rpd_core::options::Options;
use rpd_core::session::shown::{ShownFrame, expand};
use rpd_core::session::{ExtendedStrings, Session};
use rpd_core::storage::sorted::{Keyed, Sorted, Sorter};
use zerocopy::{Immutable, IntoBytes};

use super::tracks::{BINS, Bins, Keys, Track};
use crate::json::Object;
use crate::output::shown_span;

/// Greatest number of records of which slices are shown one by one.
const EXACT: usize = 12_000;

/// Number of tracks of threads that are shown, those with the most records first.
const THREADS: usize = 16;

/// Tracks of queues and copies that are shown.
const DEVICE_TRACKS: usize = 24;

/// Gaps that are kept while the longest are looked for: many more than the page shows.
const MAX_GAPS: usize = 1 << 16;

/// A name number that stands for every name beyond 16 bits.
const OTHER: u16 = u16::MAX;

/// Bytes of names on the page, beyond which they are cut off after [`CUT_NAME`] bytes.
const WHOLE_NAMES: usize = 4 << 20;
const CUT_NAME: usize = 128;

/// A time in which the device is idle, with the names of the work before and after.
pub(super) struct Gap {
    pub(super) agent: AgentHandle,
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) before: u32,
    pub(super) after: u32,
}

/// A dispatch or copy that keeps an agent busy.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct Work {
    agent: AgentHandle,
    start: Nanoseconds,
    end: Nanoseconds,
    /// Id of its name.
    name: u64,
}

impl Keyed for Work {
    type Key = (AgentHandle, Nanoseconds, Nanoseconds, u64);

    fn key(&self) -> Self::Key {
        (self.agent, self.start, self.end, self.name)
    }
}

/// The time that a timeline covers, and what of it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Begin, on the session's clock.
    pub(super) origin: u64,
    /// End, on the session's clock.
    pub(super) end: u64,
    /// Whether every record is shown.
    pub(super) exact: bool,
    /// Number of tracks of threads.
    pub(super) threads: usize,
}

impl Extent {
    /// The extent of a timeline of one session.
    fn from_session(session: &Session) -> Extent {
        let (records, origin, end) = shown_span(session).unwrap_or_default();
        Extent {
            origin: origin.min(end),
            end,
            exact: is_exact(records),
            threads: THREADS,
        }
    }
}

/// Whether so many records are shown one by one.
pub(super) fn is_exact(records: usize) -> bool {
    records <= EXACT
}

/// The tracks of a page's timeline.
pub(super) struct Timeline<'a> {
    session: &'a Session,
    names: ExtendedStrings<'a>,
    origin: u64,
    end: u64,
    exact: bool,
    tracks: Vec<Track>,
    /// Ids of the names that tracks show; the page numbers them in this order.
    shown: Vec<u32>,
    numbers: HashMap<u32, u32>,
    left_out: usize,
    /// Busy time by agent that ran anything.
    busy: Vec<(String, u64)>,
    /// The longest, and how many there are in all.
    gaps: Vec<Gap>,
    gap_count: usize,
}

impl<'a> Timeline<'a> {
    /// The timeline of a session.
    ///
    /// # Errors
    /// When the records of a long recording cannot be stored while they are put in order.
    pub(super) fn new(session: &'a Session, options: &Options) -> io::Result<Timeline<'a>> {
        Timeline::within(session, options, Extent::from_session(session))
    }

    /// The part of a timeline that shows a session. Its records lie within `extent`.
    ///
    /// # Errors
    /// As [`Timeline::new`].
    pub(super) fn within(
        session: &'a Session,
        options: &Options,
        extent: Extent,
    ) -> io::Result<Timeline<'a>> {
        let mut timeline = Timeline {
            session,
            names: ExtendedStrings::new(&session.strings),
            origin: extent.origin,
            end: extent.end,
            exact: extent.exact,
            tracks: Vec::new(),
            shown: Vec::new(),
            numbers: HashMap::new(),
            left_out: 0,
            busy: Vec::new(),
            gaps: Vec::new(),
            gap_count: 0,
        };
        timeline.device_tracks(options)?;
        timeline.thread_tracks(extent.threads);
        timeline.number_names();
        Ok(timeline)
    }

    /// Numbers the names that tracks show. The names of steps are limited: the rest is shown as [`OTHER`].
    fn number_names(&mut self) {
        for track in &self.tracks {
            let slices = track.slices.iter().map(|&(.., name)| name);
            let steps = track.bins.top.iter().map(|&(name, _)| name);
            for name in slices.chain(steps.filter(|_| !self.exact)) {
                let number = self.shown.len() as u32;
                if !self.exact && number == u32::from(OTHER) {
                    return;
                }
                self.numbers.entry(name).or_insert_with(|| {
                    self.shown.push(name);
                    number
                });
            }
        }
    }

    /// Makes the tracks a part of a page with others: their labels begin with `label`, names are numbered by `names`, which
    /// has those of all, and stacks are left out.
    pub(super) fn join(&mut self, label: &str, names: &mut HashMap<String, u32>) {
        for track in &mut self.tracks {
            track.label = format!("{label} · {}", track.label);
            track.stacks.clear();
        }
        for (id, number) in &mut self.numbers {
            let text = self.names.get(StringId(*id));
            let next = names.len() as u32;
            *number = match names.get(text) {
                Some(known) => *known,
                None => {
                    names.insert(text.to_owned(), next);
                    next
                }
            };
        }
    }

    /// Number of tracks that are left out because they have few records.
    pub(super) fn left_out(&self) -> usize {
        self.left_out
    }

    /// The session that it is of.
    pub(super) fn session(&self) -> &'a Session {
        self.session
    }

    /// Time shown, in ns.
    pub(super) fn length(&self) -> u64 {
        self.end - self.origin
    }

    /// Begin of the timeline.
    pub(super) fn origin(&self) -> u64 {
        self.origin
    }

    /// Share of time that agents worked.
    pub(super) fn busy(&self) -> &[(String, u64)] {
        &self.busy
    }

    /// The longest gaps, longest first.
    pub(super) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Number of gaps that were found.
    pub(super) fn gap_count(&self) -> usize {
        self.gap_count
    }

    pub(super) fn name(&self, id: u32) -> &str {
        self.names.get(StringId(id))
    }

    /// A track without records.
    fn track_called(&self, label: String) -> Track {
        Track {
            label,
            count: 0,
            slices: Vec::new(),
            stacks: Vec::new(),
            bins: Bins::new(self.origin, self.length()),
        }
    }

    /// Kernels by queue, copies by direction, and when devices work.
    fn device_tracks(&mut self, options: &Options) -> io::Result<()> {
        let session = self.session;
        let kernels = session.kernels(options.kernel_names);
        let dispatches = kernels.dispatches;
        let mut known = HashMap::new();
        let mut queues = Keys::new();
        let mut work = Sorter::new(session.storage.as_ref());
        for index in dispatches.indices() {
            let name = *known
                .entry(kernels.key(index))
                .or_insert_with(|| self.names.intern(kernels.name(index)).0);
            let agent = dispatches.agent[index];
            queues.count((agent, dispatches.queue[index]));
            work.push(Work {
                agent,
                start: dispatches.start[index],
                end: dispatches.end[index],
                name: name.into(),
            })?;
        }
        let order = queues.ordered();
        self.left_out += order.len().saturating_sub(DEVICE_TRACKS);
        let mut tracks = order.into_iter().enumerate().take(DEVICE_TRACKS);
        let mut tracks = queues.tracks(tracks.by_ref().map(|(rank, (agent, queue))| {
            let agent_text = agent_name(session, agent, options);
            let label = format!("{agent_text} · kernels, queue {rank}");
            ((agent, queue), self.track_called(label))
        }));
        // In a second pass, when the tracks are known that are shown.
        for index in dispatches.indices() {
            let key = (dispatches.agent[index], dispatches.queue[index]);
            if let Some(track) = tracks.of(key) {
                let name = known[&kernels.key(index)];
                let (start, end) = (dispatches.start[index].0, dispatches.end[index].0);
                track.add(self.exact, start, end, name);
            }
        }
        self.tracks.extend(tracks.list);

        let copies = &session.copies;
        let mut ways = Keys::new();
        for index in copies.indices() {
            let (from, to) = (copies.src_agent[index], copies.dst_agent[index]);
            ways.count((from, to, session.operations[copies.operation[index]].name));
            // Copies keep the GPU side busy.
            for agent in [from, to] {
                if session
                    .agent(agent)
                    .is_some_and(|agent| agent.agent_type == rpd_core::agent::AgentType::Gpu)
                {
                    let name = session.operations[copies.operation[index]].name.0;
                    work.push(Work {
                        agent,
                        start: copies.start[index],
                        end: copies.end[index],
                        name: name.into(),
                    })?;
                }
            }
        }
        let order = ways.ordered();
        self.left_out += order.len().saturating_sub(DEVICE_TRACKS);
        let mut tracks = ways.tracks(order.into_iter().take(DEVICE_TRACKS).map(|key| {
            let label = format!(
                "Copies {} → {}",
                agent_name(session, key.0, options),
                agent_name(session, key.1, options)
            );
            (key, self.track_called(label))
        }));
        for index in copies.indices() {
            let operation = session.operations[copies.operation[index]].name;
            let key = (copies.src_agent[index], copies.dst_agent[index], operation);
            if let Some(track) = tracks.of(key) {
                let (start, end) = (copies.start[index].0, copies.end[index].0);
                track.add(self.exact, start, end, operation.0);
            }
        }
        self.tracks.extend(tracks.list);
        // Idle time is the time of neither kernels nor copies, so that both are sorted together.
        self.idle(work.finish()?, options);
        Ok(())
    }

    /// Calls and markers of each thread.
    fn thread_tracks(&mut self, most: usize) {
        let session = self.session;
        let calls = &session.calls;
        let is_call = session
            .operations
            .select(|operation| operation.domain() != Domain::MarkerApi);
        let key = |index: usize| {
            (
                calls.thread[index],
                is_call[calls.operation[index].0 as usize],
            )
        };
        let mut threads = Keys::new();
        for index in calls.indices() {
            threads.count(key(index));
        }
        let mut order = threads.list.clone();
        order.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        self.left_out += order.len().saturating_sub(most);
        order.truncate(most);
        order.sort_by_key(|(key, _)| *key);
        let mut tracks = threads.tracks(order.into_iter().map(|((thread, calls), _)| {
            let what = if calls { "calls" } else { "markers" };
            let track = self.track_called(format!("Thread {thread} · {what}"));
            ((thread, calls), track)
        }));
        for index in calls.indices() {
            if let Some(track) = tracks.of(key(index)) {
                let (start, end) = (calls.start[index].0, calls.end[index].0);
                track.add(self.exact, start, end, session.call_label(index).0);
                if let Some(own) = calls.stack.get(index).filter(|_| self.exact) {
                    track.stacks.push(own.stack);
                }
            }
        }
        self.tracks.extend(tracks.list);
    }

    /// Busy times and gaps between `work`.
    fn idle(&mut self, work: Sorted<Work>, options: &Options) {
        let mut state: Option<(AgentHandle, u64, u64, u32)> = None;
        for work in work {
            let (agent, name) = (work.agent, work.name as u32);
            let (start, end) = (work.start.0, work.end.0);
            let (of, mut busy, mut until, mut before) = match state {
                Some(same) if same.0 == agent => same,
                other => {
                    self.finish_agent(other, options);
                    (agent, 0, start, 0)
                }
            };
            if start > until {
                self.gap_count += 1;
                self.gaps.push(Gap {
                    agent,
                    start: until,
                    length: start - until,
                    before,
                    after: name,
                });
                if self.gaps.len() >= MAX_GAPS {
                    self.sort_gaps();
                    self.gaps.truncate(MAX_GAPS / 2);
                }
            }
            busy += end.saturating_sub(start.max(until));
            if end > until {
                until = end;
                before = name;
            }
            state = Some((of, busy, until, before));
        }
        self.finish_agent(state, options);
        self.sort_gaps();
    }

    fn sort_gaps(&mut self) {
        self.gaps
            .sort_unstable_by_key(|gap| std::cmp::Reverse(gap.length));
    }

    fn finish_agent(&mut self, state: Option<(AgentHandle, u64, u64, u32)>, options: &Options) {
        if let Some((agent, busy, ..)) = state {
            self.busy
                .push((agent_name(self.session, agent, options), busy));
        }
    }

    /// A sentence about the extent of the timeline and the tracks that are left out.
    pub(super) fn detail(&self) -> String {
        detail(self.exact, self.left_out)
    }

    /// The names that slices refer to, by number.
    pub(super) fn names(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let mut bytes = 0;
        self.shown.iter().map(move |name| {
            let text = self.names.get(StringId(*name));
            bytes += text.len();
            if bytes <= WHOLE_NAMES {
                text.into()
            } else {
                cut(text, CUT_NAME)
            }
        })
    }

    /// The frames of stacks that slices have as JSON: texts, and for each stack the places of its frames among them,
    /// innermost first.
    pub(super) fn stacks(&self, options: &Options) -> (Vec<String>, String) {
        let tracks = self.tracks.iter();
        let wanted: BTreeSet<u32> = tracks.flat_map(|track| &track.stacks).copied().collect();
        if !wanted.iter().any(|stack| *stack != 0) {
            return (Vec::new(), "{}".to_owned());
        }
        let expanded = expand(self.session, options.stacks.shown);
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut texts = Vec::new();
        let mut stacks = Object::new();
        for stack in wanted {
            let Some(frames) = expanded.stacks.get(&stack) else {
                continue;
            };
            let places = frames.iter().map(|&frame| {
                let place = *places.entry(frame).or_insert_with(|| {
                    texts.push(frame_line(self.session, &expanded.frames[frame as usize]));
                    texts.len() - 1
                });
                place.to_string()
            });
            stacks = stacks.array(&stack.to_string(), places);
        }
        (texts, stacks.end())
    }

    /// The tracks as JSON.
    pub(super) fn tracks(&self) -> impl Iterator<Item = String> {
        self.tracks.iter().map(|track| self.track(track))
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
                let name = self.numbers[&name];
                format!("{},{},{name},{depth}", start - self.origin, end - start)
            });
            let object = object.array("slices", slices);
            return if track.stacks.iter().any(|stack| *stack != 0) {
                object
                    .array("stacks", track.stacks.iter().map(u32::to_string))
                    .end()
            } else {
                object.end()
            };
        }
        let bins = &track.bins;
        // Anything at all is to be seen.
        let busy = bins.busy.iter().map(|&busy| match busy {
            0 => 0,
            busy => (busy * 255 / bins.width).clamp(1, 255) as u8,
        });
        let top = bins.top.iter().flat_map(|(name, _)| {
            let number = self.numbers.get(name);
            let number = number.and_then(|number| u16::try_from(*number).ok());
            number.unwrap_or(OTHER).to_le_bytes()
        });
        object
            .text("bins", &base64(&busy.collect::<Vec<_>>()))
            .text("top", &base64(&top.collect::<Vec<_>>()))
            .end()
    }
}

/// A sentence about what a timeline shows.
pub(super) fn detail(exact: bool, left_out: usize) -> String {
    let mut text = if exact {
        String::from("Every record is shown.")
    } else {
        format!(
            "Records are summed up in {BINS} steps: height is the share of time that is busy, colour the name that \
            takes most of it."
        )
    };
    if left_out > 0 {
        text.push_str(&format!(
            " {left_out} tracks with fewer records are left out."
        ));
    }
    text
}

/// A frame in one line.
fn frame_line(session: &Session, frame: &ShownFrame) -> String {
    let text = session.frame_text(frame);
    match (text.file, text.line) {
        ("", _) => text.function.into_owned(),
        (file, 0) => format!("{} at {file}", text.function),
        (file, line) => format!("{} at {file}:{line}", text.function),
    }
}

/// Name of an agent on the page.
pub(super) fn agent_name(session: &Session, handle: AgentHandle, options: &Options) -> String {
    match session.agent(handle) {
        Some(agent) => {
            let (label, number) = agent.label(options.agent_index);
            format!("{label} {number} ({})", agent.name)
        }
        None => "unknown agent".to_owned(),
    }
}

/// The text without its bytes behind the first `bytes`.
pub(super) fn cut(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        text.into()
    } else {
        format!("{}…", &text[..text.floor_char_boundary(bytes)]).into()
    }
}

/// Bytes as text in base64.
pub(super) fn base64(bytes: &[u8]) -> String {
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
    fn base64_pads_texts_of_each_length() {
        let texts = ["", "TQ==", "TWE=", "TWFu", "TWFuTQ=="];
        for (bytes, text) in ["", "M", "Ma", "Man", "ManM"].into_iter().zip(texts) {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}

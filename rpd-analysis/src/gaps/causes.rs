//! The causes of a gap: its time, split.

use std::collections::VecDeque;

use super::Floors;
use crate::classes::Doing;
use crate::records::Launch;

/// Number of causes.
pub(super) const CAUSES: usize = 7;

/// The time of a gap by causes, in nanoseconds; the parts add up to its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// A copy ran.
    pub copy: u64,
    /// The program had not requested the operation, by what the thread that did was doing ([`Doing::ALL`]).
    pub host: [u64; 6],
    /// The way from the call to the GPU.
    pub launch: u64,
    /// From the end of a kernel to the start of one that was queued before.
    pub turnaround: u64,
    /// Between kernels of a graph.
    pub graph: u64,
    /// The operation was requested and did not start.
    pub wait: u64,
    /// The call that requested the operation is not known.
    pub unrecorded: u64,
}

impl Parts {
    /// Time of the host, whatever it did.
    pub fn host_time(&self) -> u64 {
        self.host.iter().sum()
    }

    /// The causes with their times.
    pub fn each(&self) -> [(&'static str, u64); CAUSES] {
        [
            ("copy", self.copy),
            ("host", self.host_time()),
            ("launch", self.launch),
            ("turnaround", self.turnaround),
            ("graph", self.graph),
            ("wait", self.wait),
            ("unrecorded", self.unrecorded),
        ]
    }

    /// The parts with one cause alone; time of the host is its own code's.
    pub(super) fn only(cause: &str, time: u64) -> Parts {
        let mut parts = Parts::default();
        match cause {
            "copy" => parts.copy = time,
            "host" => parts.host[Doing::Program as usize] = time,
            "launch" => parts.launch = time,
            "turnaround" => parts.turnaround = time,
            "graph" => parts.graph = time,
            "wait" => parts.wait = time,
            _ => parts.unrecorded = time,
        }
        parts
    }

    /// All parts together.
    pub fn total(&self) -> u64 {
        self.each().iter().map(|part| part.1).sum()
    }

    /// Adds the parts of another gap.
    pub fn add(&mut self, other: &Parts) {
        self.copy += other.copy;
        for (to, from) in self.host.iter_mut().zip(other.host) {
            *to += from;
        }
        self.launch += other.launch;
        self.turnaround += other.turnaround;
        self.graph += other.graph;
        self.wait += other.wait;
        self.unrecorded += other.unrecorded;
    }

    /// The cause with the longest time, the first of equal ones; the host's says what it did.
    pub fn label(&self) -> &'static str {
        const HOST: [&str; 6] = [
            "host:sync",
            "host:alloc",
            "host:load",
            "host:launch",
            "host:api",
            "host:program",
        ];
        let longest = |best: (&'static str, u64), part: (&'static str, u64)| {
            if part.1 > best.1 { part } else { best }
        };
        let (cause, _) = self.each().into_iter().fold(("none", 0), longest);
        if cause != "host" {
            return cause;
        }
        let doing = HOST.into_iter().zip(self.host);
        doing.fold(("host", 0), longest).0
    }
}

/// A gap that is split, but for what the host did.
pub(super) struct Split {
    /// The parts without the host's.
    pub(super) parts: Parts,
    /// Times that are the host's.
    pub(super) host: Vec<(u64, u64)>,
}

/// Splits a gap. `launch` requested the operation that ends it, `same_graph` tells whether that is of the same graph launch as one
/// that ended before the gap, and `copies` are times of copies in their order.
pub(super) fn split(
    start: u64,
    end: u64,
    launch: Option<Launch>,
    same_graph: bool,
    copies: &VecDeque<(u64, u64)>,
    floors: &Floors,
) -> Split {
    let mut parts = Parts::default();
    let mut host = Vec::new();
    // Times without a copy, behind the call.
    let mut requested = Vec::new();
    let mut free = |from: u64, to: u64| {
        if to <= from {
            return;
        }
        let Some(launch) = launch else {
            parts.unrecorded += to - from;
            return;
        };
        let call = launch.begin.clamp(from, to);
        if call > from {
            host.push((from, call));
        }
        if to > call {
            requested.push((call, to));
        }
    };
    let mut at = start;
    let mut copied = 0;
    let first = copies.partition_point(|copy| copy.1 <= start);
    for (from, to) in copies.iter().skip(first).take_while(|copy| copy.0 < end) {
        let (from, to) = ((*from).max(at), (*to).min(end));
        free(at, from);
        copied += to.saturating_sub(from);
        at = at.max(to);
    }
    free(at, end);
    parts.copy = copied;
    let Some(launch) = launch else {
        return Split { parts, host };
    };
    let within = |from: u64, to: u64| -> u64 {
        let cut = |time: &(u64, u64)| time.1.min(to).saturating_sub(time.0.max(from));
        requested.iter().map(cut).sum()
    };
    let left: u64 = requested.iter().map(|time| time.1 - time.0).sum();
    if same_graph {
        parts.graph = left;
        return Split { parts, host };
    }
    let way = launch.begin.saturating_add(floors.launch);
    if way > start {
        parts.launch = within(launch.begin, way);
    }
    if host.is_empty() && parts.launch == 0 {
        parts.turnaround = within(start, start.saturating_add(floors.turnaround));
    }
    parts.wait = left - parts.launch - parts.turnaround;
    Split { parts, host }
}

//! The tracks of a timeline: the one place that decides which there are, and which record is on which.

use std::collections::HashMap;

use rpd_analysis::records::{Allocation, Call, Facts, NONE, Op, Range, Style};
use serde::Serialize;

/// Lanes of a track, in which records that overlap are drawn below one another; more share the last one.
const LANES: usize = 12;

/// Places of tracks that are kept at hand.
const RECENT: usize = 256;

/// What a track shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Kernels of a queue and stream.
    Kernels,
    /// Copies in one direction.
    Copies,
    /// Memory in use.
    Memory,
    /// Markers of a thread.
    Markers,
    /// Calls of a thread.
    Calls,
}

impl Kind {
    /// Number of values in the details of a record.
    pub const fn details(self) -> usize {
        match self {
            Kind::Kernels | Kind::Copies => OP_DETAILS,
            Kind::Markers => 2,
            Kind::Calls => 1,
            Kind::Memory => 0,
        }
    }
}

/// Values of an operation that are no part of a slice, see [`op_details`].
const OP_DETAILS: usize = 18;

/// What tells tracks apart, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Index of the process.
    pub process: u32,
    /// What it shows.
    pub kind: Kind,
    /// Index of the GPU, or of the thread; of memory whether it is the host's.
    pub of: u32,
    /// Number of the queue, or direction of copies.
    pub queue: u32,
    /// Number of the stream.
    pub stream: u32,
    /// Whether it has second appearances of copies between GPUs, which are in no sum over tracks.
    pub is_second: bool,
}

/// A record as it is drawn. Times are on the recording's clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slice {
    /// Begin.
    pub start: u64,
    /// Length; 0 where the end is not after the begin.
    pub length: u64,
    /// Name; [`NONE`] for none.
    pub name: u32,
    /// Lane.
    pub lane: u32,
    /// Bytes copied, or in use.
    pub weight: u64,
}

impl Slice {
    /// End.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// A track of a timeline, while records are divided.
#[derive(Debug)]
pub struct Track {
    /// What it shows.
    pub place: Place,
    lanes: Vec<u64>,
}

impl Track {
    /// Number of lanes that were needed.
    pub fn lanes(&self) -> usize {
        self.lanes.len().max(1)
    }

    /// The first lane that is free from `start`, which is taken until `end`.
    fn lane(&mut self, start: u64, end: u64) -> u32 {
        let free = self.lanes.iter().position(|until| *until <= start);
        let lane = free.unwrap_or_else(|| {
            if self.lanes.len() < LANES {
                self.lanes.push(0);
            }
            self.lanes.len() - 1
        });
        self.lanes[lane] = self.lanes[lane].max(end).max(start + 1);
        lane as u32
    }
}

/// All tracks, found by place.
#[derive(Debug, Default)]
pub struct Tracks {
    /// Tracks in the order in which their first records come.
    pub list: Vec<Track>,
    found: HashMap<Place, u32>,
    /// Some of the places that were looked up, each at a spot that follows from it.
    recent: Vec<Option<(Place, u32)>>,
}

impl Tracks {
    /// The number of the track at a place.
    fn number(&mut self, place: Place) -> u32 {
        let spot =
            place.process ^ place.of.wrapping_mul(5) ^ place.queue ^ place.stream.wrapping_mul(3);
        let spot = (spot as usize * 8 + place.kind as usize) % RECENT;
        if let Some(Some((of, number))) = self.recent.get(spot)
            && *of == place
        {
            return *number;
        }
        let list = &mut self.list;
        let number = *self.found.entry(place).or_insert_with(|| {
            list.push(Track {
                place,
                lanes: Vec::new(),
            });
            list.len() as u32 - 1
        });
        self.recent.resize(RECENT, None);
        self.recent[spot] = Some((place, number));
        number
    }

    fn slice(&mut self, track: u32, start: u64, end: u64, name: u32, weight: u64) -> Slice {
        let end = end.max(start);
        Slice {
            start,
            length: end - start,
            name,
            lane: self.list[track as usize].lane(start, end),
            weight,
        }
    }

    /// Track and slice of an operation.
    pub fn op(&mut self, op: &Op) -> (u32, Slice) {
        let (kind, queue, stream) = if op.is_kernel {
            (Kind::Kernels, op.queue, op.stream)
        } else {
            (Kind::Copies, op.name, 0)
        };
        let track = self.number(Place {
            process: op.process,
            kind,
            of: op.gpu,
            queue,
            stream,
            is_second: op.is_second,
        });
        (
            track,
            self.slice(track, op.start, op.end, op.name, op.bytes),
        )
    }

    fn of_thread(&mut self, facts: &Facts, kind: Kind, thread: u32) -> u32 {
        self.number(Place {
            process: facts.thread(thread).process,
            kind,
            of: thread,
            queue: 0,
            stream: 0,
            is_second: false,
        })
    }

    /// Track and slice of a call.
    pub fn call(&mut self, facts: &Facts, call: &Call) -> (u32, Slice) {
        let track = self.of_thread(facts, Kind::Calls, call.thread);
        (track, self.slice(track, call.start, call.end, call.name, 0))
    }

    /// Track and slice of a marker.
    pub fn range(&mut self, facts: &Facts, range: &Range) -> (u32, Slice) {
        let track = self.of_thread(facts, Kind::Markers, range.thread);
        let slice = self.slice(track, range.start, range.end, range.name, 0);
        (track, slice)
    }

    /// The track of memory in use.
    fn memory(&mut self, process: u32, is_host: bool) -> u32 {
        self.number(Place {
            process,
            kind: Kind::Memory,
            of: is_host.into(),
            queue: 0,
            stream: 0,
            is_second: false,
        })
    }
}

/// Memory in use by each process, from allocations and frees.
#[derive(Debug, Default)]
pub struct InUse {
    sizes: HashMap<(u32, u64), (u64, bool)>,
    totals: HashMap<(u32, bool), (u64, u64)>,
}

impl InUse {
    /// Takes a change; the stretch that it ends, with its track, unless nothing was in use.
    pub fn change(&mut self, tracks: &mut Tracks, change: &Allocation) -> Option<(u32, Slice)> {
        let key = (change.process, change.address);
        let (bytes, is_host) = if change.is_free {
            self.sizes.remove(&key)?
        } else {
            self.sizes.insert(key, (change.bytes, change.is_host));
            (change.bytes, change.is_host)
        };
        // Memory is there from the end of its allocation to the begin of its free.
        let at = if change.is_free {
            change.start
        } else {
            change.end
        };
        let total = self.totals.entry((change.process, is_host)).or_default();
        let (since, used) = *total;
        let at = at.max(since);
        total.0 = at;
        total.1 = if change.is_free {
            used.saturating_sub(bytes)
        } else {
            used.saturating_add(bytes)
        };
        let track = tracks.memory(change.process, is_host);
        (used > 0 && at > since).then(|| (track, step(since, at, used)))
    }

    /// The stretches that last until the end of the recording.
    pub fn finish(self, tracks: &mut Tracks, end: u64) -> Vec<(u32, Slice)> {
        let mut last: Vec<_> = self.totals.into_iter().collect();
        last.sort_unstable();
        let last = last.into_iter();
        let last = last.filter(|(_, (since, used))| *used > 0 && end > *since);
        last.map(|((process, is_host), (since, used))| {
            (tracks.memory(process, is_host), step(since, end, used))
        })
        .collect()
    }
}

fn step(start: u64, end: u64, weight: u64) -> Slice {
    Slice {
        start,
        length: end - start,
        name: NONE,
        lane: 0,
        weight,
    }
}

/// Values of an operation beside its slice: number, queue + 1, stream, grid, group, LDS, scratch, index of its kernel's resources + 1,
/// and of the call that requested it: what it is (0 none, 1 a call, 2 one of a graph), time from its begin to the operation's, length,
/// thread, name and number.
pub fn op_details(op: &Op) -> [u64; OP_DETAILS] {
    let optional = |number: u32| u64::from(number.wrapping_add(1));
    let mut row = [0; OP_DETAILS];
    row[..3].copy_from_slice(&[op.id, optional(op.queue), op.stream.into()]);
    for axis in 0..3 {
        row[3 + axis] = op.grid[axis].into();
        row[6 + axis] = op.group[axis].into();
    }
    row[9..12].copy_from_slice(&[op.lds.into(), op.scratch.into(), optional(op.kernel)]);
    if let Some(launch) = op.launch {
        row[12] = 1 + u64::from(launch.is_graph);
        // Negative where clocks differ.
        row[13] = op.start.wrapping_sub(launch.begin);
        row[14] = launch.end.saturating_sub(launch.begin);
        row[15] = launch.thread.into();
        row[16] = launch.name.into();
        row[17] = launch.call;
    }
    row
}

/// Values of a marker beside its slice: its number, and its style (0 nested, 1 between threads, 2 a mark).
pub fn range_details(range: &Range) -> [u64; 2] {
    let style = match range.style {
        Style::Nested => 0,
        Style::Across => 1,
        Style::Mark => 2,
    };
    [range.id.into(), style]
}

/// Names of a track: what it belongs to, and its own.
pub fn labels(facts: &Facts, place: &Place) -> (String, String) {
    let process = facts.processes.get(place.process as usize);
    let pid = process.map_or(0, |process| process.pid);
    let rank = process.and_then(|process| process.rank);
    let owner = match rank {
        Some(rank) => format!("rank {rank} · process {pid}"),
        None => format!("process {pid}"),
    };
    let gpu = |index: u32| match facts.gpus.get(index as usize) {
        Some(gpu) => format!("GPU {} {}", gpu.number, gpu.arch),
        None => "GPU".to_owned(),
    };
    let own = match place.kind {
        Kind::Kernels if place.queue == NONE => format!("stream {}", place.stream),
        Kind::Kernels => format!("queue {} · stream {}", place.queue, place.stream),
        Kind::Copies => {
            let direction = facts.name(place.queue);
            let direction = direction.trim_start_matches("MEMORY_COPY_");
            let direction = direction.to_lowercase().replace('_', " ");
            let second = if place.is_second { " (other end)" } else { "" };
            format!("copies {direction}{second}")
        }
        Kind::Memory if place.of == 1 => "memory of the host in use".to_owned(),
        Kind::Memory => "memory of GPUs in use".to_owned(),
        Kind::Markers => format!("markers of thread {}", facts.thread(place.of).tid),
        Kind::Calls => format!("calls of thread {}", facts.thread(place.of).tid),
    };
    match place.kind {
        Kind::Kernels | Kind::Copies => (format!("{owner} · {}", gpu(place.of)), own),
        Kind::Memory | Kind::Markers | Kind::Calls => (owner, own),
    }
}

//! When a GPU does not compute, and why: gaps between operations, each split by causes that add up to its length.

mod causes;
mod floors;
mod host;
pub(crate) mod report;

use std::collections::{BTreeMap, VecDeque};

pub use causes::Parts;
pub use floors::Floors;
pub(crate) use report::common as report_common;
pub use report::{CauseRow, FORM, GapRow, SumRow, SummaryRow};

use crate::classes::Class;
use crate::records::{NONE, Op, Records};
use crate::sweep::{Measure, Sweep};
use host::HostCalls;

/// Operations whose absence is a gap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Of {
    /// Kernels: while a copy runs alone there is a gap.
    #[default]
    Kernels,
    /// Any operation.
    Any,
}

/// Operations that are taken together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// All operations of a GPU.
    #[default]
    Gpu,
    /// Operations of one queue.
    Queue,
    /// Operations of one stream.
    Stream,
}

/// What gaps are added up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Causes of gaps.
    Cause,
    /// Names of the operations that end gaps.
    Opener,
    /// Places, or else functions, that launched the operations that end gaps.
    Caller,
}

/// What gaps are looked for.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Shortest gap that is listed.
    pub min: u64,
    /// Operations whose absence is a gap.
    pub of: Of,
    /// Operations that are taken together.
    pub scope: Scope,
    /// Whether the times before the first and after the last operation of a given window are gaps.
    pub edges: bool,
    /// First instant and end of the window; `None` takes the span of each GPU.
    pub window: Option<(u64, u64)>,
    /// Gaps that are listed, the longest first; `None` lists all.
    pub limit: Option<usize>,
    /// What gaps are added up by.
    pub by: Option<By>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            min: 5_000,
            of: Of::default(),
            scope: Scope::default(),
            edges: false,
            window: None,
            limit: Some(20),
            by: None,
        }
    }
}

/// A call in the host part of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCall {
    /// Time in it.
    pub length: u64,
    /// Function.
    pub name: u32,
    /// Number of the call in its process.
    pub call: u64,
}

/// A gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Index into [`Gaps::scopes`].
    pub scope: usize,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Length by causes.
    pub parts: Parts,
    /// Name of an operation that ended last before it; [`NONE`] when there is none.
    pub closer: u32,
    /// The operation that ends it; of a gap behind the last kernel, the copy in it. `None` at the end of a window.
    pub opener: Option<Op>,
    /// The longest call in its host part.
    pub call: Option<HostCall>,
}

impl Gap {
    /// Length in nanoseconds.
    pub fn length(&self) -> u64 {
        self.end - self.start
    }
}

/// Gaps of a GPU, a queue or a stream, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeSums {
    /// Index of the GPU.
    pub gpu: u32,
    /// Number of the queue or stream; [`NONE`] for a GPU.
    pub part: u32,
    /// Window.
    pub window: (u64, u64),
    /// Time in which operations run, [`Of`] those that are looked at.
    pub busy: u64,
    /// Number of gaps, short ones included.
    pub gaps: u64,
    /// Time of all gaps by causes.
    pub parts: Parts,
    /// Number of gaps below the least length.
    pub short_gaps: u64,
    /// Time of these by causes.
    pub short: Parts,
    /// Number of gaps that each cause has a part in, in the order of [`Parts::each`].
    pub caused: [u64; causes::CAUSES],
    /// Time of communication that no computation covers.
    pub exposed_comm: u64,
}

/// What all gaps with something in common add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Number of gaps.
    pub gaps: u64,
    /// Longest one.
    pub longest: u64,
    /// Time by causes.
    pub parts: Parts,
}

/// The gaps of a recording.
#[derive(Debug, Clone)]
pub struct Gaps {
    /// What was looked for.
    pub options: Options,
    /// Times that pass without anybody's fault.
    pub floors: Floors,
    /// Sums of each GPU, queue or stream.
    pub scopes: Vec<ScopeSums>,
    /// The longest gaps, longest first.
    pub listed: Vec<Gap>,
    /// Number of gaps that are not short.
    pub long_gaps: u64,
    /// Time of gaps that are not short.
    pub long_time: u64,
    /// Gaps by what [`Options::by`] names.
    pub sums: BTreeMap<String, Sums>,
    /// Greatest time by which an operation began before its call.
    pub skew: u64,
    /// Operations whose end is not after their start.
    pub without_length: u64,
    /// Operations.
    pub ops: u64,
    /// Operations with a call that requested them.
    pub launched: u64,
}

/// Finds the gaps of a recording.
pub fn find(records: &dyn Records, options: &Options) -> Gaps {
    find_each(records, options, |_| {})
}

/// Finds the gaps of a recording and calls `each` with every one, those that are short or not listed included, in the order
/// of their ends.
pub fn find_each(records: &dyn Records, options: &Options, mut each: impl FnMut(&Gap)) -> Gaps {
    let floors = Floors::measured(records);
    let mut walk = Walk::new(records, *options, floors);
    for op in records.ops() {
        walk.add(&op, &mut each);
    }
    walk.finish(&mut each)
}

/// State of a GPU, a queue or a stream in the pass over operations.
struct State {
    sums: ScopeSums,
    /// Start of the first operation and end of the last one.
    span: Option<(u64, u64)>,
    /// End of the operations so far whose absence is a gap.
    end: Option<u64>,
    /// Names and graphs of those that ended then.
    closers: Vec<(u32, Option<u64>)>,
    /// The latest copy, which may follow the last kernel.
    last_copy: Option<Op>,
}

/// State of a GPU that its queues and streams share.
#[derive(Default)]
struct OfGpu {
    /// Times of copies, joined, that may lie in gaps to come.
    copies: VecDeque<(u64, u64)>,
    sweep: Sweep,
    measure: Measure,
}

struct Walk<'a> {
    gaps: Gaps,
    states: Vec<State>,
    of_gpu: Vec<OfGpu>,
    places: BTreeMap<(u32, u32), usize>,
    calls: HostCalls<'a>,
    records: &'a dyn Records,
}

impl<'a> Walk<'a> {
    fn new(records: &'a dyn Records, options: Options, floors: Floors) -> Walk<'a> {
        Walk {
            gaps: Gaps {
                options,
                floors,
                scopes: Vec::new(),
                listed: Vec::new(),
                long_gaps: 0,
                long_time: 0,
                sums: BTreeMap::new(),
                skew: 0,
                without_length: 0,
                ops: 0,
                launched: 0,
            },
            states: Vec::new(),
            of_gpu: Vec::new(),
            places: BTreeMap::new(),
            calls: HostCalls::new(records),
            records,
        }
    }

    /// Index of the state that an operation belongs to.
    fn place(&mut self, op: &Op) -> usize {
        let part = match self.gaps.options.scope {
            Scope::Gpu => NONE,
            Scope::Queue => op.queue,
            Scope::Stream => op.stream,
        };
        let states = &mut self.states;
        *self.places.entry((op.gpu, part)).or_insert_with(|| {
            states.push(State {
                sums: ScopeSums {
                    gpu: op.gpu,
                    part,
                    window: (0, 0),
                    busy: 0,
                    gaps: 0,
                    parts: Parts::default(),
                    short_gaps: 0,
                    short: Parts::default(),
                    caused: [0; causes::CAUSES],
                    exposed_comm: 0,
                },
                span: None,
                end: None,
                closers: Vec::new(),
                last_copy: None,
            });
            states.len() - 1
        })
    }

    fn add(&mut self, op: &Op, each: &mut dyn FnMut(&Gap)) {
        self.gaps.ops += 1;
        if let Some(launch) = op.launch {
            self.gaps.launched += 1;
            self.gaps.skew = self.gaps.skew.max(launch.begin.saturating_sub(op.start));
        }
        if op.end <= op.start {
            self.gaps.without_length += 1;
            return;
        }
        // Times are measured inside the window, whatever is counted.
        let (from, to) = self.gaps.options.window.unwrap_or((0, u64::MAX));
        let (start, end) = (op.start.max(from), op.end.min(to));
        if end <= start {
            return;
        }
        let gpu = op.gpu as usize;
        if self.of_gpu.len() <= gpu {
            self.of_gpu.resize_with(gpu + 1, OfGpu::default);
        }
        let of_gpu = &mut self.of_gpu[gpu];
        let measure = &mut of_gpu.measure;
        of_gpu
            .sweep
            .add(start, end, op.class, |running| measure.add(running));
        let is_kernel = op.class.is_kernel_work();
        let options = self.gaps.options;
        if !is_kernel && options.of == Of::Kernels {
            match of_gpu.copies.back_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => of_gpu.copies.push_back((start, end)),
            }
            // A copy is of no queue; of a GPU it belongs to the span.
            if options.scope == Scope::Queue {
                return;
            }
        }
        let place = self.place(op);
        let state = &mut self.states[place];
        let is_first = state.span.is_none();
        let span = state.span.get_or_insert((start, end));
        span.1 = span.1.max(end);
        let first = span.0;
        if !is_kernel && options.of == Of::Kernels {
            state.last_copy = Some(*op);
            if is_first && options.edges && from > 0 && start > from {
                self.emit(place, from, start, Some(op), each);
            }
            return;
        }
        let before = match state.end {
            Some(end) => end,
            None if options.edges && from > 0 && is_first => from,
            None => first,
        };
        if start > before {
            self.emit(place, before, start, Some(op), each);
        }
        let graph = op.launch.filter(|launch| launch.is_graph);
        let closer = (op.name, graph.map(|launch| launch.call));
        let state = &mut self.states[place];
        let before = state.end.unwrap_or(start);
        state.sums.busy += end.saturating_sub(start.max(before));
        if end > before || state.end.is_none() {
            state.closers.clear();
        }
        if end >= before {
            state.closers.push(closer);
            state.end = Some(end);
        }
    }

    /// Takes a gap: splits it by causes, and adds it up.
    fn emit(
        &mut self,
        place: usize,
        start: u64,
        end: u64,
        opener: Option<&Op>,
        each: &mut dyn FnMut(&Gap),
    ) {
        let state = &self.states[place];
        let gpu = state.sums.gpu as usize;
        let launch = opener.and_then(|op| op.launch);
        let same_graph = launch
            .filter(|launch| launch.is_graph)
            .is_some_and(|launch| {
                let graphs = state.closers.iter().map(|closer| closer.1);
                graphs.flatten().any(|graph| graph == launch.call)
            });
        let closer = state.closers.first().map_or(NONE, |closer| closer.0);
        self.forget(gpu, start);
        let copies = &self.of_gpu[gpu].copies;
        let split = causes::split(start, end, launch, same_graph, copies, &self.gaps.floors);
        let mut parts = split.parts;
        let mut call = None;
        if let Some(launch) = launch
            && !split.host.is_empty()
        {
            self.calls.advance(end);
            call = self
                .calls
                .split(launch.thread, &split.host, &mut parts.host);
        }
        let gap = Gap {
            scope: place,
            start,
            end,
            parts,
            closer,
            opener: opener.copied(),
            call,
        };
        each(&gap);
        self.count(&gap);
    }

    /// Gives up copies and calls that lie before all gaps to come.
    fn forget(&mut self, gpu: usize, start: u64) {
        let ends = |of_gpu: bool| {
            let states = self.states.iter();
            let states = states.filter(move |state| !of_gpu || state.sums.gpu as usize == gpu);
            states.map(|state| state.end.or(state.span.map(|span| span.0)).unwrap_or(0))
        };
        // A GPU alone is the usual case, in which the gap itself is the limit.
        let of_gpu = ends(true).min().unwrap_or(start).min(start);
        let of_all = ends(false).min().unwrap_or(start).min(start);
        let copies = &mut self.of_gpu[gpu].copies;
        while copies.front().is_some_and(|copy| copy.1 <= of_gpu) {
            copies.pop_front();
        }
        self.calls.forget(of_all);
    }

    fn count(&mut self, gap: &Gap) {
        let sums = &mut self.states[gap.scope].sums;
        sums.gaps += 1;
        sums.parts.add(&gap.parts);
        for (caused, (_, part)) in sums.caused.iter_mut().zip(gap.parts.each()) {
            *caused += u64::from(part > 0);
        }
        if let Some(by) = self.gaps.options.by {
            self.add_up(by, gap);
        }
        let sums = &mut self.states[gap.scope].sums;
        if gap.length() < self.gaps.options.min {
            sums.short_gaps += 1;
            sums.short.add(&gap.parts);
            return;
        }
        self.gaps.long_gaps += 1;
        self.gaps.long_time += gap.length();
        self.gaps.listed.push(*gap);
        if let Some(limit) = self.gaps.options.limit
            && self.gaps.listed.len() > 2 * limit + 1024
        {
            self.keep_longest();
        }
    }

    fn add_up(&mut self, by: By, gap: &Gap) {
        let mut add = |key: &str, parts: &Parts| {
            let sums = match self.gaps.sums.get_mut(key) {
                Some(sums) => sums,
                None => self.gaps.sums.entry(key.to_owned()).or_default(),
            };
            sums.gaps += 1;
            sums.longest = sums.longest.max(parts.total());
            sums.parts.add(parts);
        };
        let name = |op: &Op| self.records.facts().name(op.name);
        match by {
            By::Cause => {
                for (cause, part) in gap.parts.each().into_iter().filter(|part| part.1 > 0) {
                    add(cause, &Parts::only(cause, part));
                }
            }
            By::Opener => add(gap.opener.as_ref().map_or("", name), &gap.parts),
            By::Caller => {
                let caller = gap.opener.and_then(|op| {
                    let launch = op.launch?;
                    let site = self.records.site(op.process, launch.call);
                    Some(site.unwrap_or_else(|| self.records.facts().name(launch.name).to_owned()))
                });
                add(caller.as_deref().unwrap_or(""), &gap.parts);
            }
        }
    }

    fn keep_longest(&mut self) {
        let listed = &mut self.gaps.listed;
        listed.sort_by_key(|gap| (std::cmp::Reverse(gap.length()), gap.start, gap.scope));
        if let Some(limit) = self.gaps.options.limit {
            listed.truncate(limit);
        }
    }

    fn finish(mut self, each: &mut dyn FnMut(&Gap)) -> Gaps {
        for of_gpu in &mut self.of_gpu {
            let measure = &mut of_gpu.measure;
            of_gpu.sweep.finish(|running| measure.add(running));
        }
        for place in 0..self.states.len() {
            let state = &self.states[place];
            let Some((first, last)) = state.span else {
                continue;
            };
            // Copies behind the last kernel belong to the span.
            let end = state.end.unwrap_or(first);
            let copy = state.last_copy;
            if last > end {
                self.emit(place, end, last, copy.as_ref(), each);
            }
            let given = self.gaps.options.window;
            if let Some((_, to)) = given.filter(|_| self.gaps.options.edges)
                && to > last
            {
                self.emit(place, last, to, None, each);
            }
            let sums = &mut self.states[place].sums;
            sums.window = given.unwrap_or((first, last));
            sums.exposed_comm = self.of_gpu[sums.gpu as usize].measure.exposed(Class::Comm);
        }
        self.keep_longest();
        let mut order: Vec<usize> = (0..self.states.len()).collect();
        order.sort_by_key(|place| {
            let sums = &self.states[*place].sums;
            (sums.gpu, sums.part)
        });
        let mut places = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            places[*old] = new;
        }
        for gap in &mut self.gaps.listed {
            gap.scope = places[gap.scope];
        }
        self.gaps.scopes = order.iter().map(|place| self.states[*place].sums).collect();
        self.gaps
    }
}

#[cfg(test)]
mod tests;

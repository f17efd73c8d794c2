//! Iterations of a program, found by its markers or by the sequence of its kernels, and how even they are.

mod sequence;

use std::collections::BTreeMap;

use regex::Regex;

use crate::distribution::{Distribution, median};
use crate::outliers::{Group, Outliers, outliers};
use crate::records::{NONE, Op, Records, Style};

/// How iterations were found.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// By markers with this message, in which digits are replaced by `#`.
    Markers(String),
    /// By a sequence of kernels.
    Sequence {
        /// Number of launches of an iteration.
        period: usize,
        /// Share of the launches that the iterations cover, times the share of those that match.
        confidence: f64,
    },
}

/// An iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Iteration {
    /// Begin.
    pub begin: u64,
    /// Begin of the next one on the same thread; of the last one the end of its operations.
    pub end: u64,
    /// Thread of the marker; [`NONE`] without one.
    pub thread: u32,
    /// Time from its begin to that of the next; `None` of the last one, which is partial.
    pub pace: Option<u64>,
    /// Length of its marker; `None` without one.
    pub host: Option<u64>,
    /// Time in which its operations run.
    pub gpu: u64,
    /// Number of kernels.
    pub kernels: u64,
    /// Number of copies.
    pub copies: u64,
    /// End of its operations.
    ops_end: u64,
}

/// The iterations of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Iterations {
    /// How they were found.
    pub found: Found,
    /// The iterations, in the order of their begins.
    pub all: Vec<Iteration>,
    /// Number of leading iterations that are warm-up, of each thread.
    pub warm_up: usize,
    /// Time of kernels by name, for each iteration.
    pub kernels: BTreeMap<u32, Vec<u64>>,
    /// Operations that were launched outside of iterations.
    pub outside: u64,
}

/// How iterations are to be found.
#[derive(Debug, Default)]
pub struct Options {
    /// Messages of markers; `None` takes those with the greatest covered time.
    pub markers: Option<Regex>,
    /// Whether a kernel alone may be an iteration.
    pub one_kernel: bool,
}

/// A message with each group of digits replaced by `#`.
pub fn joined(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    for letter in message.chars() {
        if !letter.is_ascii_digit() {
            text.push(letter)
        } else if text.ends_with('#') {
        } else {
            text.push('#')
        }
    }
    text
}

/// Number of leading paces that are warm-up; 0 below five.
pub fn warm_up(paces: &[f64]) -> usize {
    if paces.len() < 5 {
        return 0;
    }
    let second = &paces[paces.len() / 2..];
    let Some((middle, spread)) = crate::distribution::median_and_spread(second) else {
        return 0;
    };
    let limit = (1.05 * middle).max(middle + 5.0 * 1.4826 * spread);
    let settled = paces
        .iter()
        .take(paces.len() / 2 + 1)
        .position(|pace| *pace <= limit);
    settled.unwrap_or(0)
}

/// Slope per 100 values: the median of the slopes between pairs.
pub fn trend(values: &[f64]) -> f64 {
    // Of a long series evenly chosen values stand for all.
    let step = values.len().div_ceil(500).max(1);
    let chosen: Vec<(usize, f64)> = values.iter().copied().enumerate().step_by(step).collect();
    let mut slopes = Vec::new();
    for (place, (x, a)) in chosen.iter().enumerate() {
        for (y, b) in &chosen[place + 1..] {
            slopes.push((b - a) / (y - x) as f64);
        }
    }
    100.0 * median(&mut slopes).unwrap_or(0.0)
}

/// A marker that is an iteration.
struct Marked {
    id: u32,
    start: u64,
    end: u64,
    thread: u32,
}

/// Finds iterations: by markers, else by the sequence of kernels. `None` when there are none.
pub fn find(records: &dyn Records, options: &Options) -> Option<Iterations> {
    let by_markers = by_markers(records, options);
    // Markers that were asked for and are not there are no reason to guess.
    let mut iterations = match by_markers {
        Some(found) => found,
        None if options.markers.is_some() => return None,
        None => sequence::find(records, options.one_kernel)?,
    };
    let paces: Vec<f64> = iterations.paces();
    iterations.warm_up = warm_up(&paces);
    Some(iterations)
}

fn by_markers(records: &dyn Records, options: &Options) -> Option<Iterations> {
    let facts = records.facts();
    let mut named: BTreeMap<String, Vec<Marked>> = BTreeMap::new();
    let mut messages: BTreeMap<u32, Option<String>> = BTreeMap::new();
    let mut parents: Vec<u32> = Vec::new();
    let mut stacks: Vec<Vec<(u64, u32)>> = vec![Vec::new(); facts.threads.len()];
    for range in records.ranges() {
        let id = range.id as usize;
        if parents.len() <= id {
            parents.resize(id + 1, NONE);
        }
        if range.style == Style::Mark {
            continue;
        }
        if range.style == Style::Nested
            && let Some(stack) = stacks.get_mut(range.thread as usize)
        {
            stack.retain(|outer| outer.0 > range.start);
            parents[id] = stack.last().map_or(NONE, |outer| outer.1);
            stack.push((range.end, range.id));
        }
        let message = messages.entry(range.name).or_insert_with(|| {
            let text = facts.name(range.name);
            let is_wanted = options
                .markers
                .as_ref()
                .is_none_or(|regex| regex.is_match(text));
            is_wanted.then(|| joined(text))
        });
        if let Some(message) = message {
            let list = match named.get_mut(message.as_str()) {
                Some(list) => list,
                None => named.entry(message.clone()).or_default(),
            };
            list.push(Marked {
                id: range.id,
                start: range.start,
                end: range.end,
                thread: range.thread,
            });
        }
    }
    let covered = |list: &[Marked]| -> u64 {
        list.iter()
            .map(|range| range.end.saturating_sub(range.start))
            .sum()
    };
    let fits = |list: &Vec<Marked>| list.len() >= 3 && !overlap_on_thread(list);
    let best = named
        .into_iter()
        .filter(|(_, list)| fits(list))
        .max_by_key(|(_, list)| (covered(list), list.len()))?;
    let (message, list) = best;
    let mut all: Vec<Iteration> = list
        .iter()
        .map(|range| Iteration::new(range.start, range.thread))
        .collect();
    for (iteration, range) in all.iter_mut().zip(&list) {
        iteration.host = Some(range.end.saturating_sub(range.start));
        iteration.end = range.end;
    }
    let places: BTreeMap<u32, usize> = list
        .iter()
        .enumerate()
        .map(|(place, range)| (range.id, place))
        .collect();
    let mut made = Iterations {
        found: Found::Markers(message),
        kernels: BTreeMap::new(),
        outside: 0,
        warm_up: 0,
        all,
    };
    let ends: Vec<u64> = list.iter().map(|range| range.end).collect();
    for op in records.ops() {
        let begin = op.launch.map_or(op.start, |launch| launch.begin);
        let mut at = op.launch.map_or(NONE, |launch| launch.range);
        let mut place = None;
        while at != NONE && place.is_none() {
            place = places.get(&at).copied();
            at = parents.get(at as usize).copied().unwrap_or(NONE);
        }
        // Without a chain of calls the time of the launch decides.
        let by_time = || {
            let after = made
                .all
                .partition_point(|iteration| iteration.begin <= begin);
            after.checked_sub(1).filter(|place| begin < ends[*place])
        };
        match place.or_else(by_time) {
            Some(place) => made.add(place, &op),
            None => made.outside += 1,
        }
    }
    made.close();
    Some(made)
}

fn overlap_on_thread(list: &[Marked]) -> bool {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    list.iter().any(|range| {
        let end = ends.entry(range.thread).or_default();
        let overlaps = range.start < *end;
        *end = range.end.max(*end);
        overlaps
    })
}

impl Iteration {
    fn new(begin: u64, thread: u32) -> Iteration {
        Iteration {
            begin,
            end: begin,
            thread,
            pace: None,
            host: None,
            gpu: 0,
            kernels: 0,
            copies: 0,
            ops_end: 0,
        }
    }
}

impl Iterations {
    /// Adds an operation, in the order of starts.
    fn add(&mut self, place: usize, op: &Op) {
        let count = self.all.len();
        let iteration = &mut self.all[place];
        iteration.gpu += op.end.saturating_sub(op.start.max(iteration.ops_end));
        iteration.ops_end = iteration.ops_end.max(op.end);
        if op.is_kernel {
            iteration.kernels += 1
        } else {
            iteration.copies += u64::from(!op.is_second)
        }
        if op.is_kernel {
            let times = self
                .kernels
                .entry(op.name)
                .or_insert_with(|| vec![0; count]);
            times[place] += op.length();
        }
    }

    /// Sets the paces, when all operations are there.
    fn close(&mut self) {
        let mut next: BTreeMap<u32, u64> = BTreeMap::new();
        for iteration in self.all.iter_mut().rev() {
            let after = next.insert(iteration.thread, iteration.begin);
            iteration.pace = after.map(|after| after - iteration.begin);
            iteration.end = match after {
                Some(after) => after,
                None => iteration.end.max(iteration.ops_end),
            };
        }
    }

    /// The paces in the order of iterations.
    pub fn paces(&self) -> Vec<f64> {
        let paces = self.all.iter().filter_map(|iteration| iteration.pace);
        paces.map(|pace| pace as f64).collect()
    }

    /// Iterations after the warm-up.
    pub fn steady(&self) -> &[Iteration] {
        &self.all[self.warm_up.min(self.all.len())..]
    }

    /// Begin of the first iteration after the warm-up and end of the last.
    pub fn steady_window(&self) -> Option<(u64, u64)> {
        let steady = self.steady();
        let end = steady.iter().map(|iteration| iteration.end).max()?;
        Some((steady.first()?.begin, end))
    }

    /// Statistics of the paces after the warm-up.
    pub fn pace(&self) -> Pace {
        let paces = self.steady().iter().filter_map(|iteration| iteration.pace);
        let mut values = Distribution::default();
        let mut list = Vec::new();
        for pace in paces {
            values.add(pace);
            list.push(pace as f64);
        }
        let group = Group::new(&list);
        let slope = trend(&list);
        Pace {
            count: list.len(),
            median: group.map(|group| group.median),
            spread: group.map(|group| group.spread),
            p95: values.quantile(0.95),
            mean: values.mean(),
            outliers: outliers(&list),
            trend: (list.len() >= 3).then_some(slope),
            drifts: drifts(&list, slope),
        }
    }
}

/// Whether a slope per 100 iterations is one: above 5 % of the median, and more than what chance does to a series of this length.
fn drifts(paces: &[f64], slope: f64) -> bool {
    let Some(group) = Group::new(paces).filter(|group| group.count >= LEAST_FOR_DRIFT) else {
        return false;
    };
    // Three times the deviation of the slope of so many values with this spread.
    let deviation = group.scale * (12.0 / (group.count as f64).powi(3)).sqrt() * 100.0;
    slope.abs() > 0.05 * group.median && slope.abs() > 3.0 * deviation
}

/// Iterations that a drift needs.
const LEAST_FOR_DRIFT: usize = 8;

/// Statistics of the paces of iterations.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// Number of paces.
    pub count: usize,
    /// Median; `None` without paces.
    pub median: Option<f64>,
    /// Median absolute deviation.
    pub spread: Option<f64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Outliers.
    pub outliers: Outliers,
    /// Change per 100 iterations; `None` below three.
    pub trend: Option<f64>,
    /// Whether the change is more than noise.
    pub drifts: bool,
}

#[cfg(test)]
mod tests;

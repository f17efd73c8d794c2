//! Which parts of a program take its time: the tree of its markers with the time of the host and of the GPU, and iterations.

mod iterations;

use std::collections::{BTreeMap, BTreeSet};

pub use iterations::{IterationRow, KernelRow, PaceRow, answer as iterations_answer};

use crate::answer::{Answer, Form, Section, Value, Window, columns, key};
use crate::classes::{Calls, Doing};
use crate::distribution::Distribution;
use crate::gaps::report_common;
use crate::iterations::joined;
use crate::outliers::{Outliers, outliers};
use crate::records::{NONE, Records, Style};

columns! {
    /// A marker's place in the program.
    RegionRow {
        key: Key "Key" 9 "Identity of the row: `region`, style and path",
        path: Name "Region" 0 "Messages of the markers around it and its own, joined by /; digits are replaced by # without --exact",
        depth: Count "Depth" 7 "Number of regions around it",
        style: Word "Style" 6 "nested, across (between threads) or mark",
        instances: Count "Calls" 0 "Number of times that it was entered",
        threads: Count "Threads" 5 "Number of threads that entered it",
        host_ns: Nanoseconds "Host" 0 "Lengths added up; null for marks",
        host_self_ns: Nanoseconds "Host self" 3 "Lengths without those of regions in it on the same thread",
        gpu_ns: Nanoseconds "GPU" 0 "Time in which operations that were launched in it run",
        gpu_self_ns: Nanoseconds "GPU self" 2 "Time in which operations run whose innermost region it is",
        gpu_sum_ns: Nanoseconds "GPU sum" 4 "Durations of the operations added up",
        ops: Count "Ops" 3 "Number of operations",
        kernels: Count "Kernels" 5 "Number of kernels",
        copies: Count "Copies" 5 "Number of copies",
        bytes: Bytes "Bytes" 6 "Bytes that were copied",
        projected_ns: Nanoseconds "Projected" 3 "First start to last end of the operations of an instance, added up",
        launch_ns: Nanoseconds "Launching" 4 "Time in calls that launch work",
        host_bound: Share "No op" 2 "Share of projected_ns in which no operation of the region runs",
        median_ns: Nanoseconds "Median" 1 "Median length of instances",
        p95_ns: Nanoseconds "p95" 4 "95th percentile of the lengths",
        min_ns: Nanoseconds "Least" 6 "Least length",
        max_ns: Nanoseconds "Greatest" 4 "Greatest length",
        outliers: Word "Outliers" 4 "Number of instances whose length is an outlier, or multimodal",
    }
}

/// The form of the answer.
pub const FORM: Form = Form {
    command: "regions",
    question: "Which parts of the program take the time, and is it even?",
    sections: &[
        ("regions", "The tree of markers", RegionRow::COLUMNS),
        (
            "pace",
            "How even iterations are; with --iterations",
            PaceRow::COLUMNS,
        ),
        (
            "iterations",
            "The iterations; with --iterations",
            IterationRow::COLUMNS,
        ),
        (
            "kernels",
            "Kernels by how their time differs between iterations; with --by kernel",
            KernelRow::COLUMNS,
        ),
    ],
};

/// A node of the tree.
#[derive(Default)]
struct Node {
    parent: Option<usize>,
    children: Vec<usize>,
    name: String,
    style: Option<Style>,
    instances: u64,
    threads: BTreeSet<u32>,
    lengths: Distribution,
    child_time: u64,
    /// Time in which operations ran, and the end of those so far.
    gpu: (u64, u64),
    own: (u64, u64),
    gpu_sum: u64,
    kernels: u64,
    copies: u64,
    bytes: u64,
    projected: u64,
    covered: u64,
    launching: u64,
}

/// Operations of an instance: first start, last end, time in which any runs.
#[derive(Clone, Copy, Default)]
struct Instance {
    node: u32,
    parent: u32,
    has_ops: bool,
    first: u64,
    last: u64,
    covered: u64,
}

/// Adds an interval to a union, in the order of starts.
fn join(union: &mut (u64, u64), start: u64, end: u64) {
    union.0 += end.saturating_sub(start.max(union.1));
    union.1 = union.1.max(end);
}

struct Tree {
    nodes: Vec<Node>,
    /// By number of the marker.
    instances: Vec<Instance>,
}

/// Options of the tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Whether messages that differ in digits stay apart.
    pub exact: bool,
    /// Whether ranges between threads have the time of operations that their own thread launched in them.
    pub cross_threads: bool,
    /// First instant and end of the window.
    pub window: Option<(u64, u64)>,
}

/// The tree of markers as an answer.
pub fn answer(records: &dyn Records, options: &Options) -> Answer {
    let tree = Tree::new(records, options);
    let facts = records.facts();
    let mut answer = Answer::new(FORM.command);
    answer.main = "regions";
    answer.window = crate::breakdown::window(records, options.window);
    answer.parameters = vec![("exact", options.exact.to_string().into())];
    answer.is_empty = tree.instances.is_empty();
    if !facts.recorded.markers {
        answer.lacks(
            "markers",
            &["regions"],
            "the recording has no markers",
            "--marker-trace",
        );
    }
    if !facts.recorded.calls && facts.recorded.markers {
        answer.lacks(
            "hip_calls",
            &["gpu_ns", "gpu_self_ns", "projected_ns", "launch_ns"],
            "the launch calls are not recorded, which lead from operations to markers",
            "--hip-trace",
        );
    }
    let rows = tree.rows(facts.recorded.calls);
    answer.sections = vec![Section::new("regions", RegionRow::COLUMNS, rows)];
    report_common(facts, &mut answer, 0);
    if let Some(window) = &mut answer.window {
        window.kind = match options.window {
            Some(_) => "given",
            None => "run",
        };
    }
    answer
}

/// The window of an answer about all operations.
pub(crate) fn run_window(records: &dyn Records) -> Option<Window> {
    crate::breakdown::window(records, None)
}

impl Tree {
    fn new(records: &dyn Records, options: &Options) -> Tree {
        let mut tree = Tree {
            nodes: vec![Node::default()],
            instances: Vec::new(),
        };
        tree.add_ranges(records, options);
        tree.add_calls(records, options);
        tree.add_ops(records, options);
        for instance in &tree.instances {
            let node = &mut tree.nodes[instance.node as usize];
            node.projected += instance.last - instance.first;
            node.covered += instance.covered;
        }
        tree
    }

    fn add_ranges(&mut self, records: &dyn Records, options: &Options) {
        let facts = records.facts();
        let mut known: BTreeMap<(usize, u32, u8), usize> = BTreeMap::new();
        let mut stacks: Vec<Vec<(u64, u32)>> = vec![Vec::new(); facts.threads.len()];
        let mut joins: BTreeMap<u32, u32> = BTreeMap::new();
        let mut texts: BTreeMap<String, u32> = BTreeMap::new();
        for range in records.ranges() {
            let id = range.id as usize;
            if self.instances.len() <= id {
                self.instances.resize(
                    id + 1,
                    Instance {
                        parent: NONE,
                        ..Instance::default()
                    },
                );
            }
            let name = if options.exact {
                range.name
            } else {
                *joins.entry(range.name).or_insert_with(|| {
                    let text = joined(facts.name(range.name));
                    *texts.entry(text).or_insert(range.name)
                })
            };
            let stack = stacks.get_mut(range.thread as usize);
            let outer = match (range.style, stack) {
                (Style::Nested | Style::Mark, Some(stack)) => {
                    stack.retain(|outer| outer.0 > range.start);
                    let outer = stack.last().map_or(NONE, |outer| outer.1);
                    if range.style == Style::Nested {
                        stack.push((range.end, range.id));
                    }
                    outer
                }
                _ => NONE,
            };
            let parent = match outer {
                NONE => 0,
                outer => self.instances[outer as usize].node as usize,
            };
            let nodes = &mut self.nodes;
            let node = *known
                .entry((parent, name, range.style as u8))
                .or_insert_with(|| {
                    let text = facts.name(range.name);
                    nodes.push(Node {
                        parent: Some(parent),
                        name: if options.exact {
                            text.to_owned()
                        } else {
                            joined(text)
                        },
                        style: Some(range.style),
                        ..Node::default()
                    });
                    let node = nodes.len() - 1;
                    nodes[parent].children.push(node);
                    node
                });
            self.instances[id] = Instance {
                node: node as u32,
                parent: outer,
                ..Instance::default()
            };
            // Children in the order of time are those in the order of their first instances.
            let (from, to) = options.window.unwrap_or((0, u64::MAX));
            let length = range.end.min(to).saturating_sub(range.start.max(from));
            if range.start > to || range.end < from {
                continue;
            }
            let entry = &mut self.nodes[node];
            entry.instances += 1;
            entry.threads.insert(range.thread);
            if range.style != Style::Mark {
                entry.lengths.add(length);
            }
            if range.style == Style::Nested {
                self.nodes[parent].child_time += length;
            }
        }
    }

    /// The instances around a marker, itself first.
    fn around(&self, range: u32) -> impl Iterator<Item = usize> + use<'_> {
        let next = |at: &u32| {
            self.instances
                .get(*at as usize)
                .map(|instance| instance.parent)
        };
        let first = Some(range).filter(|range| (*range as usize) < self.instances.len());
        std::iter::successors(first, move |at| next(at).filter(|parent| *parent != NONE))
            .map(|at| at as usize)
    }

    fn add_calls(&mut self, records: &dyn Records, options: &Options) {
        let doing = Calls::default().of_all(&records.facts().names);
        let (from, to) = options.window.unwrap_or((0, u64::MAX));
        for call in records.calls() {
            if call.range == NONE || doing.get(call.name as usize) != Some(&Doing::Launch) {
                continue;
            }
            let length = call.end.min(to).saturating_sub(call.start.max(from));
            let places: Vec<usize> = self.around(call.range).collect();
            for place in places {
                let node = self.instances[place].node as usize;
                self.nodes[node].launching += length;
            }
        }
    }

    fn add_ops(&mut self, records: &dyn Records, options: &Options) {
        let (from, to) = options.window.unwrap_or((0, u64::MAX));
        let across = if options.cross_threads {
            self.across(records)
        } else {
            Vec::new()
        };
        let mut places: Vec<usize> = Vec::new();
        for op in records.ops() {
            let Some(launch) = op.launch else {
                continue;
            };
            let (start, end) = (op.start.max(from), op.end.min(to));
            if op.start > to || op.end < from {
                continue;
            }
            places.clear();
            places.extend(self.around(launch.range));
            let is_inside = |range: &&(u64, u64, u32, u32)| {
                range.0 <= launch.begin && launch.begin < range.1 && range.2 == launch.thread
            };
            let around = across
                .iter()
                .filter(is_inside)
                .map(|range| range.3 as usize);
            let innermost = places.first().copied();
            places.extend(around);
            let length = end.saturating_sub(start);
            for place in &places {
                let instance = &mut self.instances[*place];
                if !instance.has_ops {
                    (instance.has_ops, instance.first, instance.last) = (true, start, start);
                }
                instance.covered += end.saturating_sub(start.max(instance.last));
                instance.last = instance.last.max(end);
                let node = &mut self.nodes[instance.node as usize];
                join(&mut node.gpu, start, end);
                node.gpu_sum += length;
                if op.is_kernel {
                    node.kernels += 1
                } else {
                    node.copies += u64::from(!op.is_second)
                }
                node.bytes += if op.is_second { 0 } else { op.bytes };
            }
            if let Some(place) = innermost {
                let node = self.instances[place].node as usize;
                join(&mut self.nodes[node].own, start, end);
            }
        }
    }

    /// Ranges between threads: begin, end, thread and number.
    fn across(&self, records: &dyn Records) -> Vec<(u64, u64, u32, u32)> {
        let ranges = records
            .ranges()
            .filter(|range| range.style == Style::Across);
        ranges
            .map(|range| (range.start, range.end, range.thread, range.id))
            .collect()
    }

    /// The rows of all nodes, each followed by its children.
    fn rows(mut self, has_calls: bool) -> Vec<Vec<Value>> {
        let mut rows = Vec::new();
        let mut left: Vec<(usize, usize, String)> = Vec::new();
        let push = |left: &mut Vec<(usize, usize, String)>,
                    nodes: &[Node],
                    of: usize,
                    depth,
                    path: &str| {
            for child in nodes[of].children.iter().rev() {
                let name = &nodes[*child].name;
                let path = if path.is_empty() {
                    name.clone()
                } else {
                    format!("{path}/{name}")
                };
                left.push((*child, depth, path));
            }
        };
        push(&mut left, &self.nodes, 0, 0, "");
        while let Some((place, depth, path)) = left.pop() {
            push(&mut left, &self.nodes, place, depth + 1, &path);
            if self.nodes[place].instances > 0 {
                rows.push(self.nodes[place].row(depth, &path, has_calls).cells());
            }
        }
        rows
    }
}

impl Node {
    fn row(&mut self, depth: usize, path: &str, has_calls: bool) -> RegionRow {
        debug_assert!(self.parent.is_some(), "the root has no row");
        let style = self.style.unwrap_or(Style::Nested);
        let is_mark = style == Style::Mark;
        let lengths = &mut self.lengths;
        let word = match style {
            Style::Nested => "nested",
            Style::Across => "across",
            Style::Mark => "mark",
        };
        let outliers = lengths.values().map(|values| {
            let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            match outliers(&values) {
                Outliers::Some(count) => count.to_string(),
                Outliers::Multimodal => "multimodal".to_owned(),
            }
        });
        let of_gpu = |value: u64| {
            if has_calls && !is_mark {
                Value::from(value)
            } else {
                Value::Null
            }
        };
        RegionRow {
            key: key(&[&"region", &word, &path]).into(),
            path: path.into(),
            depth: depth.into(),
            style: word.into(),
            instances: self.instances.into(),
            threads: self.threads.len().into(),
            host_ns: (!is_mark).then(|| lengths.sum()).into(),
            host_self_ns: (!is_mark)
                .then(|| lengths.sum().saturating_sub(self.child_time))
                .into(),
            gpu_ns: of_gpu(self.gpu.0),
            gpu_self_ns: of_gpu(self.own.0),
            gpu_sum_ns: of_gpu(self.gpu_sum),
            ops: of_gpu(self.kernels + self.copies),
            kernels: of_gpu(self.kernels),
            copies: of_gpu(self.copies),
            bytes: of_gpu(self.bytes),
            projected_ns: of_gpu(self.projected),
            launch_ns: of_gpu(self.launching),
            host_bound: if has_calls {
                Value::ratio(self.projected - self.covered, self.projected)
            } else {
                Value::Null
            },
            median_ns: lengths.median().map(|median| median as u64).into(),
            p95_ns: lengths.quantile(0.95).into(),
            min_ns: lengths.min().into(),
            max_ns: lengths.max().into(),
            outliers: outliers.filter(|_| !is_mark).into(),
        }
    }
}

#[cfg(test)]
mod tests;

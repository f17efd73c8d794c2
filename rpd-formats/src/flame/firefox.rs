//! The processed format of the Firefox Profiler (<https://profiler.firefox.com>), version 49: a thread for each kind of weight, with
//! a sample for each stack. Samples have no time of their own, so each begins where the one before it ended.
//!
//! The crate `fxprof-processed-profile` is not used: its frames have neither files nor lines, and its weights are integers of 32 bits
//! in milliseconds, which lose times below a millisecond and bytes above 2 GiB.

use std::collections::HashMap;
use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Frame, Kind, Profile, Unit, WeightKind};

/// Version of the format.
const VERSION: u32 = 49;
/// Version of the Gecko format that it goes back to.
const GECKO_VERSION: u32 = 24;

/// Categories: names and colours of the viewer.
const CATEGORIES: [(&str, &str); 4] = [
    ("Native", "blue"),
    ("Python", "green"),
    ("Call", "orange"),
    ("Other", "grey"),
];

fn category(kind: Kind) -> usize {
    match kind {
        Kind::Native => 0,
        Kind::Python => 1,
        Kind::Call => 2,
        Kind::Note => 3,
    }
}

/// Texts by their numbers.
#[derive(Default)]
struct Strings {
    all: Vec<String>,
    known: HashMap<String, usize>,
}

impl Strings {
    fn number(&mut self, text: &str) -> usize {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), self.all.len() - 1);
        self.all.len() - 1
    }
}

/// The tables of the thread.
#[derive(Default)]
struct Tables<'a> {
    strings: Strings,
    /// Frames by their index in the frame table. The function table has the same indices.
    frames: HashMap<&'a Frame, usize>,
    names: Vec<usize>,
    files: Vec<Option<usize>>,
    lines: Vec<Option<u32>>,
    categories: Vec<usize>,
    /// Index in the stack table, by the index of the stack below (its prefix) and of the frame.
    stacks: HashMap<(Option<usize>, usize), usize>,
    prefixes: Vec<Option<usize>>,
    stack_frames: Vec<usize>,
}

impl<'a> Tables<'a> {
    fn frame(&mut self, frame: &'a Frame) -> usize {
        if let Some(&known) = self.frames.get(frame) {
            return known;
        }
        let number = self.names.len();
        self.names.push(self.strings.number(&frame.name));
        let file = Some(&frame.file).filter(|file| !file.is_empty());
        self.files.push(file.map(|file| self.strings.number(file)));
        self.lines.push(Some(frame.line).filter(|line| *line > 0));
        self.categories.push(category(frame.kind));
        self.frames.insert(frame, number);
        number
    }

    /// The number of a stack, outermost frame first.
    fn stack(&mut self, stack: &[&'a Frame]) -> Option<usize> {
        stack.iter().fold(None, |prefix, &frame| {
            let frame = self.frame(frame);
            let next = self.prefixes.len();
            let number = *self.stacks.entry((prefix, frame)).or_insert(next);
            if number == next {
                self.prefixes.push(prefix);
                self.stack_frames.push(frame);
            }
            Some(number)
        })
    }
}

fn repeated(value: Value, count: usize) -> Value {
    Value::Array(vec![value; count])
}

/// The thread with the weights of a kind.
fn thread(profile: &Profile, kind: usize, weight: &WeightKind, title: &str) -> Value {
    let mut ordered = profile.ordered();
    ordered.retain(|(_, weights)| weights[kind] > 0);
    let mut tables = Tables::default();
    let (mut stacks, mut weights, mut times) = (Vec::new(), Vec::new(), Vec::new());
    // Times are shown in milliseconds, and so are weights of this type.
    let (unit, weight_type) = match weight.unit {
        Unit::Count => (1.0, "samples"),
        Unit::Nanoseconds => (1e-6, "tracing-ms"),
        Unit::Bytes => (1.0, "bytes"),
    };
    let mut time = 0.0;
    // Samples have no times: each begins where the one before ends, so that the viewer's graph shows weights.
    for (stack, of_stack) in &ordered {
        stacks.push(tables.stack(stack));
        let weight = of_stack[kind] as f64 * unit;
        weights.push(weight);
        times.push(time);
        time += weight;
    }
    let frames = tables.names.len();
    let length = tables.prefixes.len();
    let own: Vec<usize> = (0..frames).collect();
    let of_stacks = tables
        .stack_frames
        .iter()
        .map(|&frame| tables.categories[frame]);
    let of_stacks: Vec<usize> = of_stacks.collect();
    json!({
        "name": weight.name,
        "isMainThread": true,
        "processName": title,
        "processType": "default",
        "pid": "0",
        "tid": 0,
        "processStartupTime": 0.0,
        "processShutdownTime": time,
        "registerTime": 0.0,
        "unregisterTime": time,
        "pausedRanges": [],
        "showMarkersInTimeline": false,
        "samples": {
            "length": stacks.len(),
            "stack": stacks,
            "time": times,
            "weight": weights,
            "weightType": weight_type,
        },
        "markers": {
            "length": 0, "data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [],
        },
        "stackTable": {
            "length": length,
            "prefix": tables.prefixes,
            "frame": tables.stack_frames,
            "category": of_stacks,
            "subcategory": repeated(0.into(), length),
        },
        "frameTable": {
            "length": frames,
            "address": repeated((-1).into(), frames),
            "inlineDepth": repeated(0.into(), frames),
            "category": tables.categories,
            "subcategory": repeated(0.into(), frames),
            "func": own,
            "nativeSymbol": repeated(Value::Null, frames),
            "innerWindowID": repeated(Value::Null, frames),
            "implementation": repeated(Value::Null, frames),
            "line": tables.lines,
            "column": repeated(Value::Null, frames),
        },
        "funcTable": {
            "length": frames,
            "name": tables.names,
            "isJS": repeated(false.into(), frames),
            "relevantForJS": repeated(false.into(), frames),
            "resource": repeated((-1).into(), frames),
            "fileName": tables.files,
            "lineNumber": repeated(Value::Null, frames),
            "columnNumber": repeated(Value::Null, frames),
        },
        "resourceTable": { "length": 0, "lib": [], "name": [], "host": [], "type": [] },
        "nativeSymbols": { "length": 0, "libIndex": [], "address": [], "name": [], "functionSize": [] },
        "stringArray": tables.strings.all,
    })
}

pub(super) fn write(profile: &Profile, title: &str, out: &mut dyn Write) -> io::Result<()> {
    let categories = CATEGORIES
        .map(|(name, color)| json!({ "name": name, "color": color, "subcategories": ["Other"] }));
    // All fields that the viewer's format demands are there; those without a meaning here are empty or null.
    let kinds = profile.kinds_in_use(None);
    let threads = kinds
        .into_iter()
        .map(|(kind, weight)| thread(profile, kind, weight, title));
    let threads: Vec<Value> = threads.collect();
    let file = json!({
        "meta": {
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": VERSION,
            "product": "rpd",
            "interval": 1.0,
            "startTime": 0.0,
            "processType": 0,
            "categories": categories,
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "ns" },
            "extensions": { "baseURL": [], "id": [], "length": 0, "name": [] },
            "markerSchema": [],
            "pausedRanges": [],
            "debug": false,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "doesNotUseFrameImplementation": true,
            "sourceCodeIsNotOnSearchfox": true,
        },
        "libs": [],
        "pages": [],
        "threads": threads,
    });
    serde_json::to_writer(&mut *out, &file)?;
    out.write_all(b"\n")
}

//! Flame graphs: weighted stacks, put into one tree and written in the formats that viewers read. Independent of where
//! stacks come from.

mod firefox;
mod folded;
mod html;
mod pprof;
mod speedscope;

use std::collections::HashMap;
use std::io::{self, Write};

/// Kind of a frame, which decides its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A frame of native code.
    Native,
    /// A frame of Python code.
    Python,
    /// The traced call itself.
    Call,
    /// No code: a note such as that frames were left out.
    Note,
}

/// A frame of a stack. Frames are one in the graph when they are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Kind of the frame.
    pub kind: Kind,
    /// Name of the function, or a note or an address in its place.
    pub name: String,
    /// Source file, or the module; empty when neither is known.
    pub file: String,
    /// Line in the source file; 0 when it is not known.
    pub line: u32,
}

/// Unit of a profile's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Weights are numbers of events.
    Count,
    /// Weights are times in nanoseconds.
    Nanoseconds,
    /// Weights are numbers of bytes.
    Bytes,
}

/// A kind of weight that all stacks of a profile have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightKind {
    /// Name of the kind of weight, for titles: `calls`, `GPU time`.
    pub name: String,
    /// Unit of the weights.
    pub unit: Unit,
}

/// Weighted stacks.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Kinds of weights. The first is the one that formats with one weight have, and that others show first.
    weights: Vec<WeightKind>,
    frames: Vec<Frame>,
    index: HashMap<Frame, u32>,
    /// Stacks, outermost frame first, with a weight of each kind.
    samples: HashMap<Vec<u32>, Vec<u64>>,
}

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page for a browser, without further files.
    Html,
    /// A line for each stack: frames with semicolons between them, and the first weight.
    Folded,
    /// JSON of speedscope.app.
    Speedscope,
    /// Protocol buffer of pprof.
    Pprof,
    /// JSON of the Firefox Profiler.
    Firefox,
}

impl Profile {
    /// A profile without stacks, with weights of these names and units.
    pub fn new(weights: &[(&str, Unit)]) -> Profile {
        let kind = |&(name, unit): &(&str, Unit)| WeightKind {
            name: name.to_owned(),
            unit,
        };
        Profile::from_kinds(weights.iter().map(kind).collect())
    }

    fn from_kinds(weights: Vec<WeightKind>) -> Profile {
        Profile {
            weights,
            frames: Vec::new(),
            index: HashMap::new(),
            samples: HashMap::new(),
        }
    }

    /// Adds a stack, outermost frame first, with a weight of each kind. Stacks without frames or weight are left out.
    pub fn add(&mut self, stack: impl IntoIterator<Item = Frame>, weights: &[u64]) {
        let stack: Vec<u32> = stack.into_iter().map(|frame| self.intern(frame)).collect();
        self.add_interned(stack, weights);
    }

    fn add_interned(&mut self, stack: Vec<u32>, weights: &[u64]) {
        if stack.is_empty() || weights.iter().all(|&weight| weight == 0) {
            return;
        }
        let none = || vec![0; self.weights.len()];
        let sums = self.samples.entry(stack).or_insert_with(none);
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum = sum.saturating_add(*weight);
        }
    }

    fn intern(&mut self, frame: Frame) -> u32 {
        if let Some(&known) = self.index.get(&frame) {
            return known;
        }
        let number = self.frames.len() as u32;
        self.frames.push(frame.clone());
        self.index.insert(frame, number);
        number
    }

    /// The sum of the first weights.
    pub fn total(&self) -> u64 {
        self.total_of(0)
    }

    /// The sum of the weights of a kind.
    fn total_of(&self, kind: usize) -> u64 {
        self.samples
            .values()
            .fold(0, |sum, weights| sum.saturating_add(weights[kind]))
    }

    /// Whether no stack has a first weight.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// The kinds of weights that some stack has here or in `other`, and the first, with their indices.
    fn kinds_in_use<'a>(&'a self, other: Option<&'a Profile>) -> Vec<(usize, &'a WeightKind)> {
        let has = |profile: &Profile, kind| profile.total_of(kind) > 0;
        let kinds = self.weights.iter().enumerate();
        kinds
            .filter(|(kind, _)| {
                *kind == 0 || has(self, *kind) || other.is_some_and(|other| has(other, *kind))
            })
            .collect()
    }

    /// The profile with every stack turned round: the innermost frame becomes the outermost.
    #[must_use]
    pub fn inverted(mut self) -> Profile {
        let samples = std::mem::take(&mut self.samples);
        for (mut stack, weights) in samples {
            stack.reverse();
            self.add_interned(stack, &weights);
        }
        self
    }

    /// The profile without lines: frames of one function are one, wherever in it the calls stand.
    #[must_use]
    pub fn by_function(&self) -> Profile {
        let mut merged = Profile::from_kinds(self.weights.clone());
        for (stack, weights) in &self.samples {
            let frames = stack.iter().map(|&index| Frame {
                line: 0,
                ..self.frames[index as usize].clone()
            });
            merged.add(frames, weights);
        }
        merged
    }

    /// Stacks and weights in an order that depends on nothing but their texts.
    fn ordered(&self) -> Vec<(Vec<&Frame>, &[u64])> {
        let frame = |&index: &u32| &self.frames[index as usize];
        let mut all: Vec<(Vec<&Frame>, &[u64])> = self
            .samples
            .iter()
            .map(|(stack, weights)| (stack.iter().map(frame).collect(), &**weights))
            .collect();
        all.sort_unstable();
        all
    }

    /// Writes the profile; with `before`, what became of that, which HTML and folded texts can show. `before` has weights of the
    /// same kinds.
    ///
    /// # Errors
    /// When `out` takes no more, or the format has no differences ([`io::ErrorKind::Unsupported`]).
    pub fn write(
        &self,
        format: Format,
        title: &str,
        before: Option<&Profile>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match (format, before) {
            (Format::Html, _) => html::write(self, before, title, out),
            (Format::Folded, _) => folded::write(self, before, out),
            (Format::Speedscope, None) => speedscope::write(self, title, out),
            (Format::Pprof, None) => pprof::write(self, out),
            (Format::Firefox, None) => firefox::write(self, title, out),
            (Format::Speedscope | Format::Pprof | Format::Firefox, Some(_)) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "this format has no differences; write html or folded",
            )),
        }
    }
}

impl Format {
    /// Whether the format can show what became of an earlier profile.
    pub const fn has_differences(self) -> bool {
        matches!(self, Format::Html | Format::Folded)
    }

    /// Whether its files are not to be read on a terminal.
    pub const fn is_for_files(self) -> bool {
        matches!(self, Format::Html | Format::Pprof)
    }
}

#[cfg(test)]
mod tests;

//! Flame graphs: weighted stacks, put into one tree and written in the formats that viewers read. Independent of where
//! stacks come from.

mod firefox;
mod folded;
mod html;
mod pprof;
mod speedscope;

use std::collections::HashMap;
use std::io::{self, Write};

pub use html::Difference;

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

/// Weighted stacks of one unit.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Name of the weight, for titles: `calls`, `GPU time`.
    pub weight: String,
    /// Unit of the weights.
    pub unit: Unit,
    frames: Vec<Frame>,
    index: HashMap<Frame, u32>,
    /// Stacks, outermost frame first, with their weights.
    samples: HashMap<Vec<u32>, u64>,
}

/// A format of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A page for a browser, without further files.
    Html,
    /// A line for each stack: frames with semicolons between them, and the weight.
    Folded,
    /// JSON of speedscope.app.
    Speedscope,
    /// Protocol buffer of pprof.
    Pprof,
    /// JSON of the Firefox Profiler.
    Firefox,
}

impl Profile {
    /// A profile without stacks.
    pub fn new(weight: &str, unit: Unit) -> Profile {
        Profile {
            weight: weight.to_owned(),
            unit,
            frames: Vec::new(),
            index: HashMap::new(),
            samples: HashMap::new(),
        }
    }

    /// Adds a stack, outermost frame first. Stacks without frames or weight are left out.
    pub fn add(&mut self, stack: impl IntoIterator<Item = Frame>, weight: u64) {
        let stack: Vec<u32> = stack.into_iter().map(|frame| self.intern(frame)).collect();
        if weight > 0 && !stack.is_empty() {
            *self.samples.entry(stack).or_default() += weight;
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

    /// The sum of all weights.
    pub fn total(&self) -> u64 {
        self.samples.values().sum()
    }

    /// Whether there is no stack in it.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The profile with every stack turned round: the innermost frame becomes the outermost.
    #[must_use]
    pub fn inverted(mut self) -> Profile {
        let samples = std::mem::take(&mut self.samples);
        for (mut stack, weight) in samples {
            stack.reverse();
            *self.samples.entry(stack).or_default() += weight;
        }
        self
    }

    /// The profile without lines: frames of one function are one, wherever in it the calls stand.
    #[must_use]
    pub fn by_function(&self) -> Profile {
        let mut merged = Profile::new(&self.weight, self.unit);
        for (stack, weight) in &self.samples {
            let frames = stack.iter().map(|&index| Frame {
                line: 0,
                ..self.frames[index as usize].clone()
            });
            merged.add(frames, *weight);
        }
        merged
    }

    /// Stacks and weights in an order that depends on nothing but their texts.
    fn ordered(&self) -> Vec<(Vec<&Frame>, u64)> {
        let frame = |&index: &u32| &self.frames[index as usize];
        let mut all: Vec<(Vec<&Frame>, u64)> = self
            .samples
            .iter()
            .map(|(stack, weight)| (stack.iter().map(frame).collect(), *weight))
            .collect();
        all.sort_unstable();
        all
    }

    /// Writes the profile; with `before`, what became of that, which HTML and folded texts can show.
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

#[cfg(test)]
mod tests;

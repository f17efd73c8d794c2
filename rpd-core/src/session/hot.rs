//! PC samples by kernel, source line and instruction, hottest first.

use std::collections::{BTreeMap, HashMap};

use super::code::{CodeLine, Instruction};
use super::samples::{Issue, REASONS, reason};
use super::totals::{Measure, PlaceTotals, Replicates, Totals};
use super::{KernelLabels, Session};
use crate::ids::{CodeObjectId, KernelId, StringId};
use crate::options::KernelNames;

/// Counts of PC samples or thread trace cycles at an instruction, or their sums over lines and kernels.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Number of samples.
    pub samples: u64,
    /// Of those, stochastic ones: only they hold whether an instruction was issued.
    pub stochastic: u64,
    /// Of those, how many issued an instruction.
    pub issued: u64,
    /// Of those, how many did not, by reason.
    pub stalls: [u64; REASONS.len()],
    /// Lanes that were enabled, added up.
    pub lanes: u64,
    /// Waves that were active on the compute unit, added up over stochastic samples.
    pub waves: u64,
    /// Samples of each replicate.
    pub replicates: Replicates,
}

impl Tally {
    fn of(totals: &PlaceTotals) -> Tally {
        let mut tally = Tally {
            replicates: totals.replicates,
            ..Tally::default()
        };
        for (issue, count) in &totals.counts {
            tally.samples += count.samples;
            tally.lanes += count.lanes;
            tally.waves += count.waves;
            match *issue {
                Issue::HOST_TRAP => {}
                Issue::ISSUED => {
                    tally.stochastic += count.samples;
                    tally.issued += count.samples;
                }
                Issue(number) => {
                    tally.stochastic += count.samples;
                    let slot = usize::from(number).min(REASONS.len() - 1);
                    tally.stalls[slot] += count.samples;
                }
            }
        }
        tally
    }

    /// Adds another tally.
    pub fn add(&mut self, other: &Tally) {
        self.samples += other.samples;
        self.stochastic += other.stochastic;
        self.issued += other.issued;
        for (sum, more) in self.stalls.iter_mut().zip(&other.stalls) {
            *sum += more;
        }
        self.lanes += other.lanes;
        self.waves += other.waves;
        self.replicates.add(&other.replicates);
    }

    /// Samples that did not issue an instruction.
    pub fn stalled(&self) -> u64 {
        self.stalls.iter().sum()
    }

    /// Its share of `whole`, 0 to 1.
    pub fn share(&self, whole: &Tally) -> f64 {
        match whole.samples {
            0 => 0.0,
            samples => self.samples as f64 / samples as f64,
        }
    }

    /// Half the width of the 95 % interval of [`Tally::share`].
    pub fn error(&self, whole: &Tally) -> Option<f64> {
        self.replicates.error_of_share(&whole.replicates)
    }

    /// Lanes that were enabled in a sample, on average; `None` where that is not known.
    pub fn mean_lanes(&self) -> Option<f64> {
        (self.lanes > 0).then(|| self.lanes as f64 / self.samples.max(1) as f64)
    }

    /// Waves that were active, on average; `None` where that was not sampled.
    pub fn mean_waves(&self) -> Option<f64> {
        (self.stochastic > 0 && self.waves > 0).then(|| self.waves as f64 / self.stochastic as f64)
    }

    /// Reasons why no instruction was issued, most frequent first.
    pub fn reasons(&self) -> Vec<(&'static str, u64)> {
        let mut reasons: Vec<(&'static str, u64)> = (0..)
            .zip(&self.stalls)
            .filter(|(_, samples)| **samples > 0)
            .map(|(number, samples)| (reason(number), *samples))
            .collect();
        reasons.sort_by_key(|(name, samples)| (std::cmp::Reverse(*samples), *name));
        reasons
    }
}

/// A place in source code, as text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HotPlace {
    /// Source file; empty when it is not known.
    pub file: String,
    /// Line in it; 0 when it is not known.
    pub line: u32,
    /// Function; empty when it is not known.
    pub function: String,
}

/// An instruction with samples.
#[derive(Debug, Clone)]
pub struct HotInstruction {
    /// Code object.
    pub object: CodeObjectId,
    /// Offset from the load address of the code object; an address when there is none.
    pub offset: u64,
    /// Text; empty when it could not be decoded.
    pub text: String,
    /// Counts at the instruction.
    pub tally: Tally,
}

/// A line with samples, in one chain of inlined calls.
#[derive(Debug, Clone)]
pub struct HotLine {
    /// The function that the kernel calls and whose code it is; empty for the kernel's own.
    pub called: String,
    /// The line, then those of the calls that were inlined there, innermost first; empty when nothing is known.
    pub chain: Vec<HotPlace>,
    /// Sums over the line.
    pub tally: Tally,
    /// Its instructions, hottest first.
    pub instructions: Vec<HotInstruction>,
}

/// A kernel with samples.
#[derive(Debug, Clone)]
pub struct HotKernel {
    /// Name, as it is to be shown.
    pub name: String,
    /// Sums over the kernel.
    pub tally: Tally,
    /// Its lines, hottest first.
    pub lines: Vec<HotLine>,
}

/// All kernels with samples.
#[derive(Debug, Clone, Default)]
pub struct Hot {
    /// Unit of the counts: samples or cycles.
    pub measure: Measure,
    /// Sums over all kernels.
    pub tally: Tally,
    /// Kernels, hottest first.
    pub kernels: Vec<HotKernel>,
}

/// The name of samples whose kernel is not known.
pub const UNKNOWN_KERNEL: &str = "(unknown kernel)";

/// Lines by called function and chain; instructions by code object, offset and text.
type Lines = HashMap<(String, Vec<HotPlace>), BTreeMap<(CodeObjectId, u64), (String, Tally)>>;

/// Collects samples, or cycles of thread traces, of one or several recordings: kernels and lines are the same when their texts are.
#[derive(Debug, Default)]
pub struct HotBuilder {
    measure: Measure,
    kernels: BTreeMap<String, Lines>,
}

impl HotBuilder {
    /// Adds what was sampled in a recording, of the kernels that `wanted` accepts.
    pub fn add(
        &mut self,
        session: &Session,
        totals: &Totals,
        names: KernelNames,
        wanted: impl Fn(&str) -> bool,
    ) {
        self.measure = totals.measure;
        let labels = KernelLabels::new(session, names);
        let code = &session.code;
        let symbols = session.kernel_symbols.iter();
        let symbols: HashMap<KernelId, &str> = symbols
            .map(|symbol| (symbol.id, symbol.name.trim_end_matches(".kd")))
            .collect();
        let mut functions: HashMap<StringId, String> = HashMap::new();
        // Of code that is not the kernel's own, the function.
        let mut called = |kernel, instruction: Option<&Instruction>| -> String {
            let own = symbols.get(&kernel).copied();
            match own.zip(instruction.map(|instruction| instruction.function)) {
                Some((own, id)) if own != session.strings.get(id) => {
                    let formatted = || {
                        crate::kernel_name::formatted(session.strings.get(id), names).into_owned()
                    };
                    functions.entry(id).or_insert_with(formatted).clone()
                }
                _ => String::new(),
            }
        };
        for (place, sums) in &totals.places {
            let found = code.find(place.object, place.offset);
            let instruction = found.map(|index| &code.instructions[index]);
            let name = kernel_name(session, &labels, place.kernel, instruction, names);
            if !wanted(&name) {
                continue;
            }
            let lines = self.kernels.entry(name).or_default();
            let chain: Vec<HotPlace> = instruction.map_or_else(Vec::new, |instruction| {
                let places = code.lines_of(instruction).iter();
                places.map(|line| place_text(session, line)).collect()
            });
            let text = instruction.map_or("", |instruction| session.strings.get(instruction.text));
            let slot = lines
                .entry((called(place.kernel, instruction), chain))
                .or_default()
                .entry((place.object, place.offset))
                .or_insert_with(|| (text.to_owned(), Tally::default()));
            slot.1.add(&Tally::of(sums));
        }
    }

    /// Everything that was added, hottest first.
    pub fn finish(self) -> Hot {
        let mut hot = Hot {
            measure: self.measure,
            ..Hot::default()
        };
        for (name, lines) in self.kernels {
            let mut kernel = HotKernel {
                name,
                tally: Tally::default(),
                lines: Vec::new(),
            };
            for ((called, chain), instructions) in lines {
                let mut line = HotLine {
                    called,
                    chain,
                    tally: Tally::default(),
                    instructions: Vec::new(),
                };
                for ((object, offset), (text, tally)) in instructions {
                    line.tally.add(&tally);
                    line.instructions.push(HotInstruction {
                        object,
                        offset,
                        text,
                        tally,
                    });
                }
                line.instructions.sort_by_key(|one| {
                    (std::cmp::Reverse(one.tally.samples), one.object, one.offset)
                });
                kernel.tally.add(&line.tally);
                kernel.lines.push(line);
            }
            kernel.lines.sort_by(|a, b| {
                let key = |line: &HotLine| std::cmp::Reverse(line.tally.samples);
                key(a)
                    .cmp(&key(b))
                    .then_with(|| (&a.chain, &a.called).cmp(&(&b.chain, &b.called)))
            });
            hot.tally.add(&kernel.tally);
            hot.kernels.push(kernel);
        }
        hot.kernels.sort_by(|a, b| {
            let key = |kernel: &HotKernel| std::cmp::Reverse(kernel.tally.samples);
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        hot
    }
}

fn kernel_name(
    session: &Session,
    labels: &KernelLabels<'_>,
    kernel: KernelId,
    instruction: Option<&Instruction>,
    names: KernelNames,
) -> String {
    if kernel != KernelId(0) {
        return labels.formatted(kernel).to_owned();
    }
    match instruction.map(|instruction| instruction.function) {
        // A function that kernels call, where no dispatch is known from which the calling kernel would follow.
        Some(function) if function != StringId(0) => {
            crate::kernel_name::formatted(session.strings.get(function), names).into_owned()
        }
        _ => UNKNOWN_KERNEL.to_owned(),
    }
}

/// A line as text.
pub fn place_text(session: &Session, line: &CodeLine) -> HotPlace {
    HotPlace {
        file: session.strings.get(line.file).to_owned(),
        line: line.line,
        function: session.strings.get(line.function).to_owned(),
    }
}

/// An instruction of a listing, sampled or not.
#[derive(Debug, Clone)]
pub struct ListedInstruction {
    /// Offset from the load address of the code object.
    pub offset: u64,
    /// Text; empty when it could not be decoded.
    pub text: String,
    /// Its line, then those of the calls that were inlined there, innermost first.
    pub chain: Vec<HotPlace>,
    /// Counts at the instruction.
    pub tally: Tally,
}

/// The code of a function, in the order of addresses.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The kernel that the samples are of.
    pub kernel: String,
    /// The function, as people write it.
    pub function: String,
    /// Code object.
    pub object: CodeObjectId,
    /// Unit of the counts: samples or cycles.
    pub measure: Measure,
    /// Sums over the kernel: over all functions that it calls.
    pub kernel_tally: Tally,
    /// Sums over the function.
    pub tally: Tally,
    /// All instructions of the function, in the order of addresses.
    pub instructions: Vec<ListedInstruction>,
}

/// The functions in which samples of a kernel are, hottest first.
pub fn listings(
    session: &Session,
    totals: &Totals,
    names: KernelNames,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Listing> {
    let labels = KernelLabels::new(session, names);
    let code = &session.code;
    /// Tallies by index of the instruction, by kernel, code object and function.
    type TalliesByFunction = BTreeMap<(String, CodeObjectId, StringId), HashMap<usize, Tally>>;
    let mut found = TalliesByFunction::new();
    let mut kernels: BTreeMap<String, Tally> = BTreeMap::new();
    for (place, sums) in &totals.places {
        let index = code.find(place.object, place.offset);
        let instruction = index.map(|index| &code.instructions[index]);
        let name = kernel_name(session, &labels, place.kernel, instruction, names);
        if !wanted(&name) {
            continue;
        }
        let tally = Tally::of(sums);
        kernels.entry(name.clone()).or_default().add(&tally);
        if let Some((index, instruction)) = index.zip(instruction) {
            found
                .entry((name, place.object, instruction.function))
                .or_default()
                .entry(index)
                .or_default()
                .add(&tally);
        }
    }
    let mut listings: Vec<Listing> = found
        .into_iter()
        .map(|((kernel, object, function), mut tallies)| {
            let mut listing = Listing {
                kernel_tally: kernels.get(&kernel).cloned().unwrap_or_default(),
                kernel,
                function: crate::kernel_name::formatted(session.strings.get(function), names)
                    .into_owned(),
                object,
                measure: totals.measure,
                tally: Tally::default(),
                instructions: Vec::new(),
            };
            let first = code
                .instructions
                .partition_point(|instruction| instruction.object < object);
            let own = code.instructions[first..]
                .iter()
                .take_while(|instruction| instruction.object == object);
            for (index, instruction) in (first..).zip(own) {
                if instruction.function != function {
                    continue;
                }
                let tally = tallies.remove(&index).unwrap_or_default();
                listing.tally.add(&tally);
                let places = code.lines_of(instruction).iter();
                listing.instructions.push(ListedInstruction {
                    offset: instruction.offset,
                    text: session.strings.get(instruction.text).to_owned(),
                    chain: places.map(|line| place_text(session, line)).collect(),
                    tally,
                });
            }
            listing
        })
        .collect();
    listings.sort_by(|a, b| {
        let key = |listing: &Listing| std::cmp::Reverse(listing.tally.samples);
        key(a)
            .cmp(&key(b))
            .then_with(|| (&a.kernel, a.object).cmp(&(&b.kernel, b.object)))
    });
    listings
}

//! PC samples or thread trace cycles by kernel, source line and instruction, for `rpd hot`, `rpd annotate` and the
//! HTML page.

use std::collections::{BTreeMap, HashMap};

use super::code::{CodeLine, Instruction};
use super::samples::{Issue, REASON_NUMBERS, reason};
use super::totals::{InstructionTotals, Measure, PlaceTotals, Replicates};
use super::{KernelLabels, Session};
use crate::ids::{CodeObjectId, KernelId, StringId};
use crate::options::KernelNames;

/// Numbers by number of the [`reason`].
#[derive(Debug, Clone)]
pub struct Stalls([u64; REASON_NUMBERS]);

impl Default for Stalls {
    fn default() -> Stalls {
        Stalls([0; REASON_NUMBERS])
    }
}

/// Numbers of PC samples, or of cycles in thread traces, at an instruction; or their sums over a line or a kernel.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Number of samples, or of cycles.
    pub samples: u64,
    /// Number of the `samples` that are stochastic. Only these show whether the wave issued an instruction.
    pub stochastic: u64,
    /// Number of stochastic samples whose wave issued an instruction.
    pub issued: u64,
    /// Number of stochastic samples whose wave did not issue an instruction, by number of the [`reason`].
    pub stalls: Stalls,
    /// Lanes that were enabled, added up over all samples; 0 for thread traces.
    pub lanes: u64,
    /// Waves that were active on the compute unit, added up over stochastic samples.
    pub waves: u64,
    /// Number of samples in each bootstrap replicate: see [`super::totals`].
    pub replicates: Replicates,
}

impl Tally {
    fn from_totals(totals: &PlaceTotals) -> Tally {
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
                    let slot = usize::from(number).min(REASON_NUMBERS - 1);
                    tally.stalls.0[slot] += count.samples;
                }
            }
        }
        tally
    }

    /// Adds the numbers of another tally.
    pub fn add(&mut self, other: &Tally) {
        self.samples += other.samples;
        self.stochastic += other.stochastic;
        self.issued += other.issued;
        for (sum, more) in self.stalls.0.iter_mut().zip(&other.stalls.0) {
            *sum += more;
        }
        self.lanes += other.lanes;
        self.waves += other.waves;
        self.replicates.add(&other.replicates);
    }

    /// Number of samples in which the wave did not issue an instruction.
    pub fn stalled(&self) -> u64 {
        self.stalls.0.iter().sum()
    }

    /// Share of the samples of `whole`, 0 to 1; 0 when `whole` has none.
    pub fn share(&self, whole: &Tally) -> f64 {
        match whole.samples {
            0 => 0.0,
            samples => self.samples as f64 / samples as f64,
        }
    }

    /// Half the width of the 95 % interval of [`Tally::share`]; `None` without replicates, as for thread traces.
    pub fn error(&self, whole: &Tally) -> Option<f64> {
        self.replicates.error_of_share(&whole.replicates)
    }

    /// Mean number of enabled lanes in a sample; `None` where lanes are not known.
    pub fn mean_lanes(&self) -> Option<f64> {
        (self.lanes > 0).then(|| self.lanes as f64 / self.samples.max(1) as f64)
    }

    /// Mean number of active waves on the compute unit; `None` without stochastic samples.
    pub fn mean_waves(&self) -> Option<f64> {
        (self.stochastic > 0 && self.waves > 0).then(|| self.waves as f64 / self.stochastic as f64)
    }

    /// Names and sample counts of the reasons why no instruction was issued, most frequent first.
    pub fn reasons(&self) -> Vec<(&'static str, u64)> {
        let mut reasons: Vec<(&'static str, u64)> = (0..)
            .zip(&self.stalls.0)
            .filter(|(_, samples)| **samples > 0)
            .map(|(number, samples)| (reason(number), *samples))
            .collect();
        reasons.sort_by_key(|(name, samples)| (std::cmp::Reverse(*samples), *name));
        reasons
    }
}

/// A line of source code as text, so that lines of several sessions can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HotPlace {
    /// Path of the source file in the debug information; empty when it is not known.
    pub file: String,
    /// Line number from 1; 0 when it is not known.
    pub line: u32,
    /// Name of the function; empty when it is not known.
    pub function: String,
}

/// An instruction with its samples.
#[derive(Debug, Clone)]
pub struct HotInstruction {
    /// Code object that has the instruction.
    pub object: CodeObjectId,
    /// Offset in bytes from the load address of the code object; an address when the provider found no code object.
    pub offset: u64,
    /// Disassembly; empty when the instruction could not be decoded.
    pub text: String,
    /// Samples or cycles at the instruction.
    pub tally: Tally,
}

/// A source line with its samples. The same line inlined by different calls is different lines.
#[derive(Debug, Clone)]
pub struct HotLine {
    /// Function that has the code, where the kernel calls it; empty where the code is the kernel's own.
    pub called: String,
    /// The line, then the lines of the calls that were inlined around it, innermost first; empty without debug
    /// information.
    pub chain: Vec<HotPlace>,
    /// Sum over the instructions of the line.
    pub tally: Tally,
    /// Instructions of the line that have samples, hottest first.
    pub instructions: Vec<HotInstruction>,
}

/// A kernel with its samples.
#[derive(Debug, Clone)]
pub struct HotKernel {
    /// Formatted name of the kernel.
    pub name: String,
    /// Sum over the lines of the kernel.
    pub tally: Tally,
    /// Lines of the kernel that have samples, hottest first.
    pub lines: Vec<HotLine>,
}

/// Samples or cycles by kernel, with the lines and instructions where they were.
#[derive(Debug, Clone, Default)]
pub struct Hot {
    /// Unit of the counts: samples or cycles.
    pub measure: Measure,
    /// Sum over all kernels.
    pub tally: Tally,
    /// Kernels with samples, hottest first.
    pub kernels: Vec<HotKernel>,
}

/// Name that stands for all samples whose kernel is not known.
pub const UNKNOWN_KERNEL: &str = "(unknown kernel)";

/// Instructions by called function and inline chain; the instructions of each by code object and offset, with their
/// text.
type Lines = HashMap<(String, Vec<HotPlace>), BTreeMap<(CodeObjectId, u64), (String, Tally)>>;

/// Adds up samples, or cycles of thread traces, of one or several recordings. Kernels and lines of different
/// recordings are the same when their texts are.
#[derive(Debug, Default)]
pub struct HotBuilder {
    measure: Measure,
    kernels: BTreeMap<String, Lines>,
}

impl HotBuilder {
    /// Adds the `totals` of a recording, for the kernels whose formatted name `wanted` accepts.
    pub fn add(
        &mut self,
        session: &Session,
        totals: &InstructionTotals,
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
        // The function that has the instruction; empty when it is the kernel itself.
        let mut called = |kernel, instruction: Option<&Instruction>| -> String {
            let own = symbols.get(&kernel).copied();
            match own.zip(instruction.map(|instruction| instruction.function)) {
                // A kernel's symbol has the suffix `.kd`, its code has none; without it they are compared as functions.
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
            slot.1.add(&Tally::from_totals(sums));
        }
    }

    /// Sums over everything that was added, hottest first.
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
                // Samples first, then the address: equal counts come in the same order in every run.
                line.instructions.sort_by_key(|one| {
                    (std::cmp::Reverse(one.tally.samples), one.object, one.offset)
                });
                kernel.tally.add(&line.tally);
                kernel.lines.push(line);
            }
            // Equal counts are ordered by place, so that two reports of one recording do not differ.
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
        // The function is one that kernels call, and no dispatch is known that tells which kernel called it.
        Some(function) if function != StringId(0) => {
            crate::kernel_name::formatted(session.strings.get(function), names).into_owned()
        }
        _ => UNKNOWN_KERNEL.to_owned(),
    }
}

/// The texts of a source line.
pub fn place_text(session: &Session, line: &CodeLine) -> HotPlace {
    HotPlace {
        file: session.strings.get(line.file).to_owned(),
        line: line.line,
        function: session.strings.get(line.function).to_owned(),
    }
}

/// An instruction of a function, whether it has samples or not.
#[derive(Debug, Clone)]
pub struct ListedInstruction {
    /// Offset from the load address of the code object, in bytes.
    pub offset: u64,
    /// Disassembly; empty when the instruction could not be decoded.
    pub text: String,
    /// Line of the instruction, then the lines of the calls that were inlined around it, innermost first; empty without
    /// debug information.
    pub chain: Vec<HotPlace>,
    /// Samples or cycles at the instruction.
    pub tally: Tally,
}

/// The instructions of a function, with the samples of one kernel.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Formatted name of the kernel that was running when the samples were taken.
    pub kernel: String,
    /// Demangled name of the function: the kernel itself, or a function that it calls.
    pub function: String,
    /// Code object that has the function.
    pub object: CodeObjectId,
    /// Unit of the counts: samples or cycles.
    pub measure: Measure,
    /// Sum over all functions that have samples of this kernel.
    pub kernel_tally: Tally,
    /// Sum over the instructions of this function.
    pub tally: Tally,
    /// All instructions of the function, in the order of addresses.
    pub instructions: Vec<ListedInstruction>,
}

/// The functions that have samples, one listing for each pair of kernel and function, hottest first.
pub fn listings(
    session: &Session,
    totals: &InstructionTotals,
    names: KernelNames,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Listing> {
    let labels = KernelLabels::new(session, names);
    let code = &session.code;
    /// Tallies of instructions, by kernel, code object and function, then by the instruction's index in
    /// [`super::code::Code::instructions`].
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
        let tally = Tally::from_totals(sums);
        // The kernel's sum has samples without instruction, too: shares are shares of the whole kernel.
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
            // Instructions are ordered by code object, so those of an object are one stretch.
            let first = code
                .instructions
                .partition_point(|instruction| instruction.object < object);
            let own = code.instructions[first..]
                .iter()
                .take_while(|instruction| instruction.object == object);
            // All instructions of the function are listed, those without samples included: a listing with gaps cannot
            // be read.
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
    // The names break ties, so that two reports of one recording do not differ.
    listings.sort_by(|a, b| {
        let key = |listing: &Listing| std::cmp::Reverse(listing.tally.samples);
        key(a)
            .cmp(&key(b))
            .then_with(|| (&a.kernel, a.object).cmp(&(&b.kernel, b.object)))
    });
    listings
}

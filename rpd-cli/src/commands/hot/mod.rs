//! Sub-commands about the inside of kernels: which lines and instructions their time is spent at.

pub(crate) mod annotate;
mod occupancy;
mod show;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::builder::PossibleValue;
use clap::{Args, Parser, ValueEnum};
use rpd_core::compat::Compat;
use rpd_core::session::Session;
use rpd_core::session::code::Sampling;
use rpd_core::session::hot::{Hot, HotBuilder};
use rpd_core::session::totals::{InstructionTotals, Measure};
use rpd_core::stats::Unit;
use rpd_formats::flame;
use rpd_formats::rocpd::read::{Database, Settings};
use rpd_formats::table::{TableFormat, View};
use rpd_spool::kernel_filter::{Matcher, compile};

use super::flame_format::FlameFormat;
use super::tables::TableOptions;
use super::{Inputs, Naming, destination, expand, parse, write_output};
use crate::failure::Failure;
use occupancy::OccupancyOnly;

const NAME: &str = "hot";

/// Show at which source lines and instructions kernels spend their time, and why waves stalled there
#[derive(Debug, Parser)]
#[command(
    after_help = "The inputs are databases of runs with PC sampling (rpd --pc-sampling-beta-enabled --pc-sampling-method ...) or \
    thread traces (rpd --att). Shares are parts of all samples, or cycles of traced instructions, that are shown. The number after ± is \
    half of a 95 % confidence interval, from resampled ticks, since the waves of a tick are not independent."
)]
struct Arguments {
    #[command(flatten)]
    inputs: Inputs,
    #[command(flatten)]
    filter: KernelFilter,
    /// Databases to compare with, line by line
    #[arg(long, value_name = "DB")]
    diff: Option<PathBuf>,
    #[command(flatten)]
    source: MeasureSource,
    /// Unit of a row [default: kernels, their lines, and the instructions of these]
    #[arg(long, value_enum)]
    by: Option<Level>,
    /// Kernels to show; 0 shows all [default: 5 in text, else all]
    #[arg(long, value_name = "N")]
    kernels: Option<usize>,
    /// Lines of a kernel to show; 0 shows all [default: 10 in text, else all]
    #[arg(long, value_name = "N")]
    lines: Option<usize>,
    /// Instructions of a line to show; 0 shows all [default: 4 in text, else all]
    #[arg(long, value_name = "N")]
    instructions: Option<usize>,
    /// Output format of the result
    #[arg(short = 'f', long, value_enum, default_value = "text")]
    format: FormatName,
    /// File to write instead of standard output
    #[arg(short = 'o', long, value_name = "FILE")]
    output_file: Option<PathBuf>,
    #[command(flatten)]
    naming: Naming,
    #[command(flatten)]
    tables: TableOptions,
}

/// Choice between samples and traces, for databases that have both.
#[derive(Debug, Args)]
pub(super) struct MeasureSource {
    /// Source of the figures: PC samples or thread traces [default: samples where there are any]
    #[arg(long = "from", value_enum, value_name = "WHAT")]
    from: Option<MeasureName>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MeasureName {
    /// PC samples
    Samples,
    /// Cycles of the instructions in thread traces
    Traces,
}

impl MeasureSource {
    /// Sums of the kind that is requested; `sampled` are those of samples.
    fn totals(&self, session: &Session, sampled: InstructionTotals) -> InstructionTotals {
        match self.from {
            Some(MeasureName::Samples) => sampled,
            None if !sampled.places.is_empty() => sampled,
            Some(MeasureName::Traces) | None => InstructionTotals::from_traces(session),
        }
    }
}

/// Selection of kernels by name.
#[derive(Debug, Args)]
pub(super) struct KernelFilter {
    /// Regular expression of the kernels to show, searched for in their names [default: all]
    #[arg(long, value_name = "REGEX")]
    kernel: Option<String>,
    /// Regular expression of the kernels to leave out, searched for in their names
    #[arg(long, value_name = "REGEX")]
    kernel_exclude: Option<String>,
}

impl KernelFilter {
    fn compile(&self, name: &str) -> Result<impl Fn(&str) -> bool + use<>> {
        let matcher = |option: &str, text: &Option<String>| match text {
            None => Ok(None),
            Some(text) => match compile(text) {
                Ok(table) => Ok(Matcher::from_bytes(table)),
                Err(error) => Err(Failure::usage(format!(
                    "{name}: {option} '{text}': {error}"
                ))),
            },
        };
        let wanted = matcher("--kernel", &self.kernel)?;
        let unwanted = matcher("--kernel-exclude", &self.kernel_exclude)?;
        Ok(move |kernel: &str| {
            wanted
                .as_ref()
                .is_none_or(|matcher| matcher.is_match(kernel))
                && unwanted
                    .as_ref()
                    .is_none_or(|matcher| !matcher.is_match(kernel))
        })
    }
}

/// Meaning of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Level {
    /// A kernel
    Kernel,
    /// A source line
    Line,
    /// An instruction
    Instruction,
}

/// Format of the result: text, tables, and flame graphs of kernel, calls that were inlined, line and instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatName {
    Text,
    Csv,
    Json,
    Markdown,
    Flame(FlameFormat),
}

impl ValueEnum for FormatName {
    fn value_variants<'a>() -> &'a [FormatName] {
        &[
            FormatName::Text,
            FormatName::Csv,
            FormatName::Json,
            FormatName::Markdown,
            FormatName::Flame(FlameFormat::Html),
            FormatName::Flame(FlameFormat::Folded),
            FormatName::Flame(FlameFormat::Speedscope),
            FormatName::Flame(FlameFormat::Pprof),
            FormatName::Flame(FlameFormat::Firefox),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new;
        Some(match self {
            FormatName::Text => value("text").help("Text with headings and indentation"),
            FormatName::Csv => value("csv").help("Comma-separated values"),
            FormatName::Json => value("json").help("An array of objects"),
            FormatName::Markdown => value("markdown").alias("md").help("A markdown table"),
            FormatName::Flame(format) => return format.to_possible_value(),
        })
    }
}

impl FormatName {
    /// The format of the table that is written; `None` for one of flame graphs.
    const fn table_format(self) -> Option<TableFormat> {
        match self {
            FormatName::Text => Some(TableFormat::Console),
            FormatName::Csv => Some(TableFormat::Csv),
            FormatName::Json => Some(TableFormat::Json),
            FormatName::Markdown => Some(TableFormat::Markdown),
            FormatName::Flame(_) => None,
        }
    }
}

/// Facts about the samples other than their sums.
#[derive(Default)]
struct Facts {
    sampling: Vec<Sampling>,
    /// Recordings with samples.
    recordings: usize,
}

/// Runs the sub-command.
pub(crate) fn run(arguments: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>(NAME, arguments)? else {
        return Ok(0);
    };
    given.refuse_unusable()?;
    let paths = given.inputs.paths(NAME)?;
    let others = match &given.diff {
        Some(path) => expand(&[path])?,
        None => Vec::new(),
    };
    let inputs = paths.iter().chain(&others);
    let output = destination(NAME, given.output_file.as_deref(), inputs)?;
    let look = given.format.table_format().unwrap_or(TableFormat::Console);
    let view = (given.tables).view(look, Unit::Nsec, Compat::None, &output, None);
    let (hot, facts) = given.collect(&paths)?;
    let before = match &given.diff {
        Some(_) => Some(given.collect(&others)?.0),
        None => None,
    };
    if hot.kernels.is_empty()
        && before
            .as_ref()
            .is_none_or(|before| before.kernels.is_empty())
    {
        return Err(given.no_kernel(&paths)?.into());
    }
    if before
        .as_ref()
        .is_some_and(|before| before.measure != hot.measure)
    {
        return Err(different_measures(NAME).into());
    }
    let write =
        |out: &mut dyn std::io::Write| given.write(&hot, &facts, before.as_ref(), &view, out);
    write_output(output, Compat::None, write)?;
    Ok(0)
}

/// The error for two runs that cannot be compared.
fn different_measures(name: &str) -> Failure {
    Failure::usage(format!(
        "{name}: --diff: one run has PC samples, the other thread traces: choose with --from"
    ))
}

/// Calls `take` with each recording that has PC samples or thread traces; all of them have the same measure.
///
/// # Errors
/// When a database cannot be read, or none has what is looked for; when some have the one and others the other.
fn each_measured(
    name: &str,
    paths: &[PathBuf],
    source: &MeasureSource,
    mut take: impl FnMut(&Path, &Session, &Settings, &InstructionTotals) -> Result<()>,
) -> Result<()> {
    let mut found: Option<Measure> = None;
    let mut occupancy = OccupancyOnly::default();
    for path in paths {
        let database = Database::open(path)?;
        for recording in database.recordings() {
            let (session, settings, sampled) = database.samples(recording)?;
            let totals = source.totals(&session, sampled);
            if !totals.places.is_empty() {
                if found.is_some_and(|measure| measure != totals.measure) {
                    return Err(Failure::usage(format!(
                        "{name}: some of the databases hold PC samples, others thread traces: choose with --from"
                    ))
                    .into());
                }
                found = Some(totals.measure);
                take(path, &session, &settings, &totals)?;
            } else {
                occupancy.add(&session.thread_traces);
            }
        }
    }
    if found.is_none() {
        let wants_traces = source.from != Some(MeasureName::Samples);
        if let Some(advice) = occupancy.advice().filter(|_| wants_traces) {
            let which = match paths {
                [only] => format!("{} holds", only.display()),
                several => format!("the {} databases hold", several.len()),
            };
            return Err(Failure::failed(format!("{name}: {which} {advice}")).into());
        }
        let which = match paths {
            [only] => only.display().to_string(),
            several => format!("none of the {} databases", several.len()),
        };
        let verb = if paths.len() == 1 {
            "holds no"
        } else {
            "holds"
        };
        let (what, how) = match source.from {
            Some(MeasureName::Traces) => ("thread traces", "--att".to_owned()),
            Some(MeasureName::Samples) => ("PC samples", RECORD_SAMPLES.to_owned()),
            None => (
                "PC samples or thread traces",
                format!("{RECORD_SAMPLES}, or with --att"),
            ),
        };
        return Err(
            Failure::failed(format!("{name}: {which} {verb} {what}; record with {how}")).into(),
        );
    }
    Ok(())
}

/// Options that record PC samples on every GPU that has them.
const RECORD_SAMPLES: &str = "--pc-sampling-beta-enabled --pc-sampling-method host_trap --pc-sampling-unit time \
    --pc-sampling-interval 100";

impl Arguments {
    fn collect(&self, paths: &[PathBuf]) -> Result<(Hot, Facts)> {
        let wanted = self.filter.compile(NAME)?;
        let mut builder = HotBuilder::default();
        let mut facts = Facts::default();
        each_measured(NAME, paths, &self.source, |_, session, settings, totals| {
            builder.add(session, totals, self.naming.over(settings), &wanted);
            facts.recordings += 1;
            for sampling in &session.sampling {
                facts.sampling.push(*sampling);
            }
            Ok(())
        })?;
        Ok((builder.finish(), facts))
    }

    /// The error for filters that leave no kernel.
    fn no_kernel(&self, paths: &[PathBuf]) -> Result<Failure> {
        let mut builder = HotBuilder::default();
        each_measured(NAME, paths, &self.source, |_, session, settings, totals| {
            builder.add(session, totals, self.naming.over(settings), |_| true);
            Ok(())
        })?;
        let all = builder.finish();
        let names: Vec<&str> = (all.kernels.iter())
            .map(|kernel| kernel.name.as_str())
            .collect();
        let option = |name: &str, text: &Option<String>| {
            let text = text.as_ref()?;
            Some(format!("{name} '{text}'"))
        };
        let kernel = option("--kernel", &self.filter.kernel);
        let options: Vec<String> = [
            kernel,
            option("--kernel-exclude", &self.filter.kernel_exclude),
        ]
        .into_iter()
        .flatten()
        .collect();
        let wanted = self.filter.kernel.as_deref().unwrap_or_default();
        Ok(Failure::failed(format!(
            "{NAME}: {}: no kernel with {} matches{}",
            options.join(" "),
            all.measure.plural(),
            other_kernels(wanted, &names)
        )))
    }

    fn limit(&self, given: Option<usize>, usual: usize) -> usize {
        match given {
            Some(0) => usize::MAX,
            Some(number) => number,
            None if self.format == FormatName::Text => usual,
            None => usize::MAX,
        }
    }

    /// Refuses options that the format has no use for.
    fn refuse_unusable(&self) -> Result<(), Failure> {
        let is_tree = self.format == FormatName::Text && (self.by.is_none() || self.diff.is_some());
        match self.format {
            FormatName::Flame(format) => {
                let has_file = self.output_file.is_some();
                format.refuse_unusable(NAME, self.diff.is_some(), has_file)?;
                self.tables.refuse_without_table(NAME, "give --format csv, json or markdown")
            }
            _ if is_tree => self.tables.refuse_without_table(
                NAME,
                "give --by or another --format; --kernels, --lines and --instructions limit the text",
            ),
            _ => Ok(()),
        }
    }

    fn write(
        &self,
        hot: &Hot,
        facts: &Facts,
        before: Option<&Hot>,
        view: &View,
        out: &mut dyn std::io::Write,
    ) -> Result<()> {
        let limits = show::Limits {
            kernels: self.limit(self.kernels, 5),
            lines: self.limit(self.lines, 10),
            instructions: self.limit(self.instructions, 4),
        };
        if let FormatName::Flame(format) = self.format {
            let before = before.map(profile);
            profile(hot).write(format.into(), title(hot), before.as_ref(), out)?;
            return Ok(());
        }
        let is_text = self.format == FormatName::Text;
        let width = view.width.unwrap_or(usize::MAX);
        match before {
            Some(before) if is_text => show::difference(hot, before, limits, width, out)?,
            Some(before) => show::difference_table(hot, before, limits, view, out)?,
            None if is_text && self.by.is_none() => show::tree(hot, facts, limits, width, out)?,
            None => show::table(hot, self.by, limits, view, out)?,
        }
        Ok(())
    }
}

/// Names in a message about a kernel that is not there.
const KERNELS_NAMED: usize = 8;

/// End of a message about a kernel that is not there: the one whose name is near, or those that there are.
fn other_kernels(wanted: &str, kernels: &[&str]) -> String {
    if let Some(near) = rpd_core::text::near::nearest(wanted, kernels.iter().copied()) {
        return format!("; did you mean {near}?");
    }
    let (named, rest) = kernels.split_at(kernels.len().min(KERNELS_NAMED));
    match (named, rest.len()) {
        ([], _) => String::new(),
        (named, 0) => format!("; there are: {}", named.join(", ")),
        (named, more) => format!("; there are: {} and {more} more", named.join(", ")),
    }
}

fn title(hot: &Hot) -> &'static str {
    match hot.measure {
        Measure::Samples => "PC samples",
        Measure::Cycles => "Cycles of traced instructions",
    }
}

/// Samples as stacks: kernel, calls that were inlined, line, instruction.
fn profile(hot: &Hot) -> flame::Profile {
    let mut profile = flame::Profile::new(&[(title(hot), flame::Unit::Count)]);
    let frame = |kind, name: &str, file: &str, line| flame::Frame {
        kind,
        name: name.to_owned(),
        file: file.to_owned(),
        line,
    };
    for kernel in &hot.kernels {
        for line in &kernel.lines {
            let mut stack = vec![frame(flame::Kind::Call, &kernel.name, "", 0)];
            if !line.called.is_empty() {
                stack.push(frame(flame::Kind::Native, &line.called, "", 0));
            }
            // The outermost function is the kernel itself, or the one that it calls.
            let inlined = line.chain.len().saturating_sub(1);
            for place in line.chain[..inlined].iter().rev() {
                stack.push(frame(
                    flame::Kind::Native,
                    &place.function,
                    &place.file,
                    place.line,
                ));
            }
            if let Some(own) = line.chain.first() {
                let text = show::place_text(own);
                stack.push(frame(flame::Kind::Python, &text, &own.file, own.line));
            }
            for instruction in &line.instructions {
                let text = if instruction.text.is_empty() {
                    format!("{:#x}", instruction.offset)
                } else {
                    instruction.text.clone()
                };
                let last = frame(flame::Kind::Note, &text, "", 0);
                let stack = stack.iter().cloned().chain([last]);
                profile.add(stack, &[instruction.tally.samples]);
            }
        }
    }
    profile
}

/// Lines of all kernels, to compare them.
fn by_line(hot: &Hot) -> BTreeMap<show::LineKey, &rpd_core::session::hot::Tally> {
    let mut lines = BTreeMap::new();
    for kernel in &hot.kernels {
        for line in &kernel.lines {
            let key = show::LineKey {
                kernel: kernel.name.clone(),
                called: line.called.clone(),
                chain: line.chain.clone(),
            };
            lines.insert(key, &line.tally);
        }
    }
    lines
}

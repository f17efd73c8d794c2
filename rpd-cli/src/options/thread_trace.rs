//! Options of thread traces.

use std::path::PathBuf;

use rpd_att::find_library;
use rpd_core::options::{ThreadTraceOptions, TracedCounter};

use super::choices::ResourceMode;
use super::given::{Named, Setting};
use super::resolve::Environment;
use super::table::{Given, Group};
use crate::failure::Failure;
use crate::process::libraries;

/// The counters that `--att-activity` stands for.
const ACTIVITY_COUNTERS: [&str; 8] = [
    "SQ_BUSY_CU_CYCLES",
    "SQ_VALU_MFMA_BUSY_CYCLES",
    "SQ_ACTIVE_INST_VALU",
    "SQ_ACTIVE_INST_LDS",
    "SQ_ACTIVE_INST_VMEM",
    "SQ_ACTIVE_INST_FLAT",
    "SQ_ACTIVE_INST_SCA",
    "SQ_ACTIVE_INST_MISC",
];

/// The resolved thread trace options.
#[derive(Debug, Default)]
pub(super) struct Resolved {
    /// Thread traces; none without `--att`.
    pub(super) collector: Option<ThreadTraceOptions>,
    /// A decoder library to use in place of rpd's own.
    pub(super) library: Option<PathBuf>,
    /// Warning for the user.
    pub(super) warning: Option<String>,
}

/// Whether kernels are traced.
pub(super) fn is_requested(given: &Given) -> bool {
    given.advanced_thread_trace.is_on() || given.att_no_intercept.is_on()
}

/// Resolves the options. `counts`: hardware counters are collected in the same pass.
///
/// # Errors
/// A value that cannot be used, or options that exclude each other.
pub(super) fn resolve(
    given: &Given,
    environment: &Environment,
    counts: bool,
) -> Result<Resolved, Failure> {
    if !is_requested(given) {
        return without(given);
    }
    let usual = ThreadTraceOptions::default();
    let (counters, counter_period) = counters(given, counts)?;
    let consecutive = number(&given.att_consecutive_kernels, 0..=u64::MAX)?.unwrap_or(0);
    check_consecutive(given, consecutive)?;
    if given.att_resource_mode.value() == Some(ResourceMode::CodeObject) {
        return Err(given.att_resource_mode.refused(
            "code-object is a mode of newer tools: queues and buffers of traces are allocated when the HSA runtime starts; leave \
             the option out, or give hsa",
        ));
    }
    let options = ThreadTraceOptions {
        target_cu: number(&given.att_target_cu, 0..=15)?.map_or(usual.target_cu, |cu| cu as u8),
        simds: number(&given.att_simd_select, 0..=15)?.map_or(usual.simds, |simds| simds as u8),
        engines: number(&given.att_shader_engine_mask, 1..=u32::MAX.into())?
            .map_or(usual.engines, |mask| mask as u32),
        buffer: number(&given.att_buffer_size, ThreadTraceOptions::BUFFERS)?
            .unwrap_or(usual.buffer),
        gpus: gpus(&given.att_gpu_index)?,
        counters,
        counter_period,
        serialize_all: given.att_serialize_all.is_on(),
        consecutive,
        no_detail: given.att_no_detail.is_on(),
        target_counters: given.att_perfcounter_target_only.is_on(),
        no_intercept: given.att_no_intercept.is_on(),
    };
    let share = options.bytes_per_engine();
    if share < ThreadTraceOptions::LEAST_PER_ENGINE {
        let traced = options.engines.count_ones();
        let needed = u64::from(traced) * ThreadTraceOptions::LEAST_PER_ENGINE + (64 << 12);
        return Err(given.att_buffer_size.refused(format_args!(
            "{} bytes leave {share} for each of {traced} shader engines, which need {} each: give at least {needed}, or \
             select fewer with {}",
            options.buffer,
            ThreadTraceOptions::LEAST_PER_ENGINE,
            given.att_shader_engine_mask.flag()
        )));
    }
    Ok(Resolved {
        collector: Some(options),
        library: library(&given.att_library_path, environment)?,
        warning: without_interception(given),
    })
}

/// Refuses traces of consecutive kernels with those of other extents.
fn check_consecutive(given: &Given, consecutive: u64) -> Result<(), Failure> {
    let others: [(&Setting<bool>, &str); 3] = [
        (&given.selected_regions, "a region"),
        (&given.selected_regions_ref_count, "a region"),
        (&given.att_no_intercept, "the whole run"),
    ];
    match others.into_iter().find(|(other, _)| other.is_on()) {
        Some((other, extent)) if consecutive > 0 => Err(Failure::failed(format!(
            "{} and {} are mutually exclusive: a trace is of {extent} or of consecutive kernels",
            other.name(),
            given.att_consecutive_kernels.name()
        ))),
        _ => Ok(()),
    }
}

/// A warning about options that select dispatches, or the times at which a trace of a whole GPU begins and ends, in a
/// run whose dispatches are not intercepted.
fn without_interception(given: &Given) -> Option<String> {
    let intercept = &given.att_no_intercept;
    if !intercept.is_on() {
        return None;
    }
    if let Some(filter) = super::filters::kernel_filter(given) {
        return Some(format!(
            "{}: no effect, since {} traces all kernels",
            filter.name(),
            intercept.name()
        ));
    }
    (given.selected_regions.is_on() || given.selected_regions_ref_count.is_on()).then(|| {
        format!(
            "{}: no effect, since traces of regions are of whole GPUs in any case",
            intercept.name()
        )
    })
}

/// Without `--att`, its options have no effect.
fn without(given: &Given) -> Result<Resolved, Failure> {
    // Numbers are read all the same: a mistake in them is one.
    for option in [
        &given.att_target_cu,
        &given.att_simd_select,
        &given.att_buffer_size,
        &given.att_shader_engine_mask,
        &given.att_perfcounter_ctrl,
        &given.att_activity,
        &given.att_consecutive_kernels,
    ] {
        number(option, 0..=u64::MAX)?;
    }
    // Variables are set once for many runs, with traces and without.
    let useless = given.all().into_iter().find(|option| {
        option.spec.group == Group::ThreadTrace
            && option.is_requested()
            && option.variable().is_none()
    });
    Ok(Resolved {
        warning: useless.map(|option| format!("{}: no effect without --att", option.name())),
        ..Resolved::default()
    })
}

/// A number in decimal, or in hexadecimal after `0x`.
fn parse(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn number(
    option: &Setting<String>,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, Failure> {
    let Some(text) = option.text() else {
        return Ok(None);
    };
    let Some(value) = parse(text.trim()) else {
        return Err(option.refused(format_args!(
            "'{text}' is neither a decimal number nor a hexadecimal one such as 0x1f"
        )));
    };
    if !range.contains(&value) {
        return Err(option.refused(format_args!(
            "{text} is not in {} to {}",
            range.start(),
            range.end()
        )));
    }
    Ok(Some(value))
}

fn gpus(option: &Setting<Vec<String>>) -> Result<Vec<u32>, Failure> {
    let mut gpus = Vec::new();
    for word in option.list().iter().flat_map(|word| word.split(',')) {
        let word = word.trim();
        if word.is_empty() {
            continue;
        }
        let Ok(gpu) = word.parse() else {
            return Err(option.refused(format_args!(
                "'{word}' is not the number of a GPU, such as 0"
            )));
        };
        if !gpus.contains(&gpu) {
            gpus.push(gpu);
        }
    }
    Ok(gpus)
}

/// Counters in the trace, and the period of their samples.
fn counters(given: &Given, counts: bool) -> Result<(Vec<TracedCounter>, u8), Failure> {
    let (names, period, activity) = (
        &given.att_perfcounters,
        &given.att_perfcounter_ctrl,
        &given.att_activity,
    );
    let listed = names.text().filter(|text| !text.trim().is_empty());
    let steps = number(period, 0..=32)?.filter(|steps| *steps > 0);
    let activity_steps = number(activity, 1..=16)?;
    let requested: [(&Named, bool); 3] = [
        (names, listed.is_some()),
        (period, steps.is_some()),
        (activity, activity_steps.is_some()),
    ];
    let mut requested = (requested.into_iter())
        .filter(|(_, is_requested)| *is_requested)
        .map(|(option, _)| option);
    if counts && let Some(option) = requested.next() {
        return Err(option.refused(
            "cannot be enabled with PMC: --pmc uses the same hardware counters; take two runs",
        ));
    }
    match (activity_steps, listed, steps) {
        (Some(steps), None, None) => {
            let counter = |name: &&str| TracedCounter {
                name: (*name).to_owned(),
                simds: TracedCounter::ALL_SIMDS,
            };
            Ok((ACTIVITY_COUNTERS.iter().map(counter).collect(), steps as u8))
        }
        (Some(_), listed, _) => {
            let other: &Named = if listed.is_some() { names } else { period };
            Err(activity.refused(format_args!(
                "stands for counters and their period: leave out {}",
                other.name()
            )))
        }
        (None, None, None) => Ok((Vec::new(), 0)),
        (None, Some(listed), Some(steps)) => {
            let counters = named_counters(listed).map_err(|message| names.refused(message))?;
            Ok((counters, steps as u8))
        }
        (None, Some(_), None) => Err(names.refused(format_args!(
            "counters in the trace need a period: add {} (1, the finest, to 32)",
            period.flag()
        ))),
        (None, None, Some(_)) => Err(period.refused(format_args!(
            "a period needs counters in the trace: add {} 'NAME ...'",
            names.flag()
        ))),
    }
}

/// Reads the names of counters with their masks of SIMDs.
fn named_counters(text: &str) -> Result<Vec<TracedCounter>, String> {
    let mut counters: Vec<TracedCounter> = Vec::new();
    let uncommented = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let items = uncommented.flat_map(|line| line.split([' ', '\t', ',']));
    for item in items.filter(|item| !item.is_empty()) {
        let (name, mask) = item.split_once(':').unwrap_or((item, "f"));
        let digits = mask.trim_start_matches("0x").trim_start_matches("0X");
        let simds = u8::from_str_radix(digits, 16)
            .ok()
            .filter(|mask| *mask <= TracedCounter::ALL_SIMDS)
            .ok_or_else(|| {
                format!("'{item}': the mask of SIMDs is hexadecimal, from 0x1 to 0xf")
            })?;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_word) {
            return Err(format!("'{name}' is not the name of a counter"));
        }
        let counter = TracedCounter {
            name: name.to_ascii_uppercase(),
            simds,
        };
        if !counters.contains(&counter) {
            counters.push(counter);
        }
    }
    if counters.len() > ThreadTraceOptions::COUNTERS {
        return Err(format!(
            "{} counters are too many: a trace has room for {}",
            counters.len(),
            ThreadTraceOptions::COUNTERS
        ));
    }
    // Those of the sequencers' block, its caches (`SQC_`) included.
    match counters
        .iter()
        .find(|counter| !counter.name.starts_with("SQ"))
    {
        Some(counter) => Err(format!(
            "{} cannot be in a trace: it is not a counter of the sequencers (SQ_...)",
            counter.name
        )),
        None => Ok(counters),
    }
}

/// Says where rpd's own decoder is as a library, if it is installed as one.
fn own_decoder() -> String {
    let names = ["librocprof-trace-decoder.so", "librpd_att.so"];
    match names.iter().find_map(|name| libraries::own(name).ok()) {
        Some(path) => format!(", which is the library {}", path.display()),
        None => String::new(),
    }
}

/// The decoder library in the directories that were given.
fn library(
    option: &Setting<Vec<String>>,
    environment: &Environment,
) -> Result<Option<PathBuf>, Failure> {
    if !option.is_given() {
        return Ok(None);
    }
    // The variable is a list joined by colons.
    let split = match option.variable() {
        Some(_) => ':',
        None => '\0',
    };
    let directories: Vec<PathBuf> = (option.list())
        .iter()
        .flat_map(|word| word.split(split))
        .filter(|word| !word.is_empty())
        .map(|word| environment.cwd.join(word))
        .collect();
    find_library(&directories).map(Some).map_err(|_| {
        let directories: Vec<String> = (directories.iter())
            .map(|directory| directory.display().to_string())
            .collect();
        option.refused(format_args!(
            "rocprof-trace-decoder library path not found: there is no librocprof-trace-decoder.so in {} or below; without \
             this option rpd's own decoder is used{}",
            directories.join(", "),
            own_decoder()
        ))
    })
}

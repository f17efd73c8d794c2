//! Options of thread traces.

use std::path::PathBuf;

use rpd_att::find_library;
use rpd_core::options::{ThreadTraceOptions, TracedCounter};

use super::given::OptionValues;
use super::resolve::Environment;
use super::table::{Group, OPTIONS};
use crate::failure::Failure;
use crate::process::libraries;

pub(super) const THREAD_TRACE: &str = "advanced-thread-trace";
const LIBRARY: &str = "att-library-path";
const TARGET_CU: &str = "att-target-cu";
const SIMDS: &str = "att-simd-select";
const BUFFER: &str = "att-buffer-size";
const ENGINES: &str = "att-shader-engine-mask";
const GPUS: &str = "att-gpu-index";
const COUNTERS: &str = "att-perfcounters";
const PERIOD: &str = "att-perfcounter-ctrl";
const ACTIVITY: &str = "att-activity";
const SERIALIZE: &str = "att-serialize-all";
const CONSECUTIVE: &str = "att-consecutive-kernels";
const NO_DETAIL: &str = "att-no-detail";
const TARGET_COUNTERS: &str = "att-perfcounter-target-only";
const NO_INTERCEPT: &str = "att-no-intercept";
const RESOURCE_MODE: &str = "att-resource-mode";

/// Options that select dispatches, or the times at which a trace of a whole GPU begins and ends.
const SELECTION: [&str; 5] = [
    "kernel-include-regex",
    "kernel-exclude-regex",
    "kernel-iteration-range",
    "selected-regions",
    "selected-regions-ref-count",
];

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
pub(super) fn is_requested(given: &OptionValues) -> bool {
    [THREAD_TRACE, NO_INTERCEPT]
        .into_iter()
        .any(|long| given.bool(long) == Some(true))
}

/// Resolves the options. `counts`: hardware counters are collected in the same pass.
///
/// # Errors
/// A value that cannot be used, or options that exclude each other.
pub(super) fn resolve(
    given: &OptionValues,
    environment: &Environment,
    counts: bool,
) -> Result<Resolved, Failure> {
    if !is_requested(given) {
        return without(given);
    }
    let number = |long: &str, range: std::ops::RangeInclusive<u64>| number(given, long, range);
    let usual = ThreadTraceOptions::default();
    let (counters, counter_period) = counters(given, counts)?;
    let consecutive = number(CONSECUTIVE, 0..=u64::MAX)?.unwrap_or(0);
    for regions in ["selected-regions", "selected-regions-ref-count"] {
        if consecutive > 0 && given.bool(regions) == Some(true) {
            return Err(Failure::failed(format!(
                "{} and {} are mutually exclusive: a trace is of a region or of consecutive kernels",
                given.name(regions),
                given.name(CONSECUTIVE)
            )));
        }
    }
    let no_intercept = given.bool(NO_INTERCEPT) == Some(true);
    if consecutive > 0 && no_intercept {
        return Err(Failure::failed(format!(
            "{} and {} are mutually exclusive: a trace is of the whole run or of consecutive kernels",
            given.name(NO_INTERCEPT),
            given.name(CONSECUTIVE)
        )));
    }
    if given.text(RESOURCE_MODE) == Some("code-object") {
        return Err(given.refused(
            RESOURCE_MODE,
            "code-object is a mode of newer tools: queues and buffers of traces are allocated when the HSA runtime starts; leave \
             the option out, or give hsa",
        ));
    }
    let selects = |long: &&str| given.requests(long) && given.text(long) != Some("");
    let warning = match SELECTION.into_iter().find(selects).filter(|_| no_intercept) {
        Some(long) if long.starts_with("selected") => Some(format!(
            "{}: no effect, since traces of regions are of whole GPUs in any case",
            given.name(NO_INTERCEPT)
        )),
        Some(long) => Some(format!(
            "{}: no effect, since {} traces all kernels",
            given.name(long),
            given.name(NO_INTERCEPT)
        )),
        None => None,
    };
    let options = ThreadTraceOptions {
        target_cu: number(TARGET_CU, 0..=15)?.map_or(usual.target_cu, |cu| cu as u8),
        simds: number(SIMDS, 0..=15)?.map_or(usual.simds, |simds| simds as u8),
        engines: number(ENGINES, 1..=u32::MAX.into())?.map_or(usual.engines, |mask| mask as u32),
        buffer: number(BUFFER, ThreadTraceOptions::BUFFERS)?.unwrap_or(usual.buffer),
        gpus: gpus(given)?,
        counters,
        counter_period,
        serialize_all: given.bool(SERIALIZE) == Some(true),
        consecutive,
        no_detail: given.bool(NO_DETAIL) == Some(true),
        target_counters: given.bool(TARGET_COUNTERS) == Some(true),
        no_intercept,
    };
    let share = options.bytes_per_engine();
    if share < ThreadTraceOptions::LEAST_PER_ENGINE {
        let traced = options.engines.count_ones();
        let needed = u64::from(traced) * ThreadTraceOptions::LEAST_PER_ENGINE + (64 << 12);
        return Err(given.refused(
            BUFFER,
            format!(
                "{} bytes leave {share} for each of {traced} shader engines, which need {} each: give at least {needed}, or \
                 select fewer with --{ENGINES}",
                options.buffer,
                ThreadTraceOptions::LEAST_PER_ENGINE
            ),
        ));
    }
    Ok(Resolved {
        collector: Some(options),
        library: library(given, environment)?,
        warning,
    })
}

/// Without `--att`, its options have no effect.
fn without(given: &OptionValues) -> Result<Resolved, Failure> {
    // Numbers are read all the same: a mistake in them is one.
    for long in [
        TARGET_CU,
        SIMDS,
        BUFFER,
        ENGINES,
        PERIOD,
        ACTIVITY,
        CONSECUTIVE,
    ] {
        number(given, long, 0..=u64::MAX)?;
    }
    let mut options = OPTIONS
        .iter()
        .filter(|spec| spec.group == Group::ThreadTrace);
    let useless =
        options.find(|spec| given.requests(spec.long) && given.variable(spec.long).is_none());
    Ok(Resolved {
        warning: useless.map(|spec| format!("{}: no effect without --att", given.name(spec.long))),
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
    given: &OptionValues,
    long: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<u64>, Failure> {
    let Some(text) = given.text(long) else {
        return Ok(None);
    };
    let Some(value) = parse(text.trim()) else {
        return Err(given.refused(
            long,
            format!("'{text}' is neither a decimal number nor a hexadecimal one such as 0x1f"),
        ));
    };
    if !range.contains(&value) {
        return Err(given.refused(
            long,
            format!("{text} is not in {} to {}", range.start(), range.end()),
        ));
    }
    Ok(Some(value))
}

fn gpus(given: &OptionValues) -> Result<Vec<u32>, Failure> {
    let words = given.list(GPUS).unwrap_or_default();
    let mut gpus = Vec::new();
    for word in words.iter().flat_map(|word| word.split(',')) {
        let word = word.trim();
        if word.is_empty() {
            continue;
        }
        let Ok(gpu) = word.parse() else {
            return Err(given.refused(
                GPUS,
                format!("'{word}' is not the number of a GPU, such as 0"),
            ));
        };
        if !gpus.contains(&gpu) {
            gpus.push(gpu);
        }
    }
    Ok(gpus)
}

/// Counters in the trace, and the period of their samples.
fn counters(given: &OptionValues, counts: bool) -> Result<(Vec<TracedCounter>, u8), Failure> {
    let listed = given.text(COUNTERS).filter(|text| !text.trim().is_empty());
    let period = number(given, PERIOD, 0..=32)?.filter(|period| *period > 0);
    let activity = number(given, ACTIVITY, 1..=16)?;
    for (long, asked) in [
        (COUNTERS, listed.is_some()),
        (PERIOD, period.is_some()),
        (ACTIVITY, activity.is_some()),
    ] {
        if counts && asked {
            return Err(given.refused(
                long,
                "cannot be enabled with PMC: --pmc uses the same hardware counters; take two runs",
            ));
        }
    }
    if let Some(activity) = activity {
        for (long, asked) in [(COUNTERS, listed.is_some()), (PERIOD, period.is_some())] {
            if asked {
                return Err(given.refused(
                    ACTIVITY,
                    format!(
                        "stands for counters and their period: leave out {}",
                        given.name(long)
                    ),
                ));
            }
        }
        let counter = |name: &&str| TracedCounter {
            name: (*name).to_owned(),
            simds: TracedCounter::ALL_SIMDS,
        };
        return Ok((
            ACTIVITY_COUNTERS.iter().map(counter).collect(),
            activity as u8,
        ));
    }
    let (listed, period) = match (listed, period) {
        (None, None) => return Ok((Vec::new(), 0)),
        (Some(listed), Some(period)) => (listed, period as u8),
        (Some(_), None) => {
            return Err(given.refused(
                COUNTERS,
                format!(
                    "counters in the trace need a period: add --{PERIOD} (1, the finest, to 32)"
                ),
            ));
        }
        (None, Some(_)) => {
            return Err(given.refused(
                PERIOD,
                format!("a period needs counters in the trace: add --{COUNTERS} 'NAME ...'"),
            ));
        }
    };
    let mut counters: Vec<TracedCounter> = Vec::new();
    let uncommented = listed
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let items = uncommented.flat_map(|line| line.split([' ', '\t', ',']));
    for item in items.filter(|item| !item.is_empty()) {
        let (name, mask) = item.split_once(':').unwrap_or((item, "f"));
        let digits = mask.trim_start_matches("0x").trim_start_matches("0X");
        let simds = u8::from_str_radix(digits, 16)
            .ok()
            .filter(|mask| *mask <= TracedCounter::ALL_SIMDS);
        let Some(simds) = simds else {
            return Err(given.refused(
                COUNTERS,
                format!("'{item}': the mask of SIMDs is hexadecimal, from 0x1 to 0xf"),
            ));
        };
        let is_name = !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(given.refused(COUNTERS, format!("'{name}' is not the name of a counter")));
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
        return Err(given.refused(
            COUNTERS,
            format!(
                "{} counters are too many: a trace has room for {}",
                counters.len(),
                ThreadTraceOptions::COUNTERS
            ),
        ));
    }
    // Those of the sequencers' block, its caches (`SQC_`) included.
    let other = counters
        .iter()
        .find(|counter| !counter.name.starts_with("SQ"));
    if let Some(counter) = other {
        return Err(given.refused(
            COUNTERS,
            format!(
                "{} cannot be in a trace: it is not a counter of the sequencers (SQ_...)",
                counter.name
            ),
        ));
    }
    Ok((counters, period))
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
fn library(given: &OptionValues, environment: &Environment) -> Result<Option<PathBuf>, Failure> {
    let Some(words) = given.list(LIBRARY) else {
        return Ok(None);
    };
    // The variable is a list joined by colons.
    let split = match given.variable(LIBRARY) {
        Some(_) => ':',
        None => '\0',
    };
    let folders: Vec<PathBuf> = words
        .iter()
        .flat_map(|word| word.split(split))
        .filter(|word| !word.is_empty())
        .map(|word| environment.cwd.join(word))
        .collect();
    find_library(&folders).map(Some).map_err(|_| {
        let folders: Vec<String> = (folders.iter())
            .map(|folder| folder.display().to_string())
            .collect();
        given.refused(
            LIBRARY,
            format!(
                "rocprof-trace-decoder library path not found: there is no librocprof-trace-decoder.so in {} or below; without \
                 this option rpd's own decoder is used{}",
                folders.join(", "),
                own_decoder()
            ),
        )
    })
}

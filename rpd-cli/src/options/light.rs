//! Light recordings: kernels and copies of programs that run for long.

use rpd_core::options::{CounterOptions, ProviderChoice, Traces};
use rpd_spool::stacks::StackMode;
use rpd_spool::writer::SMALLEST_BOUND;

use super::given::OptionValues;
use super::size::size;
use crate::failure::Failure;

const LIGHT: &str = "light";
const KEEP: &str = "light-keep";

/// Bytes that are kept for each process, unless others are requested.
const USUAL: u64 = 64 << 20;

/// Options that request what a light recording does not have. Aggregates first: a message names the first.
pub(super) const REFUSED: [&str; 22] = [
    "sys-trace",
    "runtime-trace",
    "hip-trace",
    "hsa-trace",
    "kokkos-trace",
    "marker-trace",
    "memory-allocation-trace",
    "scratch-memory-trace",
    "rccl-trace",
    "rocdecode-trace",
    "rocjpeg-trace",
    "hip-runtime-trace",
    "hip-compiler-trace",
    "hsa-core-trace",
    "hsa-amd-trace",
    "hsa-image-trace",
    "hsa-finalizer-trace",
    "annotate-args",
    "kernel-rename",
    "pc-sampling-beta-enabled",
    "advanced-thread-trace",
    "extra-counters",
];

/// The failure of an option that requests what a light recording does not have.
pub(super) fn refused(given: &OptionValues, long: &str) -> Failure {
    given.refused(
        long,
        format_args!(
            "a light recording has kernel dispatches and copies only: leave out this or {}",
            given.name(LIGHT)
        ),
    )
}

/// Bytes that a light recording keeps for each process; `None` when the recording is not a light one.
///
/// # Errors
/// Another option requests what a light recording does not have.
pub(super) fn resolve(
    given: &OptionValues,
    traces: &Traces,
    counters: &CounterOptions,
    stacks: StackMode,
) -> Result<Option<u64>, Failure> {
    if given.bool(LIGHT) != Some(true) {
        return Ok(None);
    }
    let refused = |long: &str| refused(given, long);
    if let Some(long) = REFUSED.iter().find(|long| given.requests(long)) {
        return Err(refused(long));
    }
    if counters.any() {
        let long = ["pmc", "pmc-groups"]
            .into_iter()
            .find(|long| given.requests(long));
        return Err(refused(long.unwrap_or("pmc")));
    }
    if stacks != StackMode::Off {
        return Err(refused("stacks"));
    }
    if given.text("provider").and_then(ProviderChoice::of_word) == Some(ProviderChoice::Sdk) {
        return Err(given.refused(
            "provider",
            format_args!(
                "`sdk` has the cost that {} avoids: leave it out, or record with --kernel-trace --memory-copy-trace",
                given.name(LIGHT)
            ),
        ));
    }
    if !traces.any() {
        return Err(given.refused(
            LIGHT,
            "both --kernel-trace and --memory-copy-trace are off: leave one of them on",
        ));
    }
    let Some(text) = given.text(KEEP) else {
        return Ok(Some(USUAL));
    };
    let bytes =
        size(text).map_err(|message| given.misused(KEEP, format_args!("{text}: {message}")))?;
    if bytes < SMALLEST_BOUND {
        return Err(given.misused(
            KEEP,
            format_args!("{text}: at least {}K is needed", SMALLEST_BOUND >> 10),
        ));
    }
    Ok(Some(bytes))
}

/// A warning about an option that has no effect without `--light`.
pub(super) fn without_effect(given: &OptionValues) -> Option<String> {
    (given.requests(KEEP) && given.bool(LIGHT) != Some(true))
        .then(|| format!("{}: no effect without --{LIGHT}", given.name(KEEP)))
}

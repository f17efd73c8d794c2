//! Options of PC sampling.

use rpd_core::compat::Difference;
use rpd_core::options::{SamplingMethod, SamplingOptions, SamplingUnit};

use super::given::OptionValues;
use super::resolve::Environment;
use crate::failure::Failure;
use crate::process::environment::BETA_VARIABLE;

pub(super) const BETA: &str = "pc-sampling-beta-enabled";
const UNIT: &str = "pc-sampling-unit";
const METHOD: &str = "pc-sampling-method";
const INTERVAL: &str = "pc-sampling-interval";

const ALLOWED: &str = "(rpd avail info --pc-sampling lists what each GPU allows)";

/// Resolves the sampling options; `None` without options that request sampling. The switch alone requests nothing.
pub(super) fn resolve(
    given: &OptionValues,
    environment: &Environment,
) -> Result<Option<SamplingOptions>, Failure> {
    let unit = given.text(UNIT).filter(|word| !word.is_empty());
    let method = given.text(METHOD).filter(|word| !word.is_empty());
    let interval = given.integer(INTERVAL).filter(|interval| *interval != 0);
    let is_typed_zero = given.integer(INTERVAL) == Some(0) && !given.origins.contains_key(INTERVAL);
    if unit.is_none() && method.is_none() && interval.is_none() && !is_typed_zero {
        return Ok(None);
    }
    if given.bool(BETA) != Some(true) && !environment.variables.contains_key(BETA_VARIABLE) {
        let line = match environment.compat.has(Difference::Diagnostics) {
            // Scripts look for these words.
            true => format!(
                "PC sampling unavailable. The feature is implicitly disabled. To enable it, use --pc-sampling-beta-enable option \
                 or set {BETA_VARIABLE}=ON in the environment"
            ),
            false => format!(
                "PC sampling is implicitly disabled, since it is a beta feature: add --{BETA} (or set {BETA_VARIABLE}=1)"
            ),
        };
        return Err(Failure::failed(line));
    }
    if is_typed_zero {
        return Err(Failure::failed(format!(
            "All three options of PC sampling are needed: --{INTERVAL} is 0 and has to be at least 1 {ALLOWED}"
        )));
    }
    let (Some(unit), Some(method), Some(interval)) = (unit, method, interval) else {
        let given = [
            (UNIT, unit.is_some()),
            (METHOD, method.is_some()),
            (INTERVAL, interval.is_some()),
        ];
        let missing: Vec<String> = given
            .iter()
            .filter(|(_, is_given)| !is_given)
            .map(|(long, _)| format!("--{long}"))
            .collect();
        return Err(Failure::failed(format!(
            "All three options of PC sampling are needed: {} missing {ALLOWED}",
            match missing.as_slice() {
                [only] => format!("{only} is"),
                several => format!("{} are", several.join(" and ")),
            }
        )));
    };
    let interval = u64::try_from(interval)
        .map_err(|_| given.refused(INTERVAL, format!("{interval} is not a positive number")))?;
    let refused = |long: &str, word: &str, words: &[&str]| {
        given.refused(long, format!("'{word}' is none of {}", words.join(", ")))
    };
    let method = SamplingMethod::from_word(method).ok_or_else(|| {
        refused(
            METHOD,
            method,
            &SamplingMethod::ALL.map(SamplingMethod::word),
        )
    })?;
    let unit = SamplingUnit::from_word(unit)
        .ok_or_else(|| refused(UNIT, unit, &SamplingUnit::ALL.map(SamplingUnit::word)))?;
    Ok(Some(SamplingOptions {
        method,
        unit,
        interval,
    }))
}

/// Refuses sampling and counting in one run. The original has both, on contexts of their own.
pub(super) fn check_counters(
    sampling: Option<SamplingOptions>,
    counting: bool,
    environment: &Environment,
) -> Result<(), Failure> {
    if sampling.is_none() || !counting || environment.compat.has(Difference::CountersWithSamples) {
        return Ok(());
    }
    Err(Failure::failed(
        "counters and PC sampling exclude each other in one run: counting changes the clocks of the GPU that samples need \
         (the SDK refuses both in one context, status 12). Take two runs, one with --pmc and one with --pc-sampling-method, \
         --pc-sampling-unit and --pc-sampling-interval, or two jobs of an input file (-i)",
    ))
}

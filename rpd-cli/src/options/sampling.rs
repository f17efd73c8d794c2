//! Options of PC sampling.

use rpd_core::compat::Difference;
use rpd_core::options::SamplingOptions;

use super::resolve::Environment;
use super::table::Given;
use crate::failure::Failure;
use crate::process::environment::BETA_VARIABLE;

const ALLOWED: &str = "(rpd avail info --pc-sampling lists what each GPU allows)";

/// Resolves the sampling options; `None` without options that request sampling. The switch alone requests nothing.
pub(super) fn resolve(
    given: &Given,
    environment: &Environment,
) -> Result<Option<SamplingOptions>, Failure> {
    let (beta, number) = (&given.pc_sampling_beta_enabled, &given.pc_sampling_interval);
    let (unit, method) = (
        given.pc_sampling_unit.value(),
        given.pc_sampling_method.value(),
    );
    let interval = number.value().filter(|interval| *interval != 0);
    let is_typed_zero = number.value() == Some(0) && number.is_on_command_line();
    if unit.is_none() && method.is_none() && interval.is_none() && !is_typed_zero {
        return Ok(None);
    }
    if !beta.is_on() && !environment.variables.contains_key(BETA_VARIABLE) {
        // Scripts look for the words of the original.
        let line = if environment.compat.has(Difference::Diagnostics) {
            format!(
                "PC sampling unavailable. The feature is implicitly disabled. To enable it, use --pc-sampling-beta-enable option \
                 or set {BETA_VARIABLE}=ON in the environment"
            )
        } else {
            format!(
                "PC sampling is implicitly disabled, since it is a beta feature: add {} (or set {BETA_VARIABLE}=1)",
                beta.flag()
            )
        };
        return Err(Failure::failed(line));
    }
    if is_typed_zero {
        return Err(Failure::failed(format!(
            "All three options of PC sampling are needed: {} is 0 and has to be at least 1 {ALLOWED}",
            number.flag()
        )));
    }
    let (Some(unit), Some(method), Some(interval)) = (unit, method, interval) else {
        let given = [
            (given.pc_sampling_unit.flag(), unit.is_some()),
            (given.pc_sampling_method.flag(), method.is_some()),
            (number.flag(), interval.is_some()),
        ];
        let missing: Vec<String> = given
            .into_iter()
            .filter(|(_, is_given)| !is_given)
            .map(|(flag, _)| flag)
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
        .map_err(|_| number.refused(format_args!("{interval} is not a positive number")))?;
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

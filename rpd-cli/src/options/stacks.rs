//! Call stacks: of which calls, what is in them, and what is shown.

use rpd_core::compat::Difference;
use rpd_core::options::{StackOutput, Traces};
use rpd_core::session::stacks::ShownFrames;
use rpd_spool::stacks::{DEFAULT_APIS, StackMode, StackOptions, is_glob};

use super::given::{Named, Setting};
use super::resolve::Environment;
use super::table::Given;
use super::value::variable_truth;
use crate::failure::Failure;

/// The variable of rocmProfileData that requests native stacks.
const COMPATIBLE: &str = "RPDT_STACKFRAMES";

/// Options that have no effect without stacks.
fn details(given: &Given) -> [&Named; 8] {
    [
        &given.stacks_apis,
        &given.stacks_depth,
        &given.stacks_every,
        &given.stacks_min_duration,
        &given.stacks_symbolize,
        &given.stacks_symbolize_limit,
        &given.stacks_runtime_frames,
        &given.stacks_interpreter_frames,
    ]
}

/// The resolved options of call stacks, and warnings about them.
pub(super) struct Resolved {
    pub(super) collector: StackOptions,
    pub(super) output: StackOutput,
    pub(super) warnings: Vec<String>,
}

/// Resolves the options. `listing`: nothing is going to be recorded.
///
/// # Errors
/// A value that its option cannot have.
pub(super) fn resolve(
    given: &Given,
    environment: &Environment,
    traces: &Traces,
    listing: bool,
) -> Result<Resolved, Failure> {
    let compatible = !given.stacks.is_given()
        && !environment.compat.has(Difference::StackVariables)
        && environment.get(COMPATIBLE).is_some_and(variable_truth);
    let mode = match given.stacks.value() {
        Some(mode) => mode,
        None if compatible => StackMode::Native,
        None => StackMode::Off,
    };
    let usual = StackOptions::default();
    let collector = StackOptions {
        mode,
        apis: apis(&given.stacks_apis)?.unwrap_or(usual.apis),
        depth: number(&given.stacks_depth, 0)?.unwrap_or(usual.depth),
        every: number(&given.stacks_every, 1)?.unwrap_or(usual.every),
        min_duration: time(&given.stacks_min_duration)?.unwrap_or(usual.min_duration),
    };
    let output = StackOutput {
        symbolize: given.stacks_symbolize.value().unwrap_or_default(),
        symbolize_limit: time(&given.stacks_symbolize_limit)?
            .unwrap_or(StackOutput::default().symbolize_limit),
        shown: ShownFrames {
            runtime: given.stacks_runtime_frames.value().unwrap_or(compatible),
            interpreter: given.stacks_interpreter_frames.is_on(),
        },
    };
    let mut warnings = Vec::new();
    if mode == StackMode::Off {
        // Variables are set once for many runs, with stacks and without.
        let mut said = (details(given).into_iter())
            .filter(|option| option.is_requested() && option.variable().is_none());
        if let Some(option) = said.next() {
            warnings.push(format!(
                "{}: no effect without {}",
                option.name(),
                given.stacks.flag()
            ));
        }
    } else if !listing && !has_calls(traces, &collector.apis) {
        let name = if compatible {
            format!("{COMPATIBLE} (set in the environment)")
        } else {
            given.stacks.name()
        };
        warnings.push(format!(
            "{name}: no effect, since none of the calls that have stacks is traced (try --hip-trace)"
        ));
    }
    Ok(Resolved {
        collector,
        output,
        warnings,
    })
}

/// Whether something is traced that may have stacks.
fn has_calls(traces: &Traces, apis: &[String]) -> bool {
    let usual = traces.hip_runtime || traces.hip_compiler || traces.cuda || traces.cuda_driver;
    if apis == DEFAULT_APIS {
        return usual;
    }
    usual
        || traces.hsa_core
        || traces.hsa_amd
        || traces.hsa_image
        || traces.hsa_finalizer
        || traces.marker
        || traces.memory_allocation
        || traces.rccl
        || traces.rocdecode
        || traces.rocjpeg
}

fn apis(option: &Setting<Vec<String>>) -> Result<Option<Vec<String>>, Failure> {
    if !option.is_given() {
        return Ok(None);
    }
    let split = option.list().iter().flat_map(|word| word.split(','));
    let globs: Vec<String> = split
        .map(str::trim)
        .filter(|glob| !glob.is_empty())
        .map(str::to_owned)
        .collect();
    if let Some(bad) = globs.iter().find(|glob| !is_glob(glob)) {
        return Err(option.misused(format_args!(
            "'{bad}' is not the name of a function with * and ? in it, nor one after a !"
        )));
    }
    if globs.is_empty() {
        return Err(option.misused("names no function; leave it out for HIP calls"));
    }
    Ok(Some(globs))
}

/// A number that variables may have given without its bounds being looked at.
fn number(option: &Setting<i64>, least: u32) -> Result<Option<u32>, Failure> {
    let Some(value) = option.value() else {
        return Ok(None);
    };
    match u32::try_from(value) {
        Ok(number) if number >= least => Ok(Some(number)),
        _ => Err(option.misused(format_args!(
            "{value} is not between {least} and {}",
            u32::MAX
        ))),
    }
}

/// A time with its unit, in nanoseconds.
fn time(option: &Setting<String>) -> Result<Option<u64>, Failure> {
    let read = |text| duration(text).map_err(|message| option.misused(message));
    option.text().map(read).transpose()
}

/// Reads a time with its unit, in nanoseconds.
pub(super) fn duration(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(format!("'{text}' is not a time such as 50us"));
    }
    let factor: u32 = match unit.trim() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "" if number == "0" => 1,
        "" => return Err(format!("'{text}' has no unit: ns, us, ms or s")),
        other => return Err(format!("'{text}': '{other}' is none of ns, us, ms and s")),
    };
    let value: f64 = number
        .parse()
        .map_err(|_| format!("'{text}' is not a time such as 50us"))?;
    let nanoseconds = value * f64::from(factor);
    // No clock reaches 2^63 ns.
    if !(0.0..9.2e18).contains(&nanoseconds) {
        return Err(format!("'{text}' is too long"));
    }
    Ok(nanoseconds as u64)
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_without_a_known_unit_are_refused() {
        for (text, expected) in [
            ("50us", 50_000),
            ("1.5ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("700 ns", 700),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Ok(expected), "{text}");
        }
        for text in [
            "50",
            "us",
            "-1us",
            "1h",
            "1e3us",
            "",
            "1..2us",
            "99999999999s",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(
            duration("50"),
            Err("'50' has no unit: ns, us, ms or s".to_owned())
        );
    }
}

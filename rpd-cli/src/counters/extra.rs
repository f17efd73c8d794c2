//! Checks the user's counter definitions before the provider reads them: the provider's errors have neither line nor
//! column, and some unsupported expressions make SDK 1.0 end the program.

use std::collections::BTreeSet;

use rpd_metric::Definitions;
use rpd_metric::definitions::{Form, Source};

use super::provider_counters::ProviderCounters;
use crate::failure::Failure;

/// Definitions that passed the checks.
pub(crate) struct Checked {
    /// The definitions in the form of SDK 1.0; the older form is converted.
    pub(crate) text: String,
    /// Warnings to print.
    pub(crate) warnings: Vec<String>,
}

fn parse(text: &str) -> Result<Definitions, Failure> {
    Definitions::parse(text).map_err(|error| Failure::failed(format!("--extra-counters: {error}")))
}

/// Parses and checks definitions.
///
/// # Errors
/// Syntax errors, circular and unbounded definitions, and expressions that make SDK 1.0 end the program.
pub(crate) fn check(text: String) -> Result<Checked, Failure> {
    let definitions = parse(&text)?;
    let mut warnings = Vec::new();
    for counter in &definitions.counters {
        for definition in &counter.definitions {
            let Source::Expression(expression) = &definition.source else {
                continue;
            };
            let (name, formula) = (&counter.name, expression.text());
            if !expression.ranges().is_empty() {
                return Err(Failure::failed(format!(
                    "--extra-counters: {name} selects a range in {formula}, at which SDK 1.0 ends the program; \
                     write the indices one by one: [0,1,2] for [0:2]"
                )));
            }
            if !expression.fractions().is_empty() {
                warnings.push(format!(
                    "--extra-counters: {name}: SDK 1.0 reads numbers up to the point (0.5 is 0 to it); write {formula} with \
                     fractions of whole numbers: 1/2"
                ));
            }
        }
    }
    definitions
        .check_expansion()
        .map_err(|error| Failure::failed(format!("--extra-counters: {error}")))?;
    let text = match definitions.form {
        Form::List => text,
        Form::Map => definitions.to_yaml(),
    };
    Ok(Checked { text, warnings })
}

/// A clearer error for definitions that the provider refused: names the first counter that is neither defined nor among
/// the provider's counters without the definitions (`without`). Otherwise `failure`, the provider's own error.
pub(crate) fn explain_refusal(
    failure: Failure,
    text: &str,
    without: impl FnOnce() -> Result<ProviderCounters, Failure>,
) -> Failure {
    if text.is_empty() {
        return failure;
    }
    // The provider refuses definitions without naming the part that it does not know.
    let unknown = || -> Result<Option<String>, Failure> {
        let definitions = parse(text)?;
        let provider = without()?;
        for (index, gpu) in provider.gpus.iter().enumerate() {
            let own: BTreeSet<&str> = definitions
                .on(&gpu.agent.name)
                .map(|(counter, _)| counter.name.as_str())
                .collect();
            for (counter, definition) in definitions.on(&gpu.agent.name) {
                let Source::Expression(expression) = &definition.source else {
                    continue;
                };
                for name in expression.names() {
                    if own.contains(name) || gpu.counter(name).is_some() {
                        continue;
                    }
                    let near = match provider.similar_names(&[index], name).as_slice() {
                        [] => String::new(),
                        near => format!(" (did you mean {}?)", near.join(", ")),
                    };
                    return Ok(Some(format!(
                        "--extra-counters: {}: {name} is not a counter of {}{near}",
                        counter.name,
                        gpu.agent.label()
                    )));
                }
            }
        }
        Ok(None)
    };
    match unknown() {
        Ok(Some(message)) => Failure::failed(message),
        _ => failure,
    }
}

/// Checks that no definition reuses the name of one of the provider's own counters: the provider, which has loaded the
/// definitions by now, would keep its own counter or fail.
///
/// # Errors
/// A name is in use.
pub(super) fn check_names(text: &str, provider: &ProviderCounters) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let definitions = parse(text)?;
    for gpu in &provider.gpus {
        for (counter, definition) in definitions.on(&gpu.agent.name) {
            let Some(known) = gpu.counter(&counter.name) else {
                continue;
            };
            let same = match &definition.source {
                Source::Event { block, .. } => known.block == *block,
                Source::Expression(expression) => {
                    without_blanks(expression.text()) == without_blanks(&known.expression)
                }
            };
            if !same {
                return Err(Failure::failed(format!(
                    "--extra-counters: {} is a counter of {} already; give the new one another name",
                    counter.name,
                    gpu.agent.label()
                )));
            }
        }
    }
    Ok(())
}

/// The expression without blanks: providers do not keep the blanks of a definition.
fn without_blanks(expression: &str) -> String {
    expression.split_whitespace().collect()
}

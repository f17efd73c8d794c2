//! Counter definitions of the user's, read before the provider sees them: its errors have neither line nor column, and
//! some of what it cannot do ends the program.

use rpd_metric::Definitions;
use rpd_metric::definitions::{Form, Source};

use super::census::Census;
use crate::failure::Failure;

/// Definitions that a provider can be given.
pub(crate) struct Checked {
    /// In the form that it reads; that of before SDK 1.0 is turned into it.
    pub(crate) text: String,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

fn parse(text: &str) -> Result<Definitions, Failure> {
    Definitions::parse(text).map_err(|error| Failure::failed(format!("--extra-counters: {error}")))
}

/// Reads definitions.
///
/// # Errors
/// What is wrong with them, and what SDK 1.0 does not survive.
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
    let text = match definitions.form {
        Form::List => text,
        Form::Map => definitions.to_yaml(),
    };
    Ok(Checked { text, warnings })
}

/// Whether all names are new to the provider, which has the definitions by now. Where one was taken it keeps its own, or
/// gives up altogether.
///
/// # Errors
/// The name that is taken.
pub(super) fn check_names(text: &str, census: &Census) -> Result<(), Failure> {
    if text.is_empty() {
        return Ok(());
    }
    let definitions = parse(text)?;
    for gpu in &census.gpus {
        for (counter, definition) in definitions.on(&gpu.agent.name) {
            let Some(known) = gpu.counter(&counter.name) else {
                continue;
            };
            let same = match &definition.source {
                Source::Event { block, .. } => known.block == *block,
                Source::Expression(expression) => {
                    squeezed(expression.text()) == squeezed(&known.expression)
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

/// Without blanks, which providers treat as they like.
fn squeezed(expression: &str) -> String {
    expression.split_whitespace().collect()
}

//! Counter definitions of the user's, read before the provider sees them: its errors have neither line nor column, and
//! some of what it cannot do ends the program.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rpd_metric::Definitions;
use rpd_metric::definitions::{Form, Source};
use rpd_spool::regular_file::{self, FileError};

use super::census::Census;
use crate::failure::Failure;

/// Bytes of the largest file of definitions. Those of all GPUs that ROCm knows take half a megabyte.
const LARGEST: u64 = 4 << 20;

/// The text of a file of definitions.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    regular_file::read_text(path, LARGEST)
}

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
    if let Some(circle) = circle(&definitions) {
        return Err(Failure::failed(format!(
            "--extra-counters: {} is made of itself: {}",
            circle[0],
            circle.join(", of ")
        )));
    }
    let text = match definitions.form {
        Form::List => text,
        Form::Map => definitions.to_yaml(),
    };
    Ok(Checked { text, warnings })
}

/// Names of which each is computed from the next, the last from the first, which is repeated.
fn circle(definitions: &Definitions) -> Option<Vec<&str>> {
    let all = definitions.counters.iter();
    let architectures: BTreeSet<&str> = all
        .flat_map(|counter| &counter.definitions)
        .flat_map(|definition| &definition.architectures)
        .map(String::as_str)
        .collect();
    architectures.into_iter().find_map(|architecture| {
        let mut parts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (counter, definition) in definitions.on(architecture) {
            if let Source::Expression(expression) = &definition.source {
                parts.insert(&counter.name, expression.names());
            }
        }
        // What is computed from counters of others alone is out of it, then what is computed from that.
        loop {
            let before = parts.len();
            let names: BTreeSet<&str> = parts.keys().copied().collect();
            parts.retain(|_, parts| {
                parts.retain(|name| names.contains(name));
                !parts.is_empty()
            });
            if parts.len() == before {
                break;
            }
        }
        // The rest leads on for ever, so that a name comes again.
        let mut way = vec![*parts.keys().next()?];
        loop {
            let next = *parts.get(way.last()?)?.first()?;
            let known = way.iter().position(|name| *name == next);
            way.push(next);
            if let Some(known) = known {
                return Some(way.split_off(known));
            }
        }
    })
}

/// The reason why a provider may have refused definitions, in words of ours: a name that nobody defines, told by what the
/// provider has without them. Otherwise the provider's own.
pub(crate) fn refused(
    failure: Failure,
    text: &str,
    without: impl FnOnce() -> Result<Census, Failure>,
) -> Failure {
    if text.is_empty() {
        return failure;
    }
    let unknown = || -> Result<Option<String>, Failure> {
        let definitions = parse(text)?;
        let census = without()?;
        for (index, gpu) in census.gpus.iter().enumerate() {
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
                    let near = match census.near(&[index], name).as_slice() {
                        [] => String::new(),
                        near => format!(" (did you mean {}?)", near.join(", ")),
                    };
                    return Ok(Some(format!(
                        "--extra-counters: {}: {name} is no counter of {}{near}",
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

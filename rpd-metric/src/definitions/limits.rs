//! Limits of a definition file, which are checked before its tree is built: the time for that grows with the square of how deep
//! lists and mappings are nested.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser};

use super::DefinitionError;

/// Deepest nesting of lists and mappings; valid files have six levels.
pub(super) const DEEPEST: usize = 64;
/// Most keys, values, lists and mappings, those repeated by aliases included: ten times as many as ROCm's definitions
/// for all GPUs have.
pub(super) const MOST_NODES: usize = 1_000_000;

const TOO_DEEP: &str = "lists and mappings are nested too deeply";

/// Checks a text against the limits.
///
/// # Errors
/// The first node beyond a limit, or the first error of syntax.
pub(super) fn check(text: &str) -> Result<(), DefinitionError> {
    let mut nodes = 0;
    // Of lists and mappings that are open: their anchor, and the number of nodes before them.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| DefinitionError {
            line: error.marker().line(),
            column: error.marker().col() + 1,
            message: match error.info() {
                // The parser, which reads ahead, has a limit of its own.
                "recursion limit exceeded" => TOO_DEEP.to_owned(),
                other => other.replace(char::is_control, " "),
            },
        })?;
        let wrong = |message: String| DefinitionError {
            line: span.start.line(),
            column: span.start.col() + 1,
            message,
        };
        match event {
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
            Event::Scalar(_, _, anchor, _) => {
                nodes += 1;
                // Nodes without an anchor have the number 0, which no alias names.
                sizes.insert(anchor, 1);
            }
            Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _) => {
                open.push((anchor, nodes));
                nodes += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some((anchor, before)) = open.pop() {
                    sizes.insert(anchor, nodes - before);
                }
            }
            // Building the tree repeats the nodes in full: aliases of aliases would double it again and again.
            Event::Alias(anchor) => nodes += sizes.get(&anchor).copied().unwrap_or(1),
        }
        if open.len() > DEEPEST {
            return Err(wrong(TOO_DEEP.to_owned()));
        }
        if nodes > MOST_NODES {
            return Err(wrong(format!(
                "too many keys, values, lists and mappings: a file may have {MOST_NODES}"
            )));
        }
    }
    Ok(())
}

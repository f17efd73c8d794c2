//! Sizes of counters after expansion: the definition of each counter takes the place of its name, which is what
//! providers do.

use std::collections::{BTreeMap, HashMap};

use super::{Definitions, Source};
use crate::evaluate::MAX_CHAIN;
use crate::expression::Expression;

/// Most names in the expression of a counter, with those in the definitions that it uses.
const MOST_PARTS: u64 = 1 << 16;
/// Most names in the expressions of all counters of an architecture.
const MOST_OF_ALL: u64 = 1 << 22;

/// Fault for which the definitions of a file cannot be expanded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpansionError {
    /// A counter refers to itself: names of which each uses the next, and the last repeats the first.
    #[error("{} is defined by itself: {}", .0[0], .0.join(" uses "))]
    Cycle(Vec<String>),
    /// Definitions use definitions too often.
    #[error("{0} uses counters that use counters, more than {MAX_CHAIN} one after the other")]
    Deep(String),
    /// A counter becomes too large when it is expanded.
    #[error(
        "{0} has more than {MOST_PARTS} parts, those of the counters that it uses counted each time"
    )]
    Large(String),
    /// All counters together become too large when they are expanded.
    #[error(
        "the counters up to {0} have more than {MOST_OF_ALL} parts, those of the counters that they use counted each time"
    )]
    AllLarge(String),
}

/// A counter with all definitions that it uses.
#[derive(Debug, Clone, Copy)]
struct Expanded {
    parts: u64,
    /// Length of the longest chain of definitions that begins here.
    height: usize,
}

/// The expressions of an architecture.
#[derive(Default)]
struct Expander<'a> {
    expressions: BTreeMap<&'a str, &'a Expression>,
    known: HashMap<&'a str, Expanded>,
    /// The definitions that are being put in.
    chain: Vec<&'a str>,
}

impl Definitions {
    /// Checks on each architecture that the definitions end and stay within bounds.
    ///
    /// # Errors
    /// The first counter that does not.
    pub fn check_expansion(&self) -> Result<(), ExpansionError> {
        // A name may be defined differently on each architecture.
        let mut architectures: BTreeMap<&str, Expander<'_>> = BTreeMap::new();
        for counter in &self.counters {
            for definition in &counter.definitions {
                let Source::Expression(expression) = &definition.source else {
                    continue;
                };
                for architecture in &definition.architectures {
                    let expander = architectures.entry(architecture).or_default();
                    expander.expressions.insert(&counter.name, expression);
                }
            }
        }
        for expander in architectures.values_mut() {
            let names: Vec<&str> = expander.expressions.keys().copied().collect();
            let mut all = 0;
            for name in names {
                all += expander.expand(name)?.parts;
                if all > MOST_OF_ALL {
                    return Err(ExpansionError::AllLarge(name.to_owned()));
                }
            }
        }
        Ok(())
    }
}

impl<'a> Expander<'a> {
    fn expand(&mut self, name: &'a str) -> Result<Expanded, ExpansionError> {
        // A counter of the hardware: there is nothing to put in for its name.
        let Some(expression) = self.expressions.get(name).copied() else {
            return Ok(Expanded {
                parts: 1,
                height: 0,
            });
        };
        if let Some(begin) = self.chain.iter().position(|open| *open == name) {
            let cycle = self.chain[begin..].iter().chain([&name]);
            return Err(ExpansionError::Cycle(
                cycle.map(|name| (*name).to_owned()).collect(),
            ));
        }
        // Each chain that leads to a known counter has a length of its own, so that its height is checked again.
        let height = self.known.get(name).map_or(1, |known| known.height);
        if self.chain.len() + height > MAX_CHAIN {
            let first = self.chain.first().copied().unwrap_or(name);
            return Err(ExpansionError::Deep(first.to_owned()));
        }
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        // Each occurrence counts, because providers put in a copy for each.
        let mut uses = Vec::new();
        expression.root().visit(&mut |name, _| uses.push(name));
        let mut expanded = Expanded {
            parts: 1,
            height: 0,
        };
        self.chain.push(name);
        for used in uses {
            let used = self.expand(used)?;
            expanded.parts += used.parts;
            expanded.height = expanded.height.max(used.height);
            // Within the loop, so that the sum cannot overflow.
            if expanded.parts > MOST_PARTS {
                return Err(ExpansionError::Large(name.to_owned()));
            }
        }
        self.chain.pop();
        expanded.height += 1;
        self.known.insert(name, expanded);
        Ok(expanded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(counters: impl IntoIterator<Item = (String, String)>) -> Result<(), ExpansionError> {
        let mut text = "rocprofiler-sdk:\n  counters:\n".to_owned();
        for (name, expression) in counters {
            text += &format!(
                "  - {{name: {name}, description: d, definitions: [{{architectures: [gfx90a], expression: \"{expression}\"}}]}}\n"
            );
        }
        let definitions = Definitions::parse(&text).expect("definitions");
        definitions.check_expansion()
    }

    #[test]
    fn a_counter_that_doubles_at_each_step_is_refused() {
        let double = |steps: usize| {
            (0..steps).map(|step| match step {
                0 => ("M0".to_owned(), "SQ_WAVES+SQ_WAVES".to_owned()),
                _ => (format!("M{step}"), format!("M{0}+M{0}", step - 1)),
            })
        };
        assert_eq!(check(double(12)), Ok(()));
        let error = check(double(30)).expect_err("too large").to_string();
        assert!(error.contains("has more than 65536 parts"), "{error}");
    }

    #[test]
    fn definitions_with_many_large_counters_are_refused() {
        let long = ["SQ_WAVES"; 1000].join("+");
        let base = [("A".to_owned(), long)];
        let many = (0..2000).map(|number| (format!("B{number}"), ["A"; 30].join("+")));
        let error = check(base.into_iter().chain(many)).expect_err("too large");
        assert!(matches!(error, ExpansionError::AllLarge(_)), "{error}");
    }

    #[test]
    fn a_long_chain_of_definitions_is_refused() {
        let chain = |steps: usize| {
            (0..steps).map(|step| match step {
                0 => ("M00000".to_owned(), "SQ_WAVES".to_owned()),
                _ => (format!("M{step:05}"), format!("M{:05}+1", step - 1)),
            })
        };
        assert_eq!(check(chain(MAX_CHAIN)), Ok(()));
        for steps in [MAX_CHAIN + 1, 20_000] {
            let error = check(chain(steps)).expect_err("too deep");
            assert!(matches!(error, ExpansionError::Deep(_)), "{error}");
        }
    }

    #[test]
    fn the_error_for_a_cycle_names_its_counters() {
        let own = |name: &str, expression: &str| (name.to_owned(), expression.to_owned());
        let error = check([own("A", "B+1"), own("B", "C*C"), own("C", "SQ_WAVES+B")]);
        let error = error.expect_err("endless").to_string();
        assert_eq!(error, "B is defined by itself: B uses C uses B");
    }
}

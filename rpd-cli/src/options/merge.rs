//! Which passes there are, and what was given for each.

use super::counters::{self, CounterGroup};
use super::given::{Given, Value};
use crate::failure::Failure;

/// A pass before it is resolved.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// All but the counters of `pmc`.
    pub(super) given: Given,
    /// What `pmc` asks for.
    pub(super) counters: CounterGroup,
}

/// Makes the passes of a command line.
pub(super) fn drafts(mut given: Given) -> Result<Vec<Draft>, Failure> {
    let groups = flags(&mut given)?;
    if groups.is_empty() {
        return Ok(vec![Draft {
            given,
            counters: CounterGroup::default(),
        }]);
    }
    Ok(groups
        .into_iter()
        .map(|counters| Draft {
            given: given.clone(),
            counters,
        })
        .collect())
}

/// Takes the groups of `--pmc`.
fn flags(given: &mut Given) -> Result<Vec<CounterGroup>, Failure> {
    let Some(Value::Groups(flags)) = given.values.remove("pmc") else {
        return Ok(Vec::new());
    };
    let several = flags.len() > 1;
    let mut groups = Vec::new();
    for (words, number) in flags.iter().zip(1..) {
        let group = counters::group(words)
            .map_err(|message| Failure::failed(format!("argument --pmc: {message}")))?;
        if !group.counters.is_empty() {
            groups.push(group);
        } else if several {
            return Err(Failure::failed(format!(
                "Empty counter group in --pmc flag {number}"
            )));
        }
    }
    Ok(groups)
}

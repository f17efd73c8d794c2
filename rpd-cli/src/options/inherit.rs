//! Inherited variables: defaults of options that were not given.

use rpd_core::compat::Difference;

use super::given::Fill;
use super::resolve::Environment;
use super::spec::Inherit;
use super::table::Group;
use crate::failure::Failure;

/// Gives the option the value of its variable, unless it has a value or the variable is not set.
///
/// # Errors
/// The variable has a value that the option cannot have.
pub(super) fn inherit(option: &mut dyn Fill, environment: &Environment) -> Result<(), Failure> {
    let spec = option.named().spec;
    let variable = match spec.inherit {
        Inherit::No => return Ok(()),
        Inherit::Value(variable) | Inherit::Opposite(variable) => variable,
    };
    let is_ignored =
        spec.group == Group::Stacks && environment.compat.has(Difference::StackVariables);
    if option.named().is_given() || is_ignored {
        return Ok(());
    }
    match environment.get(variable) {
        Some(text) => option.read_variable(variable, text),
        None => Ok(()),
    }
}

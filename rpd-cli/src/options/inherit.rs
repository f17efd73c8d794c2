//! Inherited variables: defaults of options that were not given.

use rpd_core::compat::Difference;
use rpd_core::os_text;

use super::given::{OptionValues, Origin, Value};
use super::parse::truth;
use super::resolve::Environment;
use super::table::{Form, Group, Inherit, OPTIONS, Spec};
use crate::failure::Failure;

/// A variable that is set, and the option that it gives a default.
#[derive(Debug, Clone, Copy)]
struct Inherited<'a> {
    spec: &'static Spec,
    variable: &'static str,
    opposite: bool,
    text: &'a str,
}

/// The variables that are set.
#[derive(Debug, Clone)]
pub(crate) struct Variables<'a>(Vec<Inherited<'a>>);

impl<'a> Variables<'a> {
    /// Looks at all options.
    pub(crate) fn of(environment: &'a Environment) -> Variables<'a> {
        let set = |spec: &'static Spec| {
            let (variable, opposite) = match spec.inherit {
                Inherit::No => return None,
                Inherit::Value(variable) => (variable, false),
                Inherit::Opposite(variable) => (variable, true),
            };
            if spec.group == Group::Stacks && environment.compat.has(Difference::StackVariables) {
                return None;
            }
            Some(Inherited {
                spec,
                variable,
                opposite,
                text: environment.get(variable)?,
            })
        };
        Variables(OPTIONS.iter().filter_map(set).collect())
    }

    /// Fills in their values for options that were not given and that `concerned` selects.
    ///
    /// # Errors
    /// A variable that is looked at has a value that its option cannot have.
    pub(crate) fn fill(
        &self,
        given: &mut OptionValues,
        concerned: impl Fn(&Spec) -> bool,
    ) -> Result<(), Failure> {
        for inherited in &self.0 {
            let long = inherited.spec.long;
            if given.values.contains_key(long) || !concerned(inherited.spec) {
                continue;
            }
            given.values.insert(long, inherited.value()?);
            given
                .origins
                .insert(long, Origin::Variable(inherited.variable));
        }
        Ok(())
    }
}

impl Inherited<'_> {
    fn value(&self) -> Result<Value, Failure> {
        let text = self.text;
        Ok(match self.spec.form {
            Form::Bool | Form::Flag | Form::Categories(_) => {
                Value::Bool(variable_truth(text) != self.opposite)
            }
            Form::Integer(..) => Value::Integer(number(self.variable, text)?),
            Form::Choice(known, ignore_case) => {
                let matches = |word: &&&str| {
                    **word == text || (ignore_case && word.eq_ignore_ascii_case(text))
                };
                match known.iter().find(matches) {
                    Some(word) => Value::Text((*word).to_owned()),
                    None => {
                        return Err(Failure::usage(format!(
                            "{}: invalid choice: '{text}' (choose from {})",
                            self.variable,
                            known.join(", ")
                        )));
                    }
                }
            }
            Form::Text => Value::Text(text.to_owned()),
            Form::Path => Value::Text(os_text::escape_str(text).into_owned()),
            Form::Choices(_) | Form::List(_) => Value::List(vec![text.to_owned()]),
            // One line a group: `pmc: NAME NAME`. What has no mark is not a group.
            Form::Groups => Value::Groups(
                text.lines()
                    .filter_map(|line| Some(vec![line.split_once("pmc:")?.1.to_owned()]))
                    .collect(),
            ),
        })
    }
}

/// Truth of a variable, by the rules of the original's tool.
pub(super) fn variable_truth(text: &str) -> bool {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.bytes().any(|byte| byte != b'0');
    }
    truth(text) != Some(false)
}

pub(super) fn number(variable: &str, text: &str) -> Result<i64, Failure> {
    text.trim()
        .parse()
        .map_err(|_| Failure::usage(format!("{variable}: invalid int value: '{text}'")))
}

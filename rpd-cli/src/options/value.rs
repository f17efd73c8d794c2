//! Types of options' values, and how each is read from the command line, a job and an inherited variable.

use std::ffi::OsString;

use clap::ArgMatches;
use rpd_core::text::os_text;

use super::choices::Choice;
use super::node::{Content, Node};
use super::scalar;
use super::spec::{Form, Inherit, Spec};
use crate::failure::Failure;

/// The type of an option's value.
pub(crate) trait OptionValue: Sized + Clone + PartialEq {
    /// Form of an option that is declared with this type and nothing further.
    const FORM: Form;

    /// The value on the command line, which has the option.
    ///
    /// # Errors
    /// The words are none that the option can have, and the parser of the command line could not know.
    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<Self>, Failure>;

    /// The value in a job, which is not null.
    ///
    /// # Errors
    /// The rest of a message that begins with the key.
    fn from_node(spec: &Spec, node: &Node) -> Result<Self, String>;

    /// The value of an inherited variable, which is not empty.
    ///
    /// # Errors
    /// The option cannot have the value; the message names the variable.
    fn from_variable(spec: &Spec, variable: &str, text: &str) -> Result<Self, Failure>;

    /// The value as messages show it.
    fn shown(&self) -> String;

    /// Whether the value switches the option off.
    fn is_off(&self) -> bool {
        false
    }
}

/// A truth word; `None` for any other word.
pub(crate) fn truth(word: &str) -> Option<bool> {
    match word.to_ascii_lowercase().as_str() {
        "y" | "yes" | "t" | "true" | "on" | "1" => Some(true),
        "n" | "no" | "f" | "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Truth of a variable, by the rules of the original's tool.
pub(super) fn variable_truth(text: &str) -> bool {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.bytes().any(|byte| byte != b'0');
    }
    truth(text) != Some(false)
}

/// A number in a variable.
///
/// # Errors
/// The text is no number; the message names the variable.
pub(super) fn variable_number(variable: &str, text: &str) -> Result<i64, Failure> {
    text.trim()
        .parse()
        .map_err(|_| Failure::usage(format!("{variable}: invalid int value: '{text}'")))
}

/// The words of all occurrences.
fn texts(spec: &Spec, matches: &ArgMatches) -> Vec<String> {
    let texts = matches.get_many::<String>(spec.long);
    texts.unwrap_or_default().cloned().collect()
}

/// What follows `invalid choice` in messages.
pub(super) fn choose_from(word: &str, known: &[&str]) -> String {
    let near = match rpd_core::text::near::nearest(word, known.iter().copied()) {
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    format!("(choose from {}){near}", known.join(", "))
}

/// The choice of a job.
fn choice<T: Choice>(word: &str, ignore_case: bool) -> Result<T, String> {
    T::from_word(word, ignore_case)
        .ok_or_else(|| format!("invalid choice: '{word}' {}", choose_from(word, T::WORDS)))
}

fn at_least(least: usize, words: &[String]) -> Result<(), String> {
    if words.len() < least {
        return Err("expected at least one value".to_owned());
    }
    Ok(())
}

impl OptionValue for bool {
    const FORM: Form = Form::Bool;

    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<bool>, Failure> {
        Ok(matches.get_one(spec.long).copied())
    }

    fn from_node(_: &Spec, node: &Node) -> Result<bool, String> {
        let text = node.word()?;
        truth(text).ok_or_else(|| {
            format!("invalid truth value '{text}': use true, yes, on or false, no, off")
        })
    }

    fn from_variable(spec: &Spec, _: &str, text: &str) -> Result<bool, Failure> {
        Ok(variable_truth(text) != matches!(spec.inherit, Inherit::Opposite(_)))
    }

    fn shown(&self) -> String {
        self.to_string()
    }

    fn is_off(&self) -> bool {
        !self
    }
}

impl OptionValue for i64 {
    const FORM: Form = Form::Integer(i64::MIN, i64::MAX);

    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<i64>, Failure> {
        Ok(matches.get_one(spec.long).copied())
    }

    fn from_node(spec: &Spec, node: &Node) -> Result<i64, String> {
        let text = node.word()?;
        let number = scalar::integer(text).ok_or_else(|| format!("invalid int value: '{text}'"))?;
        if let Form::Integer(low, high) = spec.form {
            if number < low {
                return Err(format!("{number} is less than {low}"));
            }
            if number > high {
                return Err(format!("{number} is more than {high}"));
            }
        }
        Ok(number)
    }

    /// Bounds are those of the command line and of jobs: code that reads the option decides about other numbers.
    fn from_variable(_: &Spec, variable: &str, text: &str) -> Result<i64, Failure> {
        variable_number(variable, text)
    }

    fn shown(&self) -> String {
        self.to_string()
    }
}

impl OptionValue for String {
    const FORM: Form = Form::Text;

    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<String>, Failure> {
        Ok(texts(spec, matches).pop())
    }

    fn from_node(_: &Spec, node: &Node) -> Result<String, String> {
        Ok(node.word()?.to_owned())
    }

    fn from_variable(_: &Spec, _: &str, text: &str) -> Result<String, Failure> {
        Ok(text.to_owned())
    }

    fn shown(&self) -> String {
        format!("'{self}'")
    }
}

/// A path of any bytes, as escaped text ([`rpd_core::text::os_text`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EscapedPath(pub(crate) String);

impl OptionValue for EscapedPath {
    const FORM: Form = Form::Path;

    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<EscapedPath>, Failure> {
        let path = matches.get_one::<OsString>(spec.long);
        Ok(path.map(|path| EscapedPath(os_text::escape(path))))
    }

    fn from_node(_: &Spec, node: &Node) -> Result<EscapedPath, String> {
        Ok(EscapedPath(os_text::escape_str(node.word()?).into_owned()))
    }

    fn from_variable(_: &Spec, _: &str, text: &str) -> Result<EscapedPath, Failure> {
        Ok(EscapedPath(os_text::escape_str(text).into_owned()))
    }

    fn shown(&self) -> String {
        self.0.shown()
    }
}

impl<T: Choice> OptionValue for T {
    const FORM: Form = Form::Choice(T::WORDS, false);

    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<T>, Failure> {
        let word = texts(spec, matches).pop();
        Ok(word.and_then(|word| T::from_word(&word, spec.ignores_case())))
    }

    fn from_node(spec: &Spec, node: &Node) -> Result<T, String> {
        choice(node.word()?, spec.ignores_case())
    }

    fn from_variable(spec: &Spec, variable: &str, text: &str) -> Result<T, Failure> {
        T::from_word(text, spec.ignores_case()).ok_or_else(|| {
            let known = T::WORDS.join(", ");
            Failure::usage(format!(
                "{variable}: invalid choice: '{text}' (choose from {known})"
            ))
        })
    }

    fn shown(&self) -> String {
        format!("'{}'", self.word())
    }
}

impl<T: Choice> OptionValue for Vec<T> {
    const FORM: Form = Form::Choices(T::WORDS);

    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<Vec<T>>, Failure> {
        let words = texts(spec, matches);
        let known = words.iter().filter_map(|word| T::from_word(word, true));
        Ok(Some(known.collect()))
    }

    fn from_node(_: &Spec, node: &Node) -> Result<Vec<T>, String> {
        let words = node.words()?;
        at_least(1, &words)?;
        words.iter().map(|word| choice(word, true)).collect()
    }

    fn from_variable(_: &Spec, variable: &str, text: &str) -> Result<Vec<T>, Failure> {
        let words = text.split([' ', '\t', ',', ';', ':']);
        words
            .filter(|word| !word.is_empty())
            .map(|word| {
                T::from_word(word, true).ok_or_else(|| {
                    let word = word.to_ascii_lowercase();
                    let known = T::WORDS.join(", ");
                    Failure::usage(format!(
                        "{variable}: invalid choice: '{word}' (choose from {known})"
                    ))
                })
            })
            .collect()
    }

    fn shown(&self) -> String {
        let words: Vec<&str> = self.iter().map(|value| value.word()).collect();
        format!("[{}]", words.join(", "))
    }
}

impl OptionValue for Vec<String> {
    const FORM: Form = Form::List {
        least: 1,
        nested: false,
    };

    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<Vec<String>>, Failure> {
        Ok(Some(texts(spec, matches)))
    }

    fn from_node(spec: &Spec, node: &Node) -> Result<Vec<String>, String> {
        match spec.form {
            Form::List { nested: true, .. } => {
                let mut flat = Vec::new();
                flatten(node, &mut flat)?;
                Ok(flat)
            }
            Form::List { least, .. } => {
                let words = node.words()?;
                at_least(least, &words)?;
                Ok(words)
            }
            _ => node.words(),
        }
    }

    /// The text is one word: code that reads the option knows its separators.
    fn from_variable(_: &Spec, _: &str, text: &str) -> Result<Vec<String>, Failure> {
        Ok(vec![text.to_owned()])
    }

    fn shown(&self) -> String {
        format!("[{}]", self.join(", "))
    }
}

/// The words of a list and of the lists in it.
fn flatten(node: &Node, flat: &mut Vec<String>) -> Result<(), String> {
    match &node.content {
        Content::List(items) => items.iter().try_for_each(|item| flatten(item, flat)),
        Content::Scalar { .. } | Content::Map(_) => {
            flat.push(node.word()?.to_owned());
            Ok(())
        }
    }
}

/// Groups of words.
impl OptionValue for Vec<Vec<String>> {
    const FORM: Form = Form::Groups;

    fn from_matches(
        spec: &Spec,
        matches: &ArgMatches,
    ) -> Result<Option<Vec<Vec<String>>>, Failure> {
        let groups = matches.get_occurrences::<String>(spec.long);
        let groups = groups.into_iter().flatten();
        Ok(Some(groups.map(|group| group.cloned().collect()).collect()))
    }

    fn from_node(spec: &Spec, node: &Node) -> Result<Vec<Vec<String>>, String> {
        let Content::List(items) = &node.content else {
            return Ok(vec![node.words()?]);
        };
        if spec.key_only {
            return items.iter().map(Node::words).collect();
        }
        // An option of the command line has a group for each time that it is there; a job has its key once.
        let is_list = |item: &Node| matches!(item.content, Content::List(_));
        if items.iter().any(is_list) {
            return Err(
                "it is one list of names; groups that take turns are pmc_groups".to_owned(),
            );
        }
        Ok(vec![node.words()?])
    }

    /// A line is a group, `pmc: NAME NAME`. Other lines are left out.
    fn from_variable(_: &Spec, _: &str, text: &str) -> Result<Vec<Vec<String>>, Failure> {
        let names = text.lines().filter_map(|line| line.split_once("pmc:"));
        Ok(names.map(|(_, names)| vec![names.to_owned()]).collect())
    }

    fn shown(&self) -> String {
        let groups: Vec<String> = self.iter().map(OptionValue::shown).collect();
        format!("[{}]", groups.join(", "))
    }
}

/// Categories of OpenMP events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Categories {
    /// All of them, or none.
    All(bool),
    /// The named categories.
    Named(Vec<String>),
}

impl Categories {
    const WORDS: &'static [&'static str] = &[
        "all", "thread", "parallel", "task", "sync", "mutex", "target", "device", "error",
    ];
}

impl OptionValue for Categories {
    const FORM: Form = Form::Categories;

    /// The option alone is all categories.
    fn from_matches(spec: &Spec, matches: &ArgMatches) -> Result<Option<Categories>, Failure> {
        let words: Vec<String> = texts(spec, matches)
            .iter()
            .map(|word| word.trim().to_ascii_lowercase())
            .filter(|word| !word.is_empty())
            .collect();
        if let [word] = words.as_slice()
            && let Some(value) = truth(word)
        {
            return Ok(Some(Categories::All(value)));
        }
        let is_known = |word: &&String| Categories::WORDS.contains(&word.as_str());
        if let Some(word) = words.iter().find(|word| !is_known(word)) {
            let reason = if word.contains(',') {
                "(separate categories with spaces)".to_owned()
            } else {
                choose_from(word, Categories::WORDS)
            };
            return Err(Failure::usage(format!(
                "argument {}: invalid choice: '{word}' {reason}",
                spec.display()
            )));
        }
        if words.is_empty() || words.iter().any(|word| word == "all") {
            return Ok(Some(Categories::All(true)));
        }
        Ok(Some(Categories::Named(words)))
    }

    fn from_node(_: &Spec, node: &Node) -> Result<Categories, String> {
        if let Some(value) = node.scalar().and_then(truth) {
            return Ok(Categories::All(value));
        }
        let words = node.words()?;
        let is_known = |word: &&String| {
            let mut known = Categories::WORDS.iter();
            known.any(|known| known.eq_ignore_ascii_case(word))
        };
        match words.iter().find(|word| !is_known(word)) {
            Some(word) => Err(format!(
                "invalid choice: '{word}' {}",
                choose_from(word, Categories::WORDS)
            )),
            None => Ok(Categories::Named(words)),
        }
    }

    fn from_variable(_: &Spec, _: &str, text: &str) -> Result<Categories, Failure> {
        Ok(Categories::All(variable_truth(text)))
    }

    fn shown(&self) -> String {
        match self {
            Categories::All(value) => value.shown(),
            Categories::Named(words) => words.shown(),
        }
    }

    fn is_off(&self) -> bool {
        *self == Categories::All(false)
    }
}

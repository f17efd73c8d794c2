//! Converts a node to the value of an option, by the table of options that the command line uses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock};

use rpd_core::os_text;

use super::super::given::{OptionValues, Origin, Place, Value};
use super::super::parse::truth;
use super::super::table::{Form, OPTIONS, Spec};
use super::node::{Content, Key, Node};
use super::{scalar, wrong};
use crate::failure::Failure;

/// Options that a job cannot have.
const NOT_IN_JOBS: [&str; 4] = ["input", "version", "doctor", "compat"];
/// Alternative spellings of keys in the published schema.
const ALIASES: [(&str, &str); 2] = [
    ("hsa_finalize_trace", "hsa-finalizer-trace"),
    ("list_metrics", "list-avail"),
];

/// Options by key, with dashes replaced by underscores.
static KEYS: LazyLock<HashMap<String, &'static Spec>> = LazyLock::new(|| {
    let mut keys = HashMap::new();
    for spec in OPTIONS
        .iter()
        .filter(|spec| !NOT_IN_JOBS.contains(&spec.long))
    {
        for name in std::iter::once(&spec.long).chain(spec.aliases) {
            keys.insert(name.replace('-', "_"), spec);
        }
        for (alias, _) in ALIASES.iter().filter(|(_, long)| *long == spec.long) {
            keys.insert((*alias).to_owned(), spec);
        }
    }
    keys
});

/// The keys, sorted.
static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut names: Vec<String> = KEYS.keys().cloned().collect();
    names.sort_unstable();
    names
});

/// Different keys that are reported. A file with more of them is probably no job file.
const MOST_REMARKS: usize = 100;

/// Unknown and repeated keys, reported once each, however many jobs have them.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    remarks: Vec<Remark>,
    /// Number of keys beyond [`MOST_REMARKS`].
    more: usize,
    known: HashMap<(bool, String), usize>,
}

#[derive(Debug)]
struct Remark {
    key: Key,
    times: usize,
    what: RemarkKind,
}

#[derive(Debug)]
enum RemarkKind {
    /// The key is unknown; the known name with a similar spelling.
    Unknown(Option<String>),
    /// The key is repeated in its mapping.
    Again,
}

impl Remarks {
    /// Notes an unknown key.
    pub(super) fn unknown<'a>(&mut self, key: &Key, candidates: impl Iterator<Item = &'a str>) {
        self.add(true, key, || {
            RemarkKind::Unknown(rpd_core::near::nearest(&key.text, candidates).map(str::to_owned))
        });
    }

    /// Notes a repeated key.
    pub(super) fn again(&mut self, key: &Key) {
        self.add(false, key, || RemarkKind::Again);
    }

    fn add(&mut self, unknown: bool, key: &Key, what: impl FnOnce() -> RemarkKind) {
        match self.known.entry((unknown, key.text.clone())) {
            Entry::Occupied(at) => self.remarks[*at.get()].times += 1,
            Entry::Vacant(_) if self.remarks.len() == MOST_REMARKS => self.more += 1,
            Entry::Vacant(at) => {
                at.insert(self.remarks.len());
                self.remarks.push(Remark {
                    key: key.clone(),
                    times: 1,
                    what: what(),
                });
            }
        }
    }

    /// One message for each key.
    pub(super) fn warnings(&self, file: &Arc<str>) -> Vec<String> {
        let line = |remark: &Remark| {
            let key = &remark.key;
            let more = match remark.times {
                1 => String::new(),
                times => format!(" ({times} times)"),
            };
            let said = match &remark.what {
                RemarkKind::Unknown(Some(near)) => {
                    format!(
                        "unknown key '{}' is ignored{more}; did you mean {near}?",
                        key.text
                    )
                }
                RemarkKind::Unknown(None) => format!("unknown key '{}' is ignored{more}", key.text),
                RemarkKind::Again => {
                    format!(
                        "'{}' is repeated{more}; its earlier value is ignored",
                        key.text
                    )
                }
            };
            format!("{file}:{}:{}: {said}", key.line, key.column)
        };
        let more = (self.more > 0)
            .then(|| format!("{file}: {} more keys are unknown or repeated", self.more));
        self.remarks.iter().map(line).chain(more).collect()
    }
}

/// Reads the options of one job from its node.
pub(super) fn job(
    node: &Node,
    file: &Arc<str>,
    remarks: &mut Remarks,
) -> Result<OptionValues, Failure> {
    let Content::Map(entries) = &node.content else {
        return Err(wrong(
            file,
            node.line,
            node.column,
            "a job must be a mapping of options to values",
        ));
    };
    let mut job = OptionValues::default();
    let mut seen = Vec::with_capacity(entries.len());
    for (key, node) in entries {
        let Some(spec) = KEYS.get(&key.normal()) else {
            remarks.unknown(key, NAMES.iter().map(String::as_str));
            continue;
        };
        if seen.contains(&spec.long) {
            remarks.again(key);
        }
        seen.push(spec.long);
        let place = Place {
            file: file.clone(),
            line: node.line,
            column: node.column,
        };
        let read = value(spec, node)
            .map_err(|message| Failure::failed(format!("{place}: {}: {message}", key.text)))?;
        // Of a repeated key the last value is used, as on the command line.
        match read {
            Some(value) => {
                job.values.insert(spec.long, value);
                job.origins.insert(spec.long, Origin::Job(place));
            }
            None => {
                job.values.remove(spec.long);
                job.origins.remove(spec.long);
            }
        }
    }
    Ok(job)
}

/// The value of an option; `None` for a null value.
fn value(spec: &Spec, node: &Node) -> Result<Option<Value>, String> {
    if node.is_null() {
        return Ok(None);
    }
    Ok(Some(match spec.form {
        Form::Bool | Form::Flag => {
            let text = word(node)?;
            Value::Bool(truth(text).ok_or_else(|| {
                format!("invalid truth value '{text}': use true, yes, on or false, no, off")
            })?)
        }
        Form::Text => Value::Text(word(node)?.to_owned()),
        Form::Path => Value::Text(os_text::escape_str(word(node)?).into_owned()),
        Form::Integer(low, high) => {
            let text = word(node)?;
            let number =
                scalar::integer(text).ok_or_else(|| format!("invalid int value: '{text}'"))?;
            if number < low {
                return Err(format!("{number} is less than {low}"));
            }
            if number > high {
                return Err(format!("{number} is more than {high}"));
            }
            Value::Integer(number)
        }
        Form::Choice(known, ignore_case) => {
            Value::Text(choice(word(node)?, known, ignore_case)?.to_owned())
        }
        Form::Choices(known) => {
            let words = words(node)?;
            at_least_one(&words)?;
            let known = words
                .iter()
                .map(|word| Ok(choice(word, known, true)?.to_owned()))
                .collect::<Result<_, String>>()?;
            Value::List(known)
        }
        Form::Categories(known) => match node.scalar().and_then(truth) {
            Some(value) => Value::Bool(value),
            None => {
                let words = words(node)?;
                for word in &words {
                    choice(word, known, true)?;
                }
                Value::List(words)
            }
        },
        // One group; several are `pmc_groups`.
        Form::Groups if spec.long == "pmc" => {
            if let Content::List(items) = &node.content
                && items
                    .iter()
                    .any(|item| matches!(item.content, Content::List(_)))
            {
                return Err(
                    "it is one list of names; groups that take turns are pmc_groups".to_owned(),
                );
            }
            Value::List(words(node)?)
        }
        Form::Groups => Value::Groups(match &node.content {
            Content::List(items) => items.iter().map(words).collect::<Result<_, _>>()?,
            _ => vec![words(node)?],
        }),
        // Ranges may be nested: the brackets are ignored.
        Form::List(_) if spec.long == "kernel-iteration-range" => {
            let mut flat = Vec::new();
            flatten(node, &mut flat)?;
            Value::List(flat)
        }
        Form::List(least) => {
            let words = words(node)?;
            if least > 0 {
                at_least_one(&words)?;
            }
            Value::List(words)
        }
    }))
}

fn at_least_one(words: &[String]) -> Result<(), String> {
    match words {
        [] => Err("expected at least one value".to_owned()),
        _ => Ok(()),
    }
}

/// The matching word of the option's list.
fn choice<'a>(word: &str, known: &[&'a str], ignore_case: bool) -> Result<&'a str, String> {
    let same = |other: &&&str| **other == word || (ignore_case && other.eq_ignore_ascii_case(word));
    known.iter().find(same).copied().ok_or_else(|| {
        let near = match rpd_core::near::nearest(word, known.iter().copied()) {
            Some(near) => format!("; did you mean {near}?"),
            None => String::new(),
        };
        format!(
            "invalid choice: '{word}' (choose from {}){near}",
            known.join(", ")
        )
    })
}

/// A single word, or a list of one.
fn word(node: &Node) -> Result<&str, String> {
    match &node.content {
        Content::Scalar { text, plain } => {
            if *plain && scalar::is_base_60(text) {
                return Err(format!(
                    "YAML reads {text} without quotes as a number to base 60; write \"{text}\""
                ));
            }
            Ok(text)
        }
        Content::List(items) => match items.as_slice() {
            [item] if item.scalar().is_some() => word(item),
            _ => Err("expected one value".to_owned()),
        },
        Content::Map(_) => Err("expected one value, not a mapping".to_owned()),
    }
}

/// A list of words; a single word is a list of one.
fn words(node: &Node) -> Result<Vec<String>, String> {
    match &node.content {
        Content::List(items) => items
            .iter()
            .map(|item| match item.content {
                Content::Scalar { .. } => Ok(word(item)?.to_owned()),
                _ => Err("expected a list of words".to_owned()),
            })
            .collect(),
        Content::Scalar { .. } => Ok(vec![word(node)?.to_owned()]),
        Content::Map(_) => Err("expected a list of words, not a mapping".to_owned()),
    }
}

fn flatten(node: &Node, flat: &mut Vec<String>) -> Result<(), String> {
    match &node.content {
        Content::List(items) => items.iter().try_for_each(|item| flatten(item, flat)),
        _ => {
            flat.push(word(node)?.to_owned());
            Ok(())
        }
    }
}

//! Reads the options of a job from its node, by the table of options that the command line uses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, LazyLock};

use super::super::given::Place;
use super::super::node::{Content, Key, Node};
use super::super::table::{Given, OPTIONS};
use super::wrong;
use crate::failure::Failure;

/// Places of options in the table, by key.
static KEYS: LazyLock<HashMap<String, usize>> = LazyLock::new(|| {
    let mut keys = HashMap::new();
    for (at, spec) in OPTIONS.iter().enumerate().filter(|(_, spec)| spec.in_jobs) {
        let names = std::iter::once(spec.key).chain(spec.key_alias);
        for name in names.chain(spec.aliases.iter().copied()) {
            keys.insert(name.replace('-', "_"), at);
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
            RemarkKind::Unknown(
                rpd_core::text::near::nearest(&key.text, candidates).map(str::to_owned),
            )
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
pub(super) fn job(node: &Node, file: &Arc<str>, remarks: &mut Remarks) -> Result<Given, Failure> {
    let Content::Map(entries) = &node.content else {
        return Err(wrong(
            file,
            node.line,
            node.column,
            "a job must be a mapping of options to values",
        ));
    };
    let mut job = Given::default();
    let options = job.all_mut();
    let mut seen = Vec::with_capacity(entries.len());
    for (key, node) in entries {
        let Some(&at) = KEYS.get(&key.normal()) else {
            remarks.unknown(key, NAMES.iter().map(String::as_str));
            continue;
        };
        if seen.contains(&at) {
            remarks.again(key);
        }
        seen.push(at);
        let place = Place {
            file: file.clone(),
            line: node.line,
            column: node.column,
        };
        // Of a repeated key the last value is used, as on the command line.
        options[at]
            .read_node(node, place.clone())
            .map_err(|message| Failure::failed(format!("{place}: {}: {message}", key.text)))?;
    }
    Ok(job)
}

//! Rules, as files have them.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::expression::Expression;
use super::metrics::{Source, find};
use crate::answer::{Unit, shown};

/// The rules that are built in.
const BUILT_IN: &str = include_str!("../../rules/advise.toml");

/// A mistake in a file of rules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// A mistake at a place of the file.
    #[error("line {line}, column {column}: {what}")]
    InFile {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// A rule, or a threshold of one, that does not exist.
    #[error("{0}")]
    Unknown(String),
}

/// A file of rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Written>,
}

/// A rule as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    id: Spanned<String>,
    title: String,
    over: Source,
    #[serde(default)]
    needs: Vec<String>,
    guard: Option<Spanned<String>>,
    /// Rules that say more about the same time.
    #[serde(default)]
    unless: Vec<String>,
    when: Spanned<String>,
    gain: Spanned<String>,
    #[serde(default)]
    thresholds: BTreeMap<String, f64>,
    severity: Option<Note>,
    finding: Spanned<String>,
    advice: String,
    #[serde(default)]
    next: String,
    sure: Sure,
}

/// A rule that is about a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Note {
    Note,
}

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sure {
    Measured,
    Estimated,
    Heuristic,
}

/// A rule.
#[derive(Debug, Clone)]
pub struct Rule {
    written: Written,
    when: Expression,
    guard: Option<Expression>,
    gain: Expression,
}

/// Rules that are judged.
#[derive(Debug, Clone)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// Line and column of a byte of a text.
fn place(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..byte.min(text.len())];
    let line = before.matches('\n').count() + 1;
    let column = before
        .chars()
        .rev()
        .take_while(|letter| *letter != '\n')
        .count()
        + 1;
    (line, column)
}

fn mistake(text: &str, byte: usize, what: impl Into<String>) -> RuleError {
    let (line, column) = place(text, byte);
    RuleError::InFile {
        line,
        column,
        what: what.into(),
    }
}

impl Rule {
    fn new(text: &str, written: Written) -> Result<Rule, RuleError> {
        // The span begins at the quotation mark.
        let parse = |part: &Spanned<String>| {
            let begin = part.span().start + 1;
            let expression = Expression::parse(part.as_ref())
                .map_err(|wrong| mistake(text, begin + wrong.at, wrong.to_string()))?;
            for name in expression.names() {
                if !written.knows(name) {
                    let at = part.as_ref().find(name).unwrap_or(0);
                    let what = format!("{} has no figure {name}", written.over.word());
                    return Err(mistake(text, begin + at, what));
                }
            }
            Ok(expression)
        };
        let when = parse(&written.when)?;
        let guard = written.guard.as_ref().map(parse).transpose()?;
        let gain = parse(&written.gain)?;
        for name in braced(written.finding.as_ref()) {
            if !written.knows(name) {
                let what = format!("{} has no figure {name}", written.over.word());
                return Err(mistake(text, written.finding.span().start, what));
            }
        }
        Ok(Rule {
            written,
            when,
            guard,
            gain,
        })
    }

    /// Id of the rule.
    pub fn id(&self) -> &str {
        self.written.id.as_ref()
    }

    /// Subject of the rule in a few words.
    pub fn title(&self) -> &str {
        &self.written.title
    }

    /// Source of the rows that the rule is judged for.
    pub fn source(&self) -> Source {
        self.written.over
    }

    /// Records that the rule needs.
    pub fn needs(&self) -> &[String] {
        &self.written.needs
    }

    pub(super) fn is_note(&self) -> bool {
        self.written.severity == Some(Note::Note)
    }

    /// Ids of rules whose findings explain those of this one.
    pub(super) fn unless(&self) -> &[String] {
        &self.written.unless
    }

    pub(super) fn advice(&self) -> &str {
        &self.written.advice
    }

    pub(super) fn next(&self) -> &str {
        &self.written.next
    }

    pub(super) fn how_sure(&self) -> &'static str {
        match self.written.sure {
            Sure::Measured => "measured",
            Sure::Estimated => "estimated",
            Sure::Heuristic => "heuristic",
        }
    }

    pub(super) fn when_text(&self) -> &str {
        self.written.when.as_ref()
    }

    pub(super) fn guard_text(&self) -> Option<&str> {
        self.written
            .guard
            .as_ref()
            .map(|guard| guard.as_ref().as_str())
    }

    pub(super) fn gain_text(&self) -> &str {
        self.written.gain.as_ref()
    }

    pub(super) fn thresholds_text(&self) -> Option<String> {
        let all = self.written.thresholds.iter();
        let all: Vec<String> = all.map(|(name, value)| format!("{name}={value}")).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    pub(super) fn threshold(&self, name: &str) -> Option<f64> {
        self.written.thresholds.get(name).copied()
    }

    /// Names of its expressions.
    pub(super) fn names(&self) -> Vec<&str> {
        let guard = self.guard.iter().flat_map(Expression::names);
        let all = self.when.names().into_iter().chain(self.gain.names());
        all.chain(guard).collect()
    }

    /// Names of its condition, each once.
    pub(super) fn figures(&self) -> Vec<&str> {
        let mut names = self.when.names();
        let mut known = Vec::new();
        names.retain(|name| {
            let is_new = !known.contains(name);
            known.push(name);
            is_new
        });
        names
    }

    /// The gain when the rule fires, `None` when it does not; the figure that is not known where it cannot be judged.
    pub(super) fn judge(&self, get: &impl Fn(&str) -> Option<f64>) -> Result<Option<f64>, &str> {
        let get = |name: &str| self.threshold(name).or_else(|| get(name));
        if let Some(guard) = &self.guard
            && guard.value(&get)? == 0.0
        {
            return Ok(None);
        }
        if self.when.value(&get)? == 0.0 {
            return Ok(None);
        }
        self.gain.value(&get).map(Some)
    }

    /// The finding with its figures.
    pub(super) fn finding(&self, get: &impl Fn(&str) -> Option<(f64, Unit)>) -> String {
        let mut text = String::new();
        let mut rest = self.written.finding.as_ref().as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, behind)) = after.split_once('}') else {
                break;
            };
            text.push_str(before);
            match get(name) {
                Some((value, unit)) => text.push_str(&shown(value, unit)),
                None => text.push('-'),
            }
            rest = behind;
        }
        text + rest
    }
}

impl Written {
    /// Whether a name is a figure of what the rule is judged for, or a threshold.
    fn knows(&self, name: &str) -> bool {
        self.thresholds.contains_key(name) || find(self.over, name).is_some()
    }
}

/// The words in braces.
fn braced(text: &str) -> Vec<&str> {
    let parts = text.split('{').skip(1);
    parts
        .filter_map(|part| part.split_once('}'))
        .map(|part| part.0)
        .collect()
}

impl Rules {
    /// The rules that are built in.
    pub fn built_in() -> Rules {
        let mut rules = Rules { rules: Vec::new() };
        rules
            .add(BUILT_IN)
            .expect("the built-in rules are right, which a test checks");
        rules
    }

    /// Adds the rules of a file; those with the id of another one replace it.
    ///
    /// # Errors
    /// When the text is not what files of rules hold, with the place.
    pub fn add(&mut self, text: &str) -> Result<(), RuleError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let begin = error.span().map_or(0, |span| span.start);
            mistake(text, begin, error.message())
        })?;
        for written in file.rule {
            let rule = Rule::new(text, written)?;
            match self.rules.iter_mut().find(|known| known.id() == rule.id()) {
                Some(known) => *known = rule,
                None => self.rules.push(rule),
            }
        }
        Ok(())
    }

    /// All rules.
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    fn check(&self, id: &str) -> Result<(), RuleError> {
        if self.rules.iter().any(|rule| rule.id() == id) {
            Ok(())
        } else {
            Err(RuleError::Unknown(format!("there is no rule '{id}'")))
        }
    }

    /// Keeps the rules with these ids, unless there are none, and then drops those of `without`.
    ///
    /// # Errors
    /// When one does not exist.
    pub fn choose(&mut self, only: &[String], without: &[String]) -> Result<(), RuleError> {
        only.iter()
            .chain(without)
            .try_for_each(|id| self.check(id))?;
        self.rules.retain(|rule| {
            let is_in = |list: &[String]| list.iter().any(|id| id == rule.id());
            (only.is_empty() || is_in(only)) && !is_in(without)
        });
        Ok(())
    }

    /// Sets a threshold, given as `ID.NAME=VALUE`.
    ///
    /// # Errors
    /// When there is no such rule or threshold, or the value is no number.
    pub fn set(&mut self, text: &str) -> Result<(), RuleError> {
        let unknown = |what: String| RuleError::Unknown(format!("'{text}': {what}"));
        let parts = text
            .split_once('=')
            .and_then(|(name, value)| Some((name.rsplit_once('.')?, value)));
        let ((id, name), value) =
            parts.ok_or_else(|| unknown("expected ID.NAME=VALUE".to_owned()))?;
        let value: f64 = value
            .trim()
            .parse()
            .map_err(|_| unknown("the value is no number".to_owned()))?;
        self.check(id)?;
        let rule = self.rules.iter_mut().find(|rule| rule.id() == id);
        let rule = rule.ok_or_else(|| unknown("there is no such rule".to_owned()))?;
        let thresholds = rule.thresholds_text().unwrap_or_else(|| "none".to_owned());
        match rule.written.thresholds.get_mut(name) {
            Some(known) => *known = value,
            None => {
                return Err(unknown(format!(
                    "the rule has no such threshold; it has {thresholds}"
                )));
            }
        }
        Ok(())
    }
}

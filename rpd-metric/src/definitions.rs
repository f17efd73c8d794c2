//! Counter definition files: counters, the hardware events that they count, and formulas of derived ones.
//!
//! The current form is a list:
//!
//! ```yaml
//! rocprofiler-sdk:
//!   counters-schema-version: 1
//!   counters:
//!     - name: BUSY_CYCLES
//!       description: Cycles times compute units
//!       definitions:
//!         - architectures: [gfx90a, gfx942]
//!           expression: reduce(GRBM_GUI_ACTIVE,max)*CU_NUM
//!         - architectures: [gfx908]
//!           block: SQ
//!           event: 4
//! ```
//!
//! The older form, which SDK 1.0 does not read any more, is a map of names; [`Definitions::to_yaml`] turns
//! both into the current one.
//!
//! ```yaml
//! BUSY_CYCLES:
//!   architectures:
//!     gfx90a/gfx942:
//!       expression: reduce(GRBM_GUI_ACTIVE,max)*CU_NUM
//!   description: Cycles times compute units
//! ```

mod expansion;
mod limits;

use std::{collections::HashSet, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{
        DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};

use crate::expression::{Expression, ParseError};
pub use expansion::ExpansionError;

/// The schema version that is known.
const VERSION: u64 = 1;

/// The counters of a definition file, and the form of the file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Definitions {
    /// Counters in the order of the file; no name twice for one architecture.
    pub counters: Vec<Counter>,
    /// Layout of the file that the definitions were read from.
    pub form: Form,
}

/// The layout of a definition file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// A list under `rocprofiler-sdk: counters:`.
    #[default]
    List,
    /// A map from names to architectures, as before SDK 1.0.
    Map,
}

/// A counter as a file defines it.
#[derive(Debug, Clone, PartialEq)]
pub struct Counter {
    /// Name of the counter.
    pub name: String,
    /// Description for listings.
    pub description: String,
    /// The definitions of the counter, each for some architectures.
    pub definitions: Vec<Definition>,
}

/// The definition of a counter on some architectures.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The architectures, such as `gfx90a`.
    pub architectures: Vec<String>,
    /// The source of the counter's values.
    pub source: Source,
    /// Description for people, where it differs from the counter's.
    pub description: Option<String>,
}

/// The source of a counter's values.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// A hardware block counts them.
    Event {
        /// Name of the block, such as `SQ`.
        block: String,
        /// Number of the event within the block.
        event: u64,
    },
    /// The counter is computed by a formula.
    Expression(Expression),
}

/// Fault for which a definition file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct DefinitionError {
    /// Line from 1, 0 when unknown.
    pub line: usize,
    /// Column of the error, from 1.
    pub column: usize,
    /// Description of the error, in one line.
    pub message: String,
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.message)
    }
}

impl Definitions {
    /// Reads a definition file.
    ///
    /// # Errors
    /// The first error, with its place: YAML syntax, lists and mappings that are nested too deeply or too many, a missing part, an
    /// expression, a name used twice.
    pub fn parse(text: &str) -> Result<Self, DefinitionError> {
        // Before the tree is built, because that may take very long for a malicious file.
        limits::check(text)?;
        match serde_yaml::from_str::<File>(text) {
            Ok(file) => Ok(file.0),
            Err(e) => Err(located(&e)),
        }
    }

    /// The counters of an architecture, each with its source there.
    pub fn on<'a>(
        &'a self,
        architecture: &'a str,
    ) -> impl Iterator<Item = (&'a Counter, &'a Definition)> + 'a {
        self.counters.iter().filter_map(move |counter| {
            let definition = counter
                .definitions
                .iter()
                .find(|d| d.architectures.iter().any(|a| a == architecture))?;
            Some((counter, definition))
        })
    }

    /// The definitions as a file in the current form, which is the only one that SDK 1.0 reads.
    pub fn to_yaml(&self) -> String {
        let mut yaml = String::from("rocprofiler-sdk:\n  counters-schema-version: 1\n");
        if self.counters.is_empty() {
            return yaml + "  counters: []\n";
        }
        yaml += "  counters:\n";
        for counter in &self.counters {
            yaml += &format!("    - name: {}\n", quoted(&counter.name));
            yaml += &format!("      description: {}\n", quoted(&counter.description));
            yaml += "      properties: []\n      definitions:\n";
            for definition in &counter.definitions {
                let list: Vec<String> =
                    definition.architectures.iter().map(|a| quoted(a)).collect();
                yaml += &format!("        - architectures: [{}]\n", list.join(", "));
                // The SDK ignores unknown keys.
                if let Some(description) = &definition.description {
                    yaml += &format!("          description: {}\n", quoted(description));
                }
                match &definition.source {
                    Source::Event { block, event } => {
                        yaml += &format!("          block: {}\n", quoted(block));
                        yaml += &format!("          event: {event}\n");
                    }
                    Source::Expression(expression) => {
                        let text = quoted(expression.text());
                        yaml += &format!("          expression: {text}\n");
                    }
                }
            }
        }
        yaml
    }
}

/// A text between double quotes.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted += "\\n",
            '\t' => quoted += "\\t",
            // YAML allows no control characters, not even between quotes.
            c if c.is_control() => quoted += &format!("\\U{:08X}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// An error of the YAML parser, with its place removed from the message.
fn located(error: &serde_yaml::Error) -> DefinitionError {
    // Messages repeat what is in the file, line breaks included.
    let text = error.to_string().replace(char::is_control, " ");
    let Some(place) = error.location() else {
        return DefinitionError {
            line: 0,
            column: 0,
            message: text,
        };
    };
    // The place has fields of its own, and is printed before the message.
    let suffix = format!(" at line {} column {}", place.line(), place.column());
    DefinitionError {
        line: place.line(),
        column: place.column(),
        message: text.replacen(&suffix, "", 1),
    }
}

/// A file in either form.
struct File(Definitions);

impl<'de> Deserialize<'de> for File {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TopLevel;
        impl<'de> Visitor<'de> for TopLevel {
            type Value = File;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("counter definitions")
            }

            fn visit_unit<E>(self) -> Result<File, E> {
                Ok(File(Definitions::default()))
            }

            fn visit_none<E>(self) -> Result<File, E> {
                Ok(File(Definitions::default()))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<File, A::Error> {
                let mut definitions = Definitions::default();
                let mut seen = Seen::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "rocprofiler-sdk" {
                        definitions
                            .counters
                            .extend(map.next_value::<Root>()?.counters.0);
                        continue;
                    }
                    definitions.form = Form::Map;
                    definitions.counters.push(map.next_value_seed(OlderForm {
                        name,
                        seen: &mut seen,
                    })?);
                }
                Ok(File(definitions))
            }
        }
        from.deserialize_any(TopLevel)
    }
}

/// The list below the key `rocprofiler-sdk`.
#[derive(Deserialize)]
#[serde(expecting = "a map with `counters`")]
struct Root {
    #[serde(
        rename = "counters-schema-version",
        default,
        deserialize_with = "version"
    )]
    _version: (),
    counters: List,
}

fn version<'de, D: Deserializer<'de>>(from: D) -> Result<(), D::Error> {
    let version = u64::deserialize(from)?;
    if version != VERSION {
        return Err(D::Error::custom(format!(
            "counters-schema-version is {version}, {VERSION} is known"
        )));
    }
    Ok(())
}

/// Pairs of counter and architecture that have a definition already.
type Seen = HashSet<(String, String)>;

fn note<E: serde::de::Error>(seen: &mut Seen, counter: &Counter) -> Result<(), E> {
    if counter.definitions.is_empty() {
        return Err(E::custom(format!("`{}` has no definitions", counter.name)));
    }
    for definition in &counter.definitions {
        for architecture in &definition.architectures {
            let name = &counter.name;
            // Which of two definitions a provider would take cannot be foreseen.
            if !seen.insert((name.clone(), architecture.clone())) {
                return Err(E::custom(format!(
                    "`{name}` is defined twice for {architecture}"
                )));
            }
        }
    }
    Ok(())
}

struct List(Vec<Counter>);

impl<'de> Deserialize<'de> for List {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Items;
        impl<'de> Visitor<'de> for Items {
            type Value = List;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of counters")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<List, A::Error> {
                let mut list = Vec::new();
                let mut seen = Seen::default();
                while let Some(counter) = items.next_element_seed(NewerForm { seen: &mut seen })? {
                    list.push(counter);
                }
                Ok(List(list))
            }
        }
        from.deserialize_seq(Items)
    }
}

/// An element of the list. An error about the whole element is made while its map is read, so that the place of
/// the error is the element's.
struct NewerForm<'a> {
    seen: &'a mut Seen,
}

impl<'de> DeserializeSeed<'de> for NewerForm<'_> {
    type Value = Counter;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Counter, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for NewerForm<'_> {
    type Value = Counter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a counter with name, description and definitions")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Counter, A::Error> {
        #[derive(Deserialize)]
        struct Item {
            name: Name,
            description: String,
            definitions: Vec<PlacedDefinition>,
        }
        let item = Item::deserialize(MapAccessDeserializer::new(map))?;
        let counter = Counter {
            name: item.name.0,
            description: item.description,
            definitions: item.definitions.into_iter().map(|p| p.0).collect(),
        };
        note(self.seen, &counter)?;
        Ok(counter)
    }
}

/// A counter of the older form.
struct OlderForm<'a> {
    name: String,
    seen: &'a mut Seen,
}

impl<'de> DeserializeSeed<'de> for OlderForm<'_> {
    type Value = Counter;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Counter, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OlderForm<'_> {
    type Value = Counter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a counter with architectures and description")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Counter, A::Error> {
        #[derive(Deserialize)]
        struct Item {
            architectures: Architectures,
            #[serde(default)]
            description: String,
        }
        check_name::<A::Error>(&self.name)?;
        let item = Item::deserialize(MapAccessDeserializer::new(map))?;
        let counter = Counter {
            name: self.name,
            description: item.description,
            definitions: item.architectures.0,
        };
        note(self.seen, &counter)?;
        Ok(counter)
    }
}

/// The architectures of the older form, `gfx90a/gfx942: {...}`.
struct Architectures(Vec<Definition>);

impl<'de> Deserialize<'de> for Architectures {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Architectures;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("architectures with their definitions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut list = Vec::new();
                while let Some(names) = map.next_key::<String>()? {
                    let mut definition = map.next_value::<PlacedDefinition>()?.0;
                    definition.architectures = names.split('/').map(str::to_owned).collect();
                    list.push(definition);
                }
                Ok(Architectures(list))
            }
        }
        from.deserialize_map(Entries)
    }
}

/// A name that expressions can use.
struct Name(String);

fn check_name<E: serde::de::Error>(name: &str) -> Result<(), E> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let first = name.chars().next();
    if first.is_none_or(|c| c.is_ascii_digit()) || !name.chars().all(word) {
        return Err(E::custom(format!(
            "`{name}` is not a name: letters, digits and underscores make one"
        )));
    }
    // An expression with such a name would be read as a call.
    if ["reduce", "select", "accumulate"].contains(&name) {
        return Err(E::custom(format!("`{name}` is the name of a function")));
    }
    Ok(())
}

/// Makes a type out of a scalar, with errors placed at the scalar.
macro_rules! from_text {
    ($type:ident, $expecting:literal, |$text:ident| $make:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                struct Text;
                impl<'de> Visitor<'de> for Text {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, $text: &str) -> Result<$type, E> {
                        $make
                    }
                }
                from.deserialize_str(Text)
            }
        }
    };
}

from_text!(Name, "the name of a counter", |text| {
    check_name(text)?;
    Ok(Name(text.to_owned()))
});

/// An expression in a file.
struct Formula(Expression);

from_text!(Formula, "an expression", |text| {
    let wrong = |e: ParseError| E::custom(format!("in `{}`: {e}", excerpt(text, e.column)));
    Expression::parse(text).map(Formula).map_err(wrong)
});

/// An excerpt of a text around a column (from 1), short enough for a message.
fn excerpt(text: &str, column: usize) -> String {
    const MOST: usize = 120;
    let length = text.chars().count();
    if length <= MOST {
        return text.to_owned();
    }
    let begin = column.saturating_sub(MOST / 2).min(length - MOST);
    let shown: String = text.chars().skip(begin).take(MOST).collect();
    let before = if begin > 0 { "..." } else { "" };
    let after = if begin + MOST < length { "..." } else { "" };
    format!("{before}{shown}{after}")
}

/// A definition in a file: `architectures` is filled in by the older form.
struct PlacedDefinition(Definition);

impl<'de> Deserialize<'de> for PlacedDefinition {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = PlacedDefinition;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a definition with block and event, or with expression")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<PlacedDefinition, A::Error> {
                let mut architectures: Vec<String> = Vec::new();
                let (mut block, mut event, mut formula, mut description) = (
                    None::<String>,
                    None::<Event>,
                    None::<Formula>,
                    None::<String>,
                );
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "architectures" => architectures = map.next_value()?,
                        "block" => block = map.next_value()?,
                        "event" => event = map.next_value()?,
                        "expression" => formula = map.next_value()?,
                        "description" => description = map.next_value()?,
                        // Newer files may have keys that are of no use here.
                        _ => {
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                let source = match (formula, block, event) {
                    (Some(formula), ..) => Source::Expression(formula.0),
                    (None, Some(block), Some(Event(event))) => Source::Event { block, event },
                    (None, Some(_), None) => return Err(A::Error::missing_field("event")),
                    (None, None, Some(_)) => return Err(A::Error::missing_field("block")),
                    (None, None, None) => {
                        let wanted = "neither `expression` nor `block` and `event`";
                        return Err(A::Error::custom(wanted));
                    }
                };
                Ok(PlacedDefinition(Definition {
                    architectures,
                    source,
                    description,
                }))
            }
        }
        from.deserialize_map(Fields)
    }
}

/// An event number, which the file may have as a number or as text.
struct Event(u64);

from_text!(Event, "an event number", |text| {
    let wrong = |_| E::custom(format!("`{text}` is not an event number"));
    text.parse().map(Event).map_err(wrong)
});

#[cfg(test)]
mod tests;

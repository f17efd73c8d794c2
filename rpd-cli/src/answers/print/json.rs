//! JSON of answers: the envelope, and objects of lines.

use rpd_analysis::answer::{Unit, Value};
use rpd_analysis::records::Facts;
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::json;

use super::{Shown, ShownSection, sum};
use crate::failure;

struct ValueObject<'a>(&'a Value);

impl Serialize for ValueObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null => serializer.serialize_none(),
            Value::Integer(value) => serializer.serialize_i64(*value),
            Value::Number(value) => serializer.serialize_f64(*value),
            Value::Text(text) => serializer.serialize_str(text),
        }
    }
}

/// A row of a section: its shown columns by name.
pub(super) struct RowObject<'a>(pub(super) &'a ShownSection<'a>, pub(super) &'a [Value]);

impl Serialize for RowObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.columns.len()))?;
        for place in &self.0.columns {
            map.serialize_entry(
                self.0.section.columns[*place].name,
                &ValueObject(&self.1[*place]),
            )?;
        }
        map.end()
    }
}

struct Rows<'a>(&'a ShownSection<'a>);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.rows.iter().map(|row| RowObject(self.0, row)))
    }
}

struct SectionObject<'a>(&'a ShownSection<'a>);

impl SectionObject<'_> {
    fn columns(&self) -> serde_json::Value {
        let shown = self.0;
        let columns = shown.columns.iter().map(|place| {
            let column = &shown.section.columns[*place];
            json!({
                "name": column.name,
                "unit": column.unit.label(),
                "type": column.unit.type_name(),
                "label": column.label,
            })
        });
        columns.collect()
    }

    fn truncated(&self) -> serde_json::Value {
        let shown = self.0.rows.len() as u64;
        let is_cut = shown < self.0.total;
        json!({
            "shown": shown,
            "total": self.0.total,
            "rest_ns": self.0.rest,
            "next": is_cut.then_some("--limit 0"),
        })
    }
}

impl Serialize for SectionObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("columns", &self.columns())?;
        map.serialize_entry("rows", &Rows(self.0))?;
        map.serialize_entry("truncated", &self.truncated())?;
        map.end()
    }
}

/// The envelope; with rows, or without them as the first of lines.
pub(super) struct Envelope<'a>(pub(super) &'a Shown<'a>, pub(super) bool);

impl Serialize for Envelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Envelope(shown, has_rows) = self;
        let answer = shown.answer;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("schema", "rpd.answer/1")?;
        map.serialize_entry("command", answer.command)?;
        map.serialize_entry("rpd", env!("CARGO_PKG_VERSION"))?;
        map.serialize_entry("inputs", &inputs(shown.facts))?;
        let window = answer.window.map(|window| {
            json!({
                "kind": window.kind,
                "start_ns": window.start,
                "end_ns": window.end,
                "length_ns": window.length(),
            })
        });
        map.serialize_entry("window", &window)?;
        map.serialize_entry("parameters", &Parameters(&answer.parameters))?;
        if let Some(main) = shown.sections.get(shown.main) {
            let object = SectionObject(main);
            map.serialize_entry("section", main.section.name)?;
            map.serialize_entry("columns", &object.columns())?;
            if *has_rows {
                map.serialize_entry("rows", &Rows(main))?;
            }
            map.serialize_entry("totals", &Totals(main))?;
            map.serialize_entry("truncated", &object.truncated())?;
            if *has_rows {
                map.serialize_entry("sections", &Others(shown))?;
            }
        } else {
            map.serialize_entry("section", &None::<&str>)?;
            map.serialize_entry("columns", &[(); 0])?;
            map.serialize_entry("rows", &[(); 0])?;
        }
        let missing: Vec<_> = answer
            .missing
            .iter()
            .map(|missing| {
                json!({
                    "what": missing.what,
                    "affects": missing.affects,
                    "because": missing.because,
                    "record": (!missing.record.is_empty()).then(|| format!("rpd {} ...", missing.record)),
                })
            })
            .collect();
        map.serialize_entry("missing", &missing)?;
        let warnings: Vec<_> = answer
            .warnings
            .iter()
            .map(|warning| json!({"code": warning.code, "level": warning.level.word(), "text": warning.text}))
            .collect();
        map.serialize_entry("warnings", &warnings)?;
        map.serialize_entry(
            "provenance",
            &json!({
                "passes": passes(shown.facts),
                "skew_ns": answer.skew,
                "cost_share": null,
                "lost_records": shown.facts.recorded.lost,
            }),
        )?;
        map.end()
    }
}

/// Number of recordings that are there for their counters or samples alone; null when there is none.
fn passes(facts: &Facts) -> Option<usize> {
    let passes = facts.processes.iter().filter(|process| process.is_evidence);
    Some(passes.count()).filter(|count| *count > 0)
}

fn inputs(facts: &Facts) -> serde_json::Value {
    let gpus: Vec<_> = facts
        .gpus
        .iter()
        .map(|gpu| {
            json!({
                "gpu": gpu.number,
                "node": gpu.node,
                "uuid": gpu.id,
                "arch": gpu.arch,
                "name": gpu.name,
                "simulated": gpu.is_simulated,
            })
        })
        .collect();
    let inputs = facts.processes.iter().map(|process| {
        json!({
            "path": process.path,
            "guid": process.guid,
            "host": process.host,
            "pid": process.pid,
            "rank": process.rank,
            "gpus": gpus,
        })
    });
    inputs.collect()
}

struct Parameters<'a>(&'a [(&'static str, Value)]);

impl Serialize for Parameters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.0
                .iter()
                .map(|(name, value)| (name, ValueObject(value))),
        )
    }
}

/// Sums of the columns of times and bytes over all rows of a section, whether they are shown or not.
struct Totals<'a>(&'a ShownSection<'a>);

impl Serialize for Totals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shown = self.0;
        let is_whole = shown.section.rows.len() as u64 == shown.section.total;
        let columns = shown.section.columns.iter().enumerate();
        let summed = columns.filter(|(_, column)| {
            let is_sum = column.name.ends_with("_ns") && !column.name.contains("start");
            is_whole && is_sum && column.unit == Unit::Nanoseconds
        });
        let rows: Vec<&[Value]> = shown.section.rows.iter().map(Vec::as_slice).collect();
        serializer.collect_map(summed.map(|(place, column)| (column.name, sum(&rows, place))))
    }
}

struct Others<'a>(&'a Shown<'a>);

impl Serialize for Others<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let sections = self.0.sections.iter().enumerate();
        let others = sections.filter(|(index, _)| *index != self.0.main);
        serializer.collect_map(others.map(|(_, shown)| (shown.section.name, SectionObject(shown))))
    }
}

/// The envelope of an error.
pub(in crate::answers) fn error(command: &str, error: &anyhow::Error) -> String {
    let text = failure::line(error);
    let object = json!({
        "schema": "rpd.answer/1",
        "command": command,
        "rpd": env!("CARGO_PKG_VERSION"),
        "error": {"code": failure::status(error), "text": text, "hint": null},
    });
    format!("{object:#}\n")
}

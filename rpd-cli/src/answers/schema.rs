//! `rpd schema`: the JSON schema of answers, from the descriptions of their columns.

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;
use rpd_analysis::FORMS;
use rpd_analysis::answer::{Column, Form, Unit};
use serde_json::{Value, json};

use crate::commands::parse;
use crate::failure::Failure;

/// Print the JSON schema of an answer, or the list of answers
#[derive(Debug, Parser)]
struct Arguments {
    /// Command whose answer is described
    #[arg(value_name = "ANSWER")]
    answer: Option<String>,
}

/// Runs `rpd schema`; returns the exit status.
pub(crate) fn run(words: &[OsString]) -> Result<u8> {
    let Some(given) = parse::<Arguments>("schema", words)? else {
        return Ok(0);
    };
    let Some(name) = given.answer else {
        let lines = FORMS
            .iter()
            .map(|form| format!("{}: {}\n", form.command, form.question));
        return crate::print(&lines.collect::<String>());
    };
    let Some(form) = FORMS.iter().find(|form| form.command == name) else {
        let names: Vec<&str> = FORMS.iter().map(|form| form.command).collect();
        return Err(Failure::usage(format!(
            "schema: '{name}' is no answer; choose from {}",
            names.join(", ")
        ))
        .into());
    };
    crate::print(&format!("{:#}\n", schema(form)))
}

/// The schema of a command's envelope.
pub(crate) fn schema(form: &Form) -> Value {
    let sections: serde_json::Map<String, Value> = form
        .sections
        .iter()
        .map(|(name, what, columns)| {
            let table = json!({
                "description": what,
                "type": "object",
                "properties": {
                    "columns": {"$ref": "#/$defs/columns"},
                    "rows": {"type": "array", "items": row(columns)},
                    "truncated": {"$ref": "#/$defs/truncated"},
                },
                "required": ["columns", "rows", "truncated"],
            });
            ((*name).to_owned(), table)
        })
        .collect();
    let rows: Vec<Value> = form.sections.iter().map(|section| row(section.2)).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("rpd {}", form.command),
        "description": form.question,
        "type": "object",
        "properties": {
            "schema": {"const": "rpd.answer/1"},
            "command": {"const": form.command},
            "rpd": {"type": "string"},
            "inputs": {"type": "array", "items": {"type": "object"}},
            "window": {
                "type": ["object", "null"],
                "properties": {
                    "kind": {"enum": ["span", "run", "given", "steady"]},
                    "start_ns": {"type": "integer"},
                    "end_ns": {"type": "integer"},
                    "length_ns": {"type": "integer"},
                },
                "required": ["kind", "start_ns", "end_ns", "length_ns"],
            },
            "parameters": {"type": "object"},
            "section": {"type": ["string", "null"]},
            "columns": {"$ref": "#/$defs/columns"},
            "rows": {"type": "array", "items": {"anyOf": rows}},
            "totals": {"type": "object"},
            "truncated": {"$ref": "#/$defs/truncated"},
            "sections": {"type": "object", "properties": sections, "additionalProperties": false},
            "missing": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "what": {"type": "string"},
                    "affects": {"type": "array", "items": {"type": "string"}},
                    "because": {"type": "string"},
                    "record": {"type": ["string", "null"]},
                },
                "required": ["what", "affects", "because", "record"],
            }},
            "warnings": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "level": {"enum": ["note", "caution"]},
                    "text": {"type": "string"},
                },
                "required": ["code", "level", "text"],
            }},
            "provenance": {"type": "object"},
            "error": {
                "type": "object",
                "properties": {"code": {"type": "integer"}, "text": {"type": "string"}, "hint": {"type": ["string", "null"]}},
                "required": ["code", "text", "hint"],
            },
        },
        "required": ["schema", "command", "rpd"],
        "$defs": {
            "columns": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "unit": {"type": ["string", "null"]},
                    "type": {"enum": ["string", "integer", "number"]},
                    "label": {"type": "string"},
                },
                "required": ["name", "unit", "type", "label"],
            }},
            "truncated": {
                "type": "object",
                "properties": {
                    "shown": {"type": "integer"},
                    "total": {"type": "integer"},
                    "rest_ns": {"type": ["integer", "null"]},
                    "next": {"type": ["string", "null"]},
                },
                "required": ["shown", "total", "rest_ns", "next"],
            },
        },
    })
}

/// The schema of a row.
fn row(columns: &[Column]) -> Value {
    let properties = columns.iter().map(|column| {
        let mut kinds = vec![column.unit.type_name()];
        // What a recording cannot tell is null; keys are always there.
        if column.unit != Unit::Key || column.name != "key" {
            kinds.push("null");
        }
        let description = json!({"type": kinds, "description": column.meaning});
        (column.name.to_owned(), description)
    });
    let properties: serde_json::Map<String, Value> = properties.collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": names,
        "additionalProperties": false,
    })
}

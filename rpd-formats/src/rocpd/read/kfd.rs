//! Events of the kernel driver, which databases have among the regions.

use std::collections::{BTreeMap, HashMap};
use std::io;

use rpd_core::domain::Kind;
use rpd_core::ids::{Nanoseconds, ThreadId};
use rpd_core::session::{Growth, KfdEventRow};
use rusqlite::{Result, Row};
use serde::Deserialize;

use super::beyond;
use super::info::Info;
use super::scan::{Source, bits, bytes, word};
use crate::kfd;

/// What the event of a region has beyond it.
#[derive(Deserialize, Default)]
struct Extdata {
    /// Fields by name. The original writes texts.
    #[serde(default)]
    kfd: BTreeMap<String, serde_json::Value>,
}

/// Reads the regions whose category is one of `categories`, each with its kind, into the session.
pub(super) fn read(
    source: &Source<'_>,
    info: &mut Info,
    growth: &mut Growth,
    categories: &HashMap<u32, Kind>,
) -> Result<()> {
    if categories.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<String> = categories.keys().map(u32::to_string).collect();
    ids.sort();
    let sql = format!(
        "SELECT r.tid, r.start, r.\"end\", r.name_id, e.category_id, e.extdata
            FROM (SELECT * FROM rocpd_region WHERE {condition}) r
                JOIN (SELECT * FROM rocpd_event WHERE {condition}) e ON e.id = r.event_id
            WHERE e.category_id IN ({ids})",
        condition = source.condition(),
        ids = ids.join(", ")
    );
    let mut unread: BTreeMap<String, i64> = BTreeMap::new();
    let mut statement = source.connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        source.stored(event(row, info, growth, categories, &mut unread))?;
    }
    let notes = &mut info.session.ledger.notes;
    notes.extend(unread.into_iter().map(|(key, count)| {
        let place = format!("rocpd_event.extdata.kfd.{key}");
        beyond::left_out(count, "values", &place)
    }));
    Ok(())
}

/// Takes a row; fields that are none of an event, or have no value of it, are counted in `unread`.
fn event(
    row: &Row<'_>,
    info: &mut Info,
    growth: &mut Growth,
    categories: &HashMap<u32, Kind>,
    unread: &mut BTreeMap<String, i64>,
) -> io::Result<()> {
    let Some(&kind) = categories.get(&word(row, 4)) else {
        return Ok(());
    };
    let name = info.string(word(row, 3));
    let operation = info.session.add_named_operation(kind, name);
    let start = bits(row, 1);
    let mut event = KfdEventRow {
        operation,
        start: Nanoseconds(start),
        end: Nanoseconds(bits(row, 2).max(start)),
        process: ThreadId(word(row, 0)),
        ..KfdEventRow::default()
    };
    let data: Extdata = serde_json::from_slice(bytes(row, 5)).unwrap_or_default();
    for (key, value) in data.kfd {
        let text = match value {
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        if !kfd::set_field(&mut event, &key, &text, |node| info.agent(node)) {
            *unread.entry(key).or_default() += 1;
        }
    }
    info.session.kfd_events.push(event);
    growth.taken(&mut info.session)
}

//! What databases of later schemas have that a session has no place for. It is counted and named, so that nothing is left
//! out silently.

use std::collections::HashSet;

use rusqlite::Result;

use super::super::sql::{identifier, literal};
use super::super::tables;
use super::Recording;
use super::counters::{PLACES, SAMPLE, columns};
use super::info::Info;
use super::scan::Source;

/// Tables of later schemas and of development branches, and what their rows are.
const TABLES: [(&str, &str); 5] = [
    ("rocpd_graph_launch", "launches of graphs"),
    ("rocpd_hip_event", "HIP events"),
    ("rocpd_gpu_pc_sample", "PC samples"),
    ("rocpd_blob_event", "records in binary form"),
    ("rocpd_event_operation", "operations of events"),
];

/// A column of a later schema.
struct LaterColumn {
    table: &'static str,
    name: &'static str,
    /// Value in rows to which it does not apply, as SQL.
    absent: &'static str,
    /// What the values are.
    meaning: &'static str,
}

const COLUMNS: [LaterColumn; 2] = [
    LaterColumn {
        table: "rocpd_kernel_dispatch",
        name: "pipe_id",
        absent: "-1",
        meaning: "pipes of dispatches",
    },
    LaterColumn {
        table: "rocpd_pmc_event",
        name: SAMPLE,
        absent: "NULL",
        meaning: "values of counters that were sampled while kernels ran (SPM)",
    },
];

/// Columns of later schemas whose content is read, or is said with that of another column.
const WITHOUT_NOTE: [(&str, &str); 1] = [("rocpd_info_pmc", "spm_support")];

/// Tables with names of the schema that rpd itself adds.
const OWN: [&str; 4] = [
    "rocpd_api",
    "rocpd_ustring",
    "rocpd_stackframe",
    "rocpd_stackstrings",
];

/// Ids of the samples that belong to sampled counters, and are no records of calls.
pub(super) fn samples_of_counters(source: &Source<'_>) -> Result<HashSet<i64>> {
    let has_column = columns(source, "rocpd_pmc_event")?;
    if !has_column.iter().any(|column| column == SAMPLE) {
        return Ok(HashSet::new());
    }
    let sql = format!(
        "SELECT DISTINCT {SAMPLE} FROM rocpd_pmc_event WHERE {SAMPLE} IS NOT NULL AND {}",
        source.condition()
    );
    let mut statement = source.connection.prepare(&sql)?;
    let ids = statement.query_map([], |row| row.get(0))?;
    ids.collect()
}

/// Notes in the session's ledger what a recording has beyond the session.
pub(super) fn note(source: &Source<'_>, recording: &Recording, info: &mut Info) -> Result<()> {
    let suffix = format!("_{}", recording.guid.replace('-', "_"));
    let sql = format!(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd@_%' ESCAPE '@' AND substr(name, -{}) = {} \
         ORDER BY name",
        suffix.len(),
        literal(&suffix)
    );
    let mut statement = source.connection.prepare(&sql)?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?;
    let mut notes = Vec::new();
    for table in names.collect::<Result<Vec<_>>>()? {
        let base = &table[..table.len() - suffix.len()];
        // Tables of later schemas are read through their views, as all others.
        let known = tables::columns_of(base).filter(|_| source.has(base).unwrap_or(false));
        match known {
            Some(known) => note_columns(source, &table, base, &known, &mut notes)?,
            None if OWN.contains(&base) => {}
            None => {
                let meaning = TABLES.iter().find(|(name, _)| *name == base);
                let meaning = meaning.map_or("rows", |(_, meaning)| meaning);
                let count = count(source, &table, "1")?;
                if count > 0 {
                    notes.push(left_out(count, meaning, base));
                }
            }
        }
    }
    info.session.ledger.notes.append(&mut notes);
    Ok(())
}

/// Notes the columns of a table that are not `known`, where any row has a value in them.
fn note_columns(
    source: &Source<'_>,
    table: &str,
    base: &str,
    known: &[&str],
    notes: &mut Vec<String>,
) -> Result<()> {
    for column in columns(source, table)? {
        let is_place = base == "rocpd_pmc_event" && PLACES.iter().any(|(name, ..)| *name == column);
        let is_said = WITHOUT_NOTE.contains(&(base, &*column));
        if known.contains(&&*column) || is_place || is_said {
            continue;
        }
        let later = COLUMNS
            .iter()
            .find(|later| later.table == base && later.name == column);
        let (absent, meaning) =
            later.map_or(("NULL", "values"), |later| (later.absent, later.meaning));
        let rows = format!("{} IS NOT {absent}", identifier(&column));
        let count = count(source, table, &rows)?;
        if count > 0 {
            notes.push(left_out(count, meaning, &format!("{base}.{column}")));
        }
    }
    Ok(())
}

fn count(source: &Source<'_>, table: &str, condition: &str) -> Result<i64> {
    let sql = format!(
        "SELECT count(*) FROM {} WHERE {condition}",
        identifier(table)
    );
    source.connection.query_row(&sql, [], |row| row.get(0))
}

pub(super) fn left_out(count: i64, meaning: &str, place: &str) -> String {
    format!("{count} {meaning} are left out: this rpd does not read {place}")
}

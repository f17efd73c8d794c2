//! Events of the kernel driver: regions of the process that they concern, each with a value of a counter of its kind.

use std::collections::BTreeSet;
use std::io;

use rpd_core::session::{KfdEventRow, Session};
use rusqlite::{Connection, Result, params};

use super::names::Names;
use super::rows::{NO_DATA, Writer};
use crate::json::Object;
use crate::kfd::{self, KINDS};

/// The first id of the counters.
const FIRST_COUNTER: i64 = 0x7000_0000_0000_0000;
/// Block of the counters.
pub(super) const BLOCK: &str = "KFD";

/// The ids of the counters of each kind: the first ones that no other counter has.
fn counters(session: &Session) -> [i64; KINDS.len()] {
    let used: BTreeSet<i64> = session
        .counters
        .iter()
        .map(|counter| counter.id.0.cast_signed())
        .collect();
    let mut free = (FIRST_COUNTER..).filter(|id| !used.contains(id));
    std::array::from_fn(|_| free.next().unwrap_or(FIRST_COUNTER))
}

/// Writes the rows that describe the counters, of a recording that has events.
pub(super) fn write_counters(
    connection: &Connection,
    names: &Names,
    session: &Session,
) -> Result<()> {
    if session.kfd_events.is_empty() {
        return Ok(());
    }
    let mut insert = connection.prepare(&format!(
        "INSERT INTO {} (id, agent_id, target_arch, name, symbol, description, component, value_type, block,
            expression, is_constant, is_derived, extdata)
            VALUES (?, NULL, NULL, ?, ?, ?, 'rocm', 'ABS', ?, '', 0, 0, ?)",
        names.table("rocpd_info_pmc")
    ))?;
    for (id, of) in counters(session).into_iter().zip(&KINDS) {
        let name = of.kind.file_name();
        insert.execute(params![id, name, name, of.description, BLOCK, NO_DATA])?;
    }
    Ok(())
}

/// What an event has beyond a region, as JSON.
pub(super) fn extdata(writer: &Writer<'_>, event: &KfdEventRow) -> String {
    let kind = writer.session.operations[event.operation].kind;
    let Some(subject) = kfd::subject(kind) else {
        return NO_DATA.to_owned();
    };
    let fields = kfd::fields(subject, event, |agent| {
        writer.ids.agent(agent).unwrap_or(-1)
    });
    let object = fields.iter().fold(Object::new(), |object, (key, value)| {
        object.text(key, value)
    });
    Object::new().json("kfd", &object.end()).end()
}

/// Calls `take` with the number of each event, its counter, and its value there.
pub(super) fn each_value(
    session: &Session,
    mut take: impl FnMut(usize, i64, f64) -> io::Result<()>,
) -> io::Result<()> {
    let counters = counters(session);
    let table = &session.kfd_events;
    for index in table.indices() {
        let event = table.row(index);
        let kind = session.operations[event.operation].kind;
        if let Some(place) = kfd::place(kind) {
            let value = kfd::value(KINDS[place].subject, &event);
            take(index, counters[place], value as f64)?;
        }
    }
    Ok(())
}

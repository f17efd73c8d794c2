//! Events of the kernel driver.

use rpd_core::options::Options;
use rpd_core::session::{KfdEventTable, Session};

use super::combined::Shape;
use super::row::Row;
use super::trace::AgentNames;
use crate::WriteError;
use crate::columns::columns;
use crate::file::TextFile;

struct Events<'a> {
    session: &'a Session,
    table: &'a KfdEventTable,
    agents: AgentNames,
    index: usize,
}

columns!(Events<'_> => Row<'r>, |event|
    "Kind": text(event.session.operations[event.table.operation[event.index]].kind.file_name()),
    "Operation": free_text(event.session.operation_name(event.table.operation[event.index])),
    "Process_Id": number(event.table.process[event.index].0),
    "Agent_Id": quoted(event.agents.get(event.table.agent[event.index])),
    "Destination_Agent_Id": quoted(event.agents.get(event.table.dst_agent[event.index])),
    "Prefetch_Agent_Id": quoted(event.agents.get(event.table.prefetch_agent[event.index])),
    "Preferred_Agent_Id": quoted(event.agents.get(event.table.preferred_agent[event.index])),
    "Start_Address": number(event.table.address[event.index]),
    "End_Address": number(event.table.end_address[event.index]),
    "Error_Code": number(event.table.error[event.index]),
    "Dropped_Events": number(event.table.count[event.index]),
    "Start_Timestamp": number(event.table.start[event.index].0),
    "End_Timestamp": number(event.table.end[event.index].0),
);

pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    options: &Options,
    shape: &Shape,
) -> Result<(), WriteError> {
    let table = &session.kfd_events;
    let mut events = Events {
        session,
        table,
        agents: AgentNames::new(session, options),
        index: 0,
    };
    let rows = table.indices();
    super::write_rows(file, shape, &mut events, rows, |events, index| {
        events.index = index;
    })
}

//! Writer of `agent_info.csv`.

use std::path::PathBuf;

use rpd_core::agent::{Agent, Property, Value};
use rpd_core::session::Session;

use super::combined::Shape;
use super::row::Row;
use super::{Records as _, write_header};
use crate::WriteError;
use crate::columns::{Columns as _, columns};
use crate::file::TextFile;

/// Properties without a column of their name among the numbers: the first three columns, what only programs need, and the
/// lengths of lists.
const NO_COLUMN: [&str; 8] = [
    "size",
    "mem_banks_count",
    "caches_count",
    "io_links_count",
    "node_id",
    "logical_node_id",
    "logical_node_type_id",
    "runtime_visibility",
];

/// The numeric columns after the first three.
fn numbers() -> impl Iterator<Item = &'static Property<Agent>> {
    let properties = Agent::PROPERTIES.iter();
    properties.filter(|property| !NO_COLUMN.contains(&property.name))
}

/// `max_waves_per_cu` as `Max_Waves_Per_Cu`.
fn capitalised(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect::<Vec<_>>().join("_")
}

/// Writes the agents in the order of their topology nodes.
pub(super) fn write(session: &Session, path: PathBuf) -> Result<PathBuf, WriteError> {
    let mut file = TextFile::create(path)?;
    write_rows(&mut file, session, &Shape::run(false))?;
    file.finish()
}

/// The columns before the numbers.
struct Place<'a>(&'a Agent);

columns!(Place<'_> => Row<'r>, |place|
    "Node_Id": number(place.0.node_id),
    "Logical_Node_Id": number(place.0.logical_node_id),
    "Agent_Type": text(place.0.agent_type.label()),
);

/// The columns behind the numbers.
struct Names<'a>(&'a Agent);

columns!(Names<'_> => Row<'r>, |names|
    "Name": text(&names.0.name),
    "Vendor_Name": text(&names.0.vendor_name),
    "Product_Name": text(&names.0.product_name),
    "Model_Name": text(&names.0.model_name),
);

/// Writes header and rows.
pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    shape: &Shape,
) -> Result<(), WriteError> {
    let mut of_numbers = Vec::new();
    for property in numbers() {
        let name = capitalised(property.name);
        match (property.get)(&Agent::default()) {
            Value::Unsigned(_) | Value::Signed(_) => of_numbers.push(name),
            Value::Dim3(_) => {
                of_numbers.extend(["X", "Y", "Z"].map(|axis| format!("{name}_{axis}")));
            }
        }
    }
    let names = Place::COLUMNS.iter().copied();
    let names = names.chain(of_numbers.iter().map(String::as_str));
    write_header(file, shape, names.chain(Names::COLUMNS.iter().copied()));

    let mut agents: Vec<&Agent> = session.agents.iter().collect();
    agents.sort_by_key(|agent| agent.node_id);
    for agent in agents {
        let mut row = Row::new(&mut file.buffer, &shape.row, shape);
        Place(agent).append_to(&mut row);
        for property in numbers() {
            match (property.get)(agent) {
                Value::Unsigned(value) => row.number(value),
                Value::Signed(value) => row.number(value),
                Value::Dim3([x, y, z]) => row.number(x).number(y).number(z),
            };
        }
        Names(agent).append_to(&mut row);
        row.end();
    }
    Ok(())
}

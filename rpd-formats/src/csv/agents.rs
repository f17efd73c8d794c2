//! Writer of `agent_info.csv`.

use std::path::PathBuf;

use rpd_core::agent::{Agent, Property, Value};
use rpd_core::session::Session;

use super::combined::Shape;
use super::{Row, write_header};
use crate::WriteError;
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

/// Writes header and rows.
pub(super) fn write_rows(
    file: &mut TextFile,
    session: &Session,
    shape: &Shape,
) -> Result<(), WriteError> {
    let mut columns = ["Node_Id", "Logical_Node_Id", "Agent_Type"]
        .map(str::to_owned)
        .to_vec();
    for property in numbers() {
        let name = capitalised(property.name);
        match (property.get)(&Agent::default()) {
            Value::Unsigned(_) | Value::Signed(_) => columns.push(name),
            Value::Dim3(_) => columns.extend(["X", "Y", "Z"].map(|axis| format!("{name}_{axis}"))),
        }
    }
    columns.extend(["Name", "Vendor_Name", "Product_Name", "Model_Name"].map(str::to_owned));
    write_header(file, shape, columns.iter().map(String::as_str));

    let mut agents: Vec<&Agent> = session.agents.iter().collect();
    agents.sort_by_key(|agent| agent.node_id);
    for agent in agents {
        let row = Row::new(&mut file.buffer, &shape.row)
            .number(agent.node_id)
            .number(agent.logical_node_id)
            .text(agent.agent_type.label());
        numbers()
            .fold(row, |row, property| match (property.get)(agent) {
                Value::Unsigned(value) => row.number(value),
                Value::Signed(value) => row.number(value),
                Value::Dim3([x, y, z]) => row.number(x).number(y).number(z),
            })
            .text(&agent.name)
            .text(&agent.vendor_name)
            .text(&agent.product_name)
            .text(&agent.model_name)
            .end();
    }
    Ok(())
}

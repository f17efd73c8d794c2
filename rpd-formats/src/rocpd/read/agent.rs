//! Reads agents from the JSON that describes them, and from the plain columns where the JSON is missing.

use rpd_core::agent::{self, Agent, AgentType, Cache, IoLink, MemoryBank, Property};
use rpd_core::ids::AgentHandle;
use serde_json::Value;

use crate::describe::{self, bit_fields};

/// The number that `json` has under a name; 0 when it has none.
pub(super) fn number(value: &Value, key: &str) -> u64 {
    let value = &value[key];
    value
        .as_u64()
        .or_else(|| value.as_i64().map(i64::cast_unsigned))
        .unwrap_or_default()
}

fn word(value: &Value, key: &str) -> u32 {
    number(value, key) as u32
}

/// Packs `{"a":1,"b":2}` into bits of the given widths.
fn pack(value: &Value, fields: &[(&str, u32)]) -> u32 {
    let mut shift = 0;
    fields.iter().fold(0, |packed, (name, width)| {
        let field = word(value, name) & ((1 << width) - 1);
        let packed = packed | field << shift;
        shift += width;
        packed
    })
}

/// An object with the properties that `json`, an element of `of`, has; the other properties are 0.
fn object<T: Default>(json: &Value, of: &str, properties: &[Property<T>]) -> T {
    let mut object = T::default();
    for property in properties {
        let name = property.name;
        // The present value has the property's type.
        let value = match (property.get)(&object) {
            agent::Value::Unsigned(_) => agent::Value::Unsigned(match bit_fields(of, name) {
                Some(fields) => pack(&json[name], fields).into(),
                None => number(json, name),
            }),
            agent::Value::Signed(_) => agent::Value::Signed(number(json, name) as i32),
            agent::Value::Dim3(_) => {
                agent::Value::Dim3(["x", "y", "z"].map(|axis| word(&json[name], axis)))
            }
        };
        (property.set)(&mut object, value);
    }
    object
}

/// The objects of the array in `json` that is called `of`.
fn objects<T: Default>(json: &Value, of: &str, properties: &[Property<T>]) -> Vec<T> {
    let list = json[of].as_array().map_or(&[][..], Vec::as_slice);
    list.iter()
        .map(|json| object(json, of, properties))
        .collect()
}

/// The agent that `json` describes; `None` when it describes none.
pub(super) fn from_json(json: &Value) -> Option<Agent> {
    let handle = json["id"]["handle"].as_u64()?;
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let mut agent = object(json, describe::AGENT, Agent::PROPERTIES);
    agent.handle = AgentHandle(handle);
    agent.agent_type = AgentType::from_number(number(json, "type"));
    (agent.name, agent.vendor_name) = (text("name"), text("vendor_name"));
    (agent.product_name, agent.model_name) = (text("product_name"), text("model_name"));
    let uuid = &json["uuid"]["bytes"];
    for (index, byte) in agent.uuid.iter_mut().enumerate() {
        *byte = number(uuid, &format!("value{index}")) as u8;
    }
    agent.mem_banks = objects(json, describe::BANKS, MemoryBank::PROPERTIES);
    agent.caches = objects(json, describe::CACHES, Cache::PROPERTIES);
    agent.io_links = objects(json, describe::LINKS, IoLink::PROPERTIES);
    Some(agent)
}

//! Agents: CPUs and GPUs as the provider describes them.

use rpd_spool::agent;
use serde::{Deserialize, Serialize};

use crate::ids::AgentHandle;
use crate::spool::reader::ByteStrings;

/// Form of agents in CSV files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentIndex {
    /// `Agent N`, N the topology node.
    Absolute,
    /// `Agent N`, N counting the visible agents.
    #[default]
    Relative,
    /// `CPU N` or `GPU N`, counting per type.
    TypeRelative,
}

/// The type of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AgentType {
    /// An agent that is neither a CPU nor a GPU, or whose type the provider does not say.
    #[default]
    Unknown,
    /// A processor of the host.
    Cpu,
    /// A GPU.
    Gpu,
    /// A network adapter. Databases of schema 3.0.1 have them; providers do not.
    Nic,
}

impl AgentType {
    /// The type with this number in the provider's structs and in files.
    pub const fn from_number(number: u64) -> AgentType {
        match number {
            1 => AgentType::Cpu,
            2 => AgentType::Gpu,
            _ => AgentType::Unknown,
        }
    }

    /// The number of the type in the provider's structs and in files.
    pub const fn number(self) -> u32 {
        match self {
            // The provider's structs have no number for a network adapter.
            AgentType::Unknown | AgentType::Nic => 0,
            AgentType::Cpu => 1,
            AgentType::Gpu => 2,
        }
    }

    /// `CPU`, `GPU`, `NIC` or `UNK`.
    pub const fn label(self) -> &'static str {
        match self {
            AgentType::Unknown => "UNK",
            AgentType::Cpu => "CPU",
            AgentType::Gpu => "GPU",
            AgentType::Nic => "NIC",
        }
    }

    /// The type with this label; `Unknown` for any other text.
    pub fn from_label(label: &str) -> AgentType {
        let all = [AgentType::Cpu, AgentType::Gpu, AgentType::Nic];
        let found = all.into_iter().find(|one| one.label() == label);
        found.unwrap_or_default()
    }
}

/// The value of a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A number that is never negative.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i32),
    /// Numbers for x, y and z.
    Dim3([u32; 3]),
}

/// A type of properties.
trait Number: Copy {
    fn read(from: Fields<'_>, offset: usize) -> Self;
    fn value(self) -> Value;
    /// The value as this type; 0 when it is of another sort.
    fn from_value(value: Value) -> Self;
}

macro_rules! unsigned {
    ($($type:ident)*) => {$(
        impl Number for $type {
            fn read(from: Fields<'_>, offset: usize) -> $type {
                $type::from_le_bytes(from.bytes(offset))
            }

            fn value(self) -> Value {
                Value::Unsigned(self.into())
            }

            fn from_value(value: Value) -> $type {
                match value {
                    Value::Unsigned(number) => number as $type,
                    Value::Signed(_) | Value::Dim3(_) => 0,
                }
            }
        }
    )*};
}
unsigned!(u16 u32 u64);

impl Number for i32 {
    fn read(from: Fields<'_>, offset: usize) -> i32 {
        i32::from_le_bytes(from.bytes(offset))
    }

    fn value(self) -> Value {
        Value::Signed(self)
    }

    fn from_value(value: Value) -> i32 {
        match value {
            Value::Signed(number) => number,
            Value::Unsigned(_) | Value::Dim3(_) => 0,
        }
    }
}

#[expect(non_camel_case_types, reason = "as the list of properties spells it")]
type dim3 = [u32; 3];

impl Number for dim3 {
    fn read(from: Fields<'_>, offset: usize) -> dim3 {
        [0, 4, 8].map(|step| u32::read(from, offset + step))
    }

    fn value(self) -> Value {
        Value::Dim3(self)
    }

    fn from_value(value: Value) -> dim3 {
        match value {
            Value::Dim3(numbers) => numbers,
            Value::Unsigned(_) | Value::Signed(_) => [0; 3],
        }
    }
}

/// A number that describes a `T`.
pub struct Property<T> {
    /// Name of the field, and of the key in files.
    pub name: &'static str,
    /// Reads the property's value.
    pub get: fn(&T) -> Value,
    /// Sets the property. A value of another type than [`Property::get`] returns is read as 0.
    pub set: fn(&mut T, Value),
}

/// `r#type` is called `type`.
const fn without_prefix(field: &'static str) -> &'static str {
    match field.as_bytes() {
        [b'r', b'#', ..] => field.split_at(2).1,
        _ => field,
    }
}

/// Defines a struct with the fields given and the properties of a list, and the table of the properties.
macro_rules! described {
    (
        { $(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* } }
        { $($property:ident: $property_type:ident = $offset:literal,)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the fields are the topology properties of the same name")]
        pub struct $name {
            $(pub $field: $type,)*
            $(pub $property: $property_type,)*
        }

        impl $name {
            /// The numbers of the provider's struct in its order.
            pub const PROPERTIES: &'static [Property<$name>] = &[
                $(Property {
                    name: without_prefix(stringify!($property)),
                    get: |from| from.$property.value(),
                    set: |to, value| to.$property = Number::from_value(value),
                },)*
            ];

            /// Reads the numbers; what `at` does not cover is 0.
            fn read(at: Fields<'_>) -> $name {
                let mut read = $name::default();
                $(read.$property = Number::read(at, $offset);)*
                read
            }
        }
    };
}

rpd_spool::agent_properties!(described, {
    /// An agent. Field meanings and units are those of the driver's topology tree.
    Agent {
        handle: AgentHandle,
        agent_type: AgentType,
        name: String,
        vendor_name: String,
        product_name: String,
        model_name: String,
        uuid: [u8; 16],
        mem_banks: Vec<MemoryBank>,
        caches: Vec<Cache>,
        io_links: Vec<IoLink>,
    }
});

rpd_spool::memory_bank_properties!(described, {
    /// A memory bank of an agent.
    MemoryBank {}
});

rpd_spool::cache_properties!(described, {
    /// A cache of an agent.
    Cache {}
});

rpd_spool::io_link_properties!(described, {
    /// A link between two agents.
    IoLink {}
});

impl Agent {
    /// Label and number in the numbering that `--agent-index` selects.
    pub fn label(&self, index: AgentIndex) -> (&'static str, i64) {
        match index {
            AgentIndex::Absolute => ("Agent", i64::from(self.node_id)),
            AgentIndex::Relative => ("Agent", i64::from(self.logical_node_id)),
            AgentIndex::TypeRelative => (
                self.agent_type.label(),
                i64::from(self.logical_node_type_id),
            ),
        }
    }
}

/// Reads numbers of a provider's struct, as far as it goes: fields that an older provider lacks are 0.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const N: usize>(self, offset: usize) -> [u8; N] {
        self.0
            .get(offset..)
            .and_then(|rest| rest.first_chunk())
            .copied()
            .unwrap_or([0; N])
    }
}

impl Agent {
    /// Reads an agent from the bytes `tail` behind the fixed part of a [`crate::spool::format::AgentRecord`]. Parts
    /// that are missing are empty.
    pub fn parse(handle: AgentHandle, tail: &[u8]) -> Agent {
        let mut parts = ByteStrings(tail).map(Option::unwrap_or_default);
        let mut part = || parts.next().unwrap_or_default();
        let raw = part();
        // At most the size that the struct states.
        let size = u64::read(Fields(raw), 0);
        let at = Fields(raw.get(..size as usize).unwrap_or(raw));
        let mut agent = Agent::read(at);
        agent.handle = handle;
        agent.agent_type = AgentType::from_number(u32::read(at, agent::TYPE_OFFSET).into());
        agent.uuid = at.bytes(agent::UUID_OFFSET);
        agent.mem_banks = structs(part(), agent::MEMORY_BANK_SIZE, MemoryBank::read);
        agent.caches = structs(part(), agent::CACHE_SIZE, Cache::read);
        agent.io_links = structs(part(), agent::IO_LINK_SIZE, IoLink::read);
        for text in [
            &mut agent.name,
            &mut agent.vendor_name,
            &mut agent.product_name,
            &mut agent.model_name,
        ] {
            *text = String::from_utf8_lossy(part()).into_owned();
        }
        agent
    }
}

/// The elements of an array of structs of `size` bytes.
fn structs<T>(array: &[u8], size: usize, read: fn(Fields<'_>) -> T) -> Vec<T> {
    array.chunks_exact(size).map(Fields).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(parts: &[&[u8]]) -> Vec<u8> {
        let mut tail = Vec::new();
        for part in parts {
            tail.extend((part.len() as u32).to_le_bytes());
            tail.extend(*part);
        }
        tail
    }

    fn raw(size: usize) -> Vec<u8> {
        let mut raw = vec![0; size];
        raw[0..8].copy_from_slice(&(size as u64).to_le_bytes());
        raw[16] = 2;
        raw[72] = 104;
        raw[106..108].copy_from_slice(&29704_u16.to_le_bytes());
        if size > 288 {
            raw[280] = 1;
            raw[284..288].copy_from_slice(&(-1_i32).to_le_bytes());
        }
        raw
    }

    #[test]
    fn agent_parse_reads_properties_banks_links_and_names() {
        let bank = [7; 24];
        let agent = Agent::parse(
            AgentHandle(9),
            &counted(&[
                &raw(312),
                &bank,
                &[],
                &[1; 48],
                b"gfx90a",
                b"AMD",
                b"\xff",
                b"",
            ]),
        );
        assert_eq!(agent.agent_type, AgentType::Gpu);
        assert_eq!((agent.cu_count, agent.device_id), (104, 29704));
        assert_eq!((agent.node_id, agent.logical_node_id), (1, -1));
        assert_eq!((&*agent.name, &*agent.product_name), ("gfx90a", "\u{fffd}"));
        assert_eq!(
            (
                agent.mem_banks.len(),
                agent.caches.len(),
                agent.io_links.len()
            ),
            (1, 0, 1)
        );
    }

    #[test]
    fn agent_parse_leaves_fields_zero_that_short_structs_lack() {
        let agent = Agent::parse(AgentHandle(9), &counted(&[&raw(200), &[], &[], &[], b"x"]));
        assert_eq!((agent.cu_count, agent.node_id), (104, 0));
        assert_eq!((&*agent.name, &*agent.model_name), ("x", ""));
        let mut lying = raw(312);
        lying[0..8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(Agent::parse(AgentHandle(9), &counted(&[&lying])).node_id, 1);
        lying[0..8].copy_from_slice(&100_u64.to_le_bytes());
        assert_eq!(Agent::parse(AgentHandle(9), &counted(&[&lying])).node_id, 0);
        assert_eq!(Agent::parse(AgentHandle(9), &[]).name, "");
    }
}

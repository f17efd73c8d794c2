//! Properties of agents, code objects and counters, as JSON objects.

use rpd_core::agent::{Agent, Cache, IoLink, MemoryBank, Property, Value};
use rpd_core::kernel_name::KernelSpellings;
use rpd_core::session::{CodeObject, Counter, CounterDimension, KernelSymbol};

use crate::json::Object;

/// Names of bit fields from bit 0 on, and their widths.
pub(crate) type Bits = [(&'static str, u32)];

const CAPABILITY: [(&str, u32); 23] = [
    ("HotPluggable", 1),
    ("HSAMMUPresent", 1),
    ("SharedWithGraphics", 1),
    ("QueueSizePowerOfTwo", 1),
    ("QueueSize32bit", 1),
    ("QueueIdleEvent", 1),
    ("VALimit", 1),
    ("WatchPointsSupported", 1),
    ("WatchPointsTotalBits", 4),
    ("DoorbellType", 2),
    ("AQLQueueDoubleMap", 1),
    ("DebugTrapSupported", 1),
    ("WaveLaunchTrapOverrideSupported", 1),
    ("WaveLaunchModeSupported", 1),
    ("PreciseMemoryOperationsSupported", 1),
    ("DEPRECATED_SRAM_EDCSupport", 1),
    ("Mem_EDCSupport", 1),
    ("RASEventNotify", 1),
    ("ASICRevision", 4),
    ("SRAM_EDCSupport", 1),
    ("SVMAPISupported", 1),
    ("CoherentHostAccess", 1),
    ("DebugSupportedFirmware", 1),
];
const SDMA_FIRMWARE: [(&str, u32); 2] = [("uCodeSDMA", 10), ("uCodeRes", 10)];
const FIRMWARE: [(&str, u32); 4] = [("uCode", 10), ("Major", 6), ("Minor", 8), ("Stepping", 8)];
const VISIBILITY: [(&str, u32); 4] = [("hsa", 1), ("hip", 1), ("rccl", 1), ("rocdecode", 1)];
const MEMORY: [(&str, u32); 2] = [("HotPluggable", 1), ("NonVolatile", 1)];
const CACHE: [(&str, u32); 4] = [("Data", 1), ("Instruction", 1), ("CPU", 1), ("HSACU", 1)];
const LINK: [(&str, u32); 5] = [
    ("Override", 1),
    ("NonCoherent", 1),
    ("NoAtomics32bit", 1),
    ("NoAtomics64bit", 1),
    ("NoPeerToPeerDMA", 1),
];

/// Names of the bit fields of a property, by the struct (`of`) and the property's name.
pub(crate) fn bit_fields(of: &str, name: &str) -> Option<&'static Bits> {
    Some(match (of, name) {
        (AGENT, "sdma_fw_version") => &SDMA_FIRMWARE,
        (AGENT, "fw_version") => &FIRMWARE,
        (AGENT, "capability") => &CAPABILITY,
        (AGENT, "runtime_visibility") => &VISIBILITY,
        (BANKS, "flags") => &MEMORY,
        (CACHES, "type") => &CACHE,
        (LINKS, "flags") => &LINK,
        _ => return None,
    })
}

/// Objects that have properties; arrays of them have these keys.
pub(crate) const AGENT: &str = "agent";
pub(crate) const BANKS: &str = "mem_banks";
pub(crate) const CACHES: &str = "caches";
pub(crate) const LINKS: &str = "io_links";

fn bits(value: u32, fields: &Bits) -> String {
    let mut rest = value;
    fields
        .iter()
        .fold(Object::new(), |object, &(name, width)| {
            let field = rest & ((1 << width) - 1);
            rest >>= width;
            object.number(name, field)
        })
        .end()
}

fn handle(value: u64) -> String {
    Object::new().number("handle", value).end()
}

fn dim3([x, y, z]: [u32; 3]) -> String {
    Object::new()
        .number("x", x)
        .number("y", y)
        .number("z", z)
        .end()
}

/// Adds a property of `object`, which is one of `of`.
fn property<T>(into: Object, of: &str, property: &Property<T>, object: &T) -> Object {
    let name = property.name;
    match (property.get)(object) {
        Value::Unsigned(value) => match bit_fields(of, name) {
            Some(fields) => into.json(name, &bits(value as u32, fields)),
            None => into.number(name, value),
        },
        Value::Signed(value) => into.number(name, value),
        Value::Dim3(value) => into.json(name, &dim3(value)),
    }
}

/// Objects with nothing but properties.
fn objects<T>(of: &str, properties: &[Property<T>], list: &[T]) -> Vec<String> {
    list.iter()
        .map(|object| {
            properties
                .iter()
                .fold(Object::new(), |into, known| {
                    property(into, of, known, object)
                })
                .end()
        })
        .collect()
}

/// An agent. `gpu_index` counts GPUs from 0 and is -1 for others.
pub(crate) fn agent(agent: &Agent, gpu_index: i64) -> String {
    let mut object = Object::new();
    for known in Agent::PROPERTIES {
        object = property(object, AGENT, known, agent);
        // Fields that are not numbers keep their place in the provider's struct.
        object = match known.name {
            "size" => object
                .json("id", &handle(agent.handle.0))
                .number("type", agent.agent_type.number()),
            "grid_max_dim" => object
                .text("name", &agent.name)
                .text("vendor_name", &agent.vendor_name)
                .text("product_name", &agent.product_name)
                .text("model_name", &agent.model_name),
            _ => object,
        };
    }
    let uuid = (0..16)
        .zip(agent.uuid)
        .fold(Object::new(), |object, (index, byte)| {
            object.number(&format!("value{index}"), byte)
        });
    object
        .json("uuid", &Object::new().json("bytes", &uuid.end()).end())
        .array(
            BANKS,
            objects(BANKS, MemoryBank::PROPERTIES, &agent.mem_banks),
        )
        .array(CACHES, objects(CACHES, Cache::PROPERTIES, &agent.caches))
        .array(LINKS, objects(LINKS, IoLink::PROPERTIES, &agent.io_links))
        .number("gpu_index", gpu_index)
        .end()
}

/// A code object as a JSON object.
pub(crate) fn code_object(code: &CodeObject) -> String {
    let object = Object::new()
        .number("size", code.size)
        .number("code_object_id", code.id)
        .json("agent_id", &handle(code.agent.0))
        .text("uri", &code.uri)
        .number("load_base", code.load_base)
        .number("load_size", code.load_size)
        .number("load_delta", code.load_delta)
        .number("storage_type", code.storage_type);
    object
        .number("memory_base", code.memory_base)
        .number("memory_size", code.memory_size)
        .end()
}

/// A kernel symbol as a JSON object.
pub(crate) fn kernel_symbol(symbol: &KernelSymbol, names: &KernelSpellings) -> String {
    Object::new()
        .number("size", symbol.size)
        .number("kernel_id", symbol.id)
        .number("code_object_id", symbol.code_object)
        .text("kernel_name", &symbol.name)
        .number("kernel_object", symbol.kernel_object)
        .number("kernarg_segment_size", symbol.kernarg_size)
        .number("kernarg_segment_alignment", symbol.kernarg_align)
        .number("group_segment_size", symbol.group_size)
        .number("private_segment_size", symbol.private_size)
        .number("sgpr_count", symbol.sgpr_count)
        .number("arch_vgpr_count", symbol.arch_vgpr_count)
        .number("accum_vgpr_count", symbol.accum_vgpr_count)
        .number("kernel_code_entry_byte_offset", symbol.entry_offset)
        .json("kernel_address", &handle(symbol.kernel_address))
        .text("formatted_kernel_name", &names.formatted)
        .text("demangled_kernel_name", &names.demangled)
        .text("truncated_kernel_name", &names.truncated)
        .end()
}

/// A counter on an agent.
pub(crate) fn counter(counter: &Counter) -> String {
    let ids = counter.dimensions.iter().map(|of| of.id.to_string());
    Object::new()
        .json("agent_id", &handle(counter.agent.0))
        .json("id", &handle(counter.id.0))
        .number("is_constant", u8::from(counter.is_constant))
        .number("is_derived", u8::from(counter.is_derived))
        .text("name", &counter.name)
        .text("description", &counter.description)
        .text("block", &counter.block)
        .text("expression", &counter.expression)
        .array("dimensions", counter.dimensions.iter().map(dimension))
        .array("instances", instances(counter))
        .array("dimension_ids", ids)
        .end()
}

/// A dimension of counters.
pub(crate) fn dimension(dimension: &CounterDimension) -> String {
    Object::new()
        .number("id", dimension.id)
        .number("instance_size", dimension.size)
        .text("name", &dimension.name)
        .end()
}

/// The instances of a counter; without those of which a database kept nothing but their number.
fn instances(counter: &Counter) -> impl Iterator<Item = String> {
    let known = counter.instances.iter().filter(|instance| instance.id != 0);
    known.map(|instance| {
        let positions = instance.positions.iter().map(|&(dimension, position)| {
            let found = counter.dimensions.iter().find(|of| of.id == dimension);
            Object::new()
                .text("dimension_name", found.map_or("", |of| &of.name))
                .number("index", position)
                .end()
        });
        Object::new()
            .number("instance_id", instance.id)
            .number("counter_id", counter.id)
            .array("dimensions", positions)
            .end()
    })
}

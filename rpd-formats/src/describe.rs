//! What is known about agents, code and settings, as JSON objects.

use rpd_core::agent::{Agent, AgentType};
use rpd_core::kernel_name::KernelSpellings;
use rpd_core::naming::Target;
use rpd_core::options::{Format, Options};
use rpd_core::os_text;
use rpd_core::session::{CodeObject, Counter, CounterDimension, KernelSymbol, Session};

use crate::json::Object;

/// Names of bit fields from bit 0 on, and their widths.
type Bits = [(&'static str, u32)];

pub(crate) const CAPABILITY: [(&str, u32); 23] = [
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
pub(crate) const SDMA_FIRMWARE: [(&str, u32); 2] = [("uCodeSDMA", 10), ("uCodeRes", 10)];
pub(crate) const FIRMWARE: [(&str, u32); 4] =
    [("uCode", 10), ("Major", 6), ("Minor", 8), ("Stepping", 8)];
pub(crate) const VISIBILITY: [(&str, u32); 4] =
    [("hsa", 1), ("hip", 1), ("rccl", 1), ("rocdecode", 1)];
pub(crate) const MEMORY: [(&str, u32); 2] = [("HotPluggable", 1), ("NonVolatile", 1)];
pub(crate) const CACHE: [(&str, u32); 4] =
    [("Data", 1), ("Instruction", 1), ("CPU", 1), ("HSACU", 1)];
pub(crate) const LINK: [(&str, u32); 5] = [
    ("Override", 1),
    ("NonCoherent", 1),
    ("NoAtomics32bit", 1),
    ("NoAtomics64bit", 1),
    ("NoPeerToPeerDMA", 1),
];

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

/// An agent. `gpu_index` counts GPUs from 0 and is -1 for others.
pub(crate) fn agent(agent: &Agent, gpu_index: i64) -> String {
    let kind = match agent.agent_type {
        AgentType::Unknown => 0,
        AgentType::Cpu => 1,
        AgentType::Gpu => 2,
    };
    let mut object = Object::new()
        .number("size", agent.size)
        .json("id", &handle(agent.handle.0))
        .number("type", kind);
    macro_rules! numbers {
        ($($field:ident)*) => {
            object = object$(.number(stringify!($field), agent.$field))*
        };
    }
    numbers!(cpu_cores_count simd_count mem_banks_count caches_count io_links_count cpu_core_id_base simd_id_base
        max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size num_xcc cu_count array_count
        num_shader_banks simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu gfx_target_version
        vendor_id device_id location_id domain drm_render_minor num_sdma_engines num_sdma_xgmi_engines
        num_sdma_queues_per_engine num_cp_queues max_engine_clk_ccompute max_engine_clk_fcompute);
    object = object
        .json(
            "sdma_fw_version",
            &bits(agent.sdma_fw_version, &SDMA_FIRMWARE),
        )
        .json("fw_version", &bits(agent.fw_version, &FIRMWARE))
        .json("capability", &bits(agent.capability, &CAPABILITY));
    numbers!(cu_per_engine max_waves_per_cu family_id workgroup_max_size grid_max_size local_mem_size hive_id gpu_id);
    object = object
        .json("workgroup_max_dim", &dim3(agent.workgroup_max_dim))
        .json("grid_max_dim", &dim3(agent.grid_max_dim))
        .text("name", &agent.name)
        .text("vendor_name", &agent.vendor_name)
        .text("product_name", &agent.product_name)
        .text("model_name", &agent.model_name);
    numbers!(node_id logical_node_id logical_node_type_id);
    let uuid = (0..16)
        .zip(agent.uuid)
        .fold(Object::new(), |object, (index, byte)| {
            object.number(&format!("value{index}"), byte)
        });
    object
        .json(
            "runtime_visibility",
            &bits(agent.runtime_visibility, &VISIBILITY),
        )
        .json("uuid", &Object::new().json("bytes", &uuid.end()).end())
        .array(
            "mem_banks",
            agent.mem_banks.iter().map(|bank| {
                Object::new()
                    .number("heap_type", bank.heap_type)
                    .json("flags", &bits(bank.flags, &MEMORY))
                    .number("width", bank.width)
                    .number("mem_clk_max", bank.mem_clk_max)
                    .number("size_in_bytes", bank.size_in_bytes)
                    .end()
            }),
        )
        .array(
            "caches",
            agent.caches.iter().map(|cache| {
                Object::new()
                    .number("processor_id_low", cache.processor_id_low)
                    .number("size", cache.size)
                    .number("level", cache.level)
                    .number("cache_line_size", cache.cache_line_size)
                    .number("cache_lines_per_tag", cache.cache_lines_per_tag)
                    .number("association", cache.association)
                    .number("latency", cache.latency)
                    .json("type", &bits(cache.kind, &CACHE))
                    .end()
            }),
        )
        .array(
            "io_links",
            agent.io_links.iter().map(|link| {
                Object::new()
                    .number("type", link.kind)
                    .number("version_major", link.version_major)
                    .number("version_minor", link.version_minor)
                    .number("node_from", link.node_from)
                    .number("node_to", link.node_to)
                    .number("weight", link.weight)
                    .number("min_latency", link.min_latency)
                    .number("max_latency", link.max_latency)
                    .number("min_bandwidth", link.min_bandwidth)
                    .number("max_bandwidth", link.max_bandwidth)
                    .number("recommended_transfer_size", link.recommended_transfer_size)
                    .json("flags", &bits(link.flags, &LINK))
                    .end()
            }),
        )
        .number("gpu_index", gpu_index)
        .end()
}

/// A code object.
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

/// A kernel symbol.
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

/// The settings that bear on outputs.
pub(crate) fn settings(session: &Session, options: &Options, target: &Target) -> String {
    let has = |format| options.formats.contains(&format);
    // Counted dispatches have rows among the dispatches; this tells whether they were also traced.
    let only_counted = session.dispatches.is_empty() && !session.counted.is_empty();
    Object::new()
        .text(
            "output_path",
            &os_text::escape(target.directory.as_os_str()),
        )
        .text("output_file", &target.prefix)
        .text("raw_output_path", &options.output_directory)
        .text("raw_output_file", &options.output_file)
        .number("csv_output", has(Format::Csv))
        .number("json_output", has(Format::Json))
        .number("pftrace_output", has(Format::Pftrace))
        .number("otf2_output", has(Format::Otf2))
        .number("rocpd_output", has(Format::Rocpd))
        .number("kernel_rename", options.kernel_names.rename)
        .number("group_by_queue", options.group_by_queue)
        .number("kernel_trace", !only_counted)
        .end()
}

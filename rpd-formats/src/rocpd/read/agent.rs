//! Agents from the JSON that describes them, and from the plain columns where that is missing.

use rpd_core::agent::{Agent, AgentType, Cache, IoLink, MemoryBank};
use rpd_core::ids::AgentHandle;
use serde_json::Value;

use crate::describe;

/// A number; 0 when there is none of that name.
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

/// The agent that `json` describes; `None` when it describes none.
pub(super) fn from_json(json: &Value) -> Option<Agent> {
    let handle = json["id"]["handle"].as_u64()?;
    macro_rules! numbers {
        ($($field:ident)*) => {
            Agent { $($field: number(json, stringify!($field)) as _,)* ..Agent::default() }
        };
    }
    let mut agent = numbers!(size cpu_cores_count simd_count mem_banks_count caches_count io_links_count
        cpu_core_id_base simd_id_base max_waves_per_simd lds_size_in_kb gds_size_in_kb num_gws wave_front_size num_xcc
        cu_count array_count num_shader_banks simd_arrays_per_engine cu_per_simd_array simd_per_cu max_slots_scratch_cu
        gfx_target_version vendor_id device_id location_id domain drm_render_minor num_sdma_engines
        num_sdma_xgmi_engines num_sdma_queues_per_engine num_cp_queues max_engine_clk_ccompute max_engine_clk_fcompute
        cu_per_engine max_waves_per_cu family_id workgroup_max_size grid_max_size local_mem_size hive_id gpu_id node_id
        logical_node_id logical_node_type_id);
    let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
    let dim = |key: &str| ["x", "y", "z"].map(|axis| word(&json[key], axis));
    let list = |key: &str| json[key].as_array().map_or(&[][..], Vec::as_slice);
    agent.handle = AgentHandle(handle);
    agent.agent_type = match number(json, "type") {
        1 => AgentType::Cpu,
        2 => AgentType::Gpu,
        _ => AgentType::Unknown,
    };
    (agent.name, agent.vendor_name) = (text("name"), text("vendor_name"));
    (agent.product_name, agent.model_name) = (text("product_name"), text("model_name"));
    (agent.workgroup_max_dim, agent.grid_max_dim) = (dim("workgroup_max_dim"), dim("grid_max_dim"));
    agent.sdma_fw_version = pack(&json["sdma_fw_version"], &describe::SDMA_FIRMWARE);
    agent.fw_version = pack(&json["fw_version"], &describe::FIRMWARE);
    agent.capability = pack(&json["capability"], &describe::CAPABILITY);
    agent.runtime_visibility = pack(&json["runtime_visibility"], &describe::VISIBILITY);
    let uuid = &json["uuid"]["bytes"];
    for (index, byte) in agent.uuid.iter_mut().enumerate() {
        *byte = number(uuid, &format!("value{index}")) as u8;
    }
    agent.mem_banks = list("mem_banks")
        .iter()
        .map(|bank| MemoryBank {
            heap_type: word(bank, "heap_type"),
            flags: pack(&bank["flags"], &describe::MEMORY),
            width: word(bank, "width"),
            mem_clk_max: word(bank, "mem_clk_max"),
            size_in_bytes: number(bank, "size_in_bytes"),
        })
        .collect();
    agent.caches = list("caches")
        .iter()
        .map(|cache| Cache {
            processor_id_low: number(cache, "processor_id_low"),
            size: number(cache, "size"),
            level: word(cache, "level"),
            cache_line_size: word(cache, "cache_line_size"),
            cache_lines_per_tag: word(cache, "cache_lines_per_tag"),
            association: word(cache, "association"),
            latency: word(cache, "latency"),
            kind: pack(&cache["type"], &describe::CACHE),
        })
        .collect();
    agent.io_links = list("io_links")
        .iter()
        .map(|link| IoLink {
            kind: word(link, "type"),
            version_major: word(link, "version_major"),
            version_minor: word(link, "version_minor"),
            node_from: word(link, "node_from"),
            node_to: word(link, "node_to"),
            weight: word(link, "weight"),
            min_latency: word(link, "min_latency"),
            max_latency: word(link, "max_latency"),
            min_bandwidth: word(link, "min_bandwidth"),
            max_bandwidth: word(link, "max_bandwidth"),
            recommended_transfer_size: word(link, "recommended_transfer_size"),
            flags: pack(&link["flags"], &describe::LINK),
        })
        .collect();
    Some(agent)
}

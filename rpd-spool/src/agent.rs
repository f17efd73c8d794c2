//! The numbers that describe agents: their names and where they lie in the provider's structs, which travel as they are.

/// Calls the macro `$then` with `$arguments` (one token or group) and, in braces, the numbers of an agent
/// (`rocprofiler_agent_v0_t`) in the order of their offsets: field, type (`dim3` is three `u32`) and offset.
#[macro_export]
macro_rules! agent_properties {
    ($then:ident, $arguments:tt) => {
        $then! { $arguments {
            size: u64 = 0,
            cpu_cores_count: u32 = 20,
            simd_count: u32 = 24,
            mem_banks_count: u32 = 28,
            caches_count: u32 = 32,
            io_links_count: u32 = 36,
            cpu_core_id_base: u32 = 40,
            simd_id_base: u32 = 44,
            max_waves_per_simd: u32 = 48,
            lds_size_in_kb: u32 = 52,
            gds_size_in_kb: u32 = 56,
            num_gws: u32 = 60,
            wave_front_size: u32 = 64,
            num_xcc: u32 = 68,
            cu_count: u32 = 72,
            array_count: u32 = 76,
            num_shader_banks: u32 = 80,
            simd_arrays_per_engine: u32 = 84,
            cu_per_simd_array: u32 = 88,
            simd_per_cu: u32 = 92,
            max_slots_scratch_cu: u32 = 96,
            gfx_target_version: u32 = 100,
            vendor_id: u16 = 104,
            device_id: u16 = 106,
            location_id: u32 = 108,
            domain: u32 = 112,
            drm_render_minor: u32 = 116,
            num_sdma_engines: u32 = 120,
            num_sdma_xgmi_engines: u32 = 124,
            num_sdma_queues_per_engine: u32 = 128,
            num_cp_queues: u32 = 132,
            max_engine_clk_ccompute: u32 = 136,
            max_engine_clk_fcompute: u32 = 140,
            sdma_fw_version: u32 = 144,
            fw_version: u32 = 148,
            capability: u32 = 152,
            cu_per_engine: u32 = 156,
            max_waves_per_cu: u32 = 160,
            family_id: u32 = 164,
            workgroup_max_size: u32 = 168,
            grid_max_size: u32 = 172,
            local_mem_size: u64 = 176,
            hive_id: u64 = 184,
            gpu_id: u64 = 192,
            workgroup_max_dim: dim3 = 200,
            grid_max_dim: dim3 = 212,
            node_id: u32 = 280,
            logical_node_id: i32 = 284,
            logical_node_type_id: i32 = 288,
            runtime_visibility: u32 = 292,
        } }
    };
}

/// Calls the macro `$then` with the numbers of a memory bank of an agent (`rocprofiler_agent_mem_bank_t`, 24 bytes), as
/// [`agent_properties`] does.
#[macro_export]
macro_rules! memory_bank_properties {
    ($then:ident, $arguments:tt) => {
        $then! { $arguments {
            heap_type: u32 = 0,
            flags: u32 = 4,
            width: u32 = 8,
            mem_clk_max: u32 = 12,
            size_in_bytes: u64 = 16,
        } }
    };
}

/// Calls the macro `$then` with the numbers of a cache of an agent (`rocprofiler_agent_cache_t`, 40 bytes), as
/// [`agent_properties`] does.
#[macro_export]
macro_rules! cache_properties {
    ($then:ident, $arguments:tt) => {
        $then! { $arguments {
            processor_id_low: u64 = 0,
            size: u64 = 8,
            level: u32 = 16,
            cache_line_size: u32 = 20,
            cache_lines_per_tag: u32 = 24,
            association: u32 = 28,
            latency: u32 = 32,
            r#type: u32 = 36,
        } }
    };
}

/// Calls the macro `$then` with the numbers of a link of an agent (`rocprofiler_agent_io_link_t`, 48 bytes), as
/// [`agent_properties`] does.
#[macro_export]
macro_rules! io_link_properties {
    ($then:ident, $arguments:tt) => {
        $then! { $arguments {
            r#type: u32 = 0,
            version_major: u32 = 4,
            version_minor: u32 = 8,
            node_from: u32 = 12,
            node_to: u32 = 16,
            weight: u32 = 20,
            min_latency: u32 = 24,
            max_latency: u32 = 28,
            min_bandwidth: u32 = 32,
            max_bandwidth: u32 = 36,
            recommended_transfer_size: u32 = 40,
            flags: u32 = 44,
        } }
    };
}

/// Bytes of a memory bank's struct.
pub const MEMORY_BANK_SIZE: usize = 24;
/// Bytes of a cache's struct.
pub const CACHE_SIZE: usize = 40;
/// Bytes of a link's struct.
pub const IO_LINK_SIZE: usize = 48;
/// Offset of the agent's type in its struct: 1 CPU, 2 GPU.
pub const TYPE_OFFSET: usize = 16;
/// Offset of the agent's UUID of 16 bytes in its struct.
pub const UUID_OFFSET: usize = 296;

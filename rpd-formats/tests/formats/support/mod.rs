//! A session from a rocpd database, as far as tests need it.

pub(crate) mod python;
pub(crate) mod write;

use std::collections::HashMap;

use rpd_core::agent::{Agent, AgentType, Cache, IoLink, MemoryBank};
use rpd_core::domain::Kind;
use rpd_core::ids::{
    AgentHandle, CodeObjectId, CorrelationId, DispatchId, KernelId, Nanoseconds, ProcessId,
    QueueId, StreamId, ThreadId,
};
use rpd_core::session::{
    AllocationRow, ArgsRef, CallRow, CodeObject, CopyRow, DispatchRow, KernelSymbol, Session,
};
use rusqlite::{Connection, Row};
use serde_json::Value;

fn each(connection: &Connection, sql: &str, mut take: impl FnMut(&Row<'_>)) {
    let mut statement = connection
        .prepare(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows = statement.query([]).expect(sql);
    while let Some(row) = rows.next().expect(sql) {
        take(row);
    }
}

fn int(row: &Row<'_>, name: &str) -> u64 {
    let value: Option<i64> = row
        .get(name)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    value.unwrap_or_default().cast_unsigned()
}

fn text(row: &Row<'_>, name: &str) -> String {
    let value: Option<String> = row
        .get(name)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    value.unwrap_or_default()
}

fn number(value: &Value, key: &str) -> u64 {
    let value = &value[key];
    value
        .as_u64()
        .or_else(|| value.as_i64().map(i64::cast_unsigned))
        .unwrap_or_default()
}

/// Packs `{"a":1,"b":2}` into bits of the given widths.
fn pack(value: &Value, fields: &[(&str, u32)]) -> u32 {
    let mut shift = 0;
    fields.iter().fold(0, |packed, (name, width)| {
        let packed = packed | (number(value, name) as u32) << shift;
        shift += width;
        packed
    })
}

fn agent(json: &Value) -> Agent {
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
    let dim = |key: &str| ["x", "y", "z"].map(|axis| number(&json[key], axis) as u32);
    let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
    agent.handle = AgentHandle(number(&json["id"], "handle"));
    agent.agent_type = match number(json, "type") {
        1 => AgentType::Cpu,
        _ => AgentType::Gpu,
    };
    (agent.name, agent.vendor_name) = (text("name"), text("vendor_name"));
    (agent.product_name, agent.model_name) = (text("product_name"), text("model_name"));
    (agent.workgroup_max_dim, agent.grid_max_dim) = (dim("workgroup_max_dim"), dim("grid_max_dim"));
    agent.sdma_fw_version = pack(
        &json["sdma_fw_version"],
        &[("uCodeSDMA", 10), ("uCodeRes", 10)],
    );
    agent.fw_version = pack(
        &json["fw_version"],
        &[("uCode", 10), ("Major", 6), ("Minor", 8), ("Stepping", 8)],
    );
    let capability = &json["capability"];
    // The bits that the golden agents have set.
    agent.capability = (number(capability, "WatchPointsSupported") << 7
        | number(capability, "WatchPointsTotalBits") << 8
        | number(capability, "DoorbellType") << 12) as u32;
    agent.runtime_visibility = pack(
        &json["runtime_visibility"],
        &[("hsa", 1), ("hip", 1), ("rccl", 1), ("rocdecode", 1)],
    );
    for index in 0..16 {
        agent.uuid[index] = number(&json["uuid"]["bytes"], &format!("value{index}")) as u8;
    }
    for bank in list("mem_banks") {
        agent.mem_banks.push(MemoryBank {
            heap_type: number(&bank, "heap_type") as u32,
            flags: pack(&bank["flags"], &[("HotPluggable", 1), ("NonVolatile", 1)]),
            width: number(&bank, "width") as u32,
            mem_clk_max: number(&bank, "mem_clk_max") as u32,
            size_in_bytes: number(&bank, "size_in_bytes"),
        });
    }
    for cache in list("caches") {
        agent.caches.push(Cache {
            processor_id_low: number(&cache, "processor_id_low"),
            size: number(&cache, "size"),
            level: number(&cache, "level") as u32,
            cache_line_size: number(&cache, "cache_line_size") as u32,
            cache_lines_per_tag: number(&cache, "cache_lines_per_tag") as u32,
            association: number(&cache, "association") as u32,
            latency: number(&cache, "latency") as u32,
            r#type: pack(
                &cache["type"],
                &[("Data", 1), ("Instruction", 1), ("CPU", 1), ("HSACU", 1)],
            ),
        });
    }
    for link in list("io_links") {
        let word = |key: &str| number(&link, key) as u32;
        agent.io_links.push(IoLink {
            r#type: word("type"),
            version_major: word("version_major"),
            version_minor: word("version_minor"),
            node_from: word("node_from"),
            node_to: word("node_to"),
            weight: word("weight"),
            min_latency: word("min_latency"),
            max_latency: word("max_latency"),
            min_bandwidth: word("min_bandwidth"),
            max_bandwidth: word("max_bandwidth"),
            recommended_transfer_size: word("recommended_transfer_size"),
            flags: pack(
                &link["flags"],
                &[
                    ("Override", 1),
                    ("NonCoherent", 1),
                    ("NoAtomics32bit", 1),
                    ("NoAtomics64bit", 1),
                    ("NoPeerToPeerDMA", 1),
                ],
            ),
        });
    }
    agent
}

/// A session with everything that CSV and rocpd show of the database.
pub(crate) fn session(connection: &Connection) -> Session {
    let mut session = Session::default();
    session.strings.intern("");
    each(connection, "SELECT * FROM rocpd_info_process", |row| {
        session.process.pid = ProcessId(int(row, "pid") as u32);
        session.process.ppid = ProcessId(int(row, "ppid") as u32);
        session.process.init_time = Nanoseconds(int(row, "init"));
        session.process.fini_time = Nanoseconds(int(row, "fini"));
        session.process.command = text(row, "command").split(' ').map(str::to_owned).collect();
    });
    let mut handles = HashMap::new();
    each(
        connection,
        "SELECT id, extdata FROM rocpd_info_agent ORDER BY id",
        |row| {
            let json = serde_json::from_str(&text(row, "extdata")).expect("JSON");
            let agent = agent(&json);
            handles.insert(int(row, "id"), agent.handle);
            session.agents.push(agent);
        },
    );
    let handle = |row: &Row<'_>, name: &str| -> AgentHandle {
        let id: Option<i64> = row.get(name).expect(name);
        id.map_or(AgentHandle(0), |id| handles[&id.cast_unsigned()])
    };
    each(
        connection,
        "SELECT * FROM rocpd_info_code_object ORDER BY id",
        |row| {
            let json: Value = serde_json::from_str(&text(row, "extdata")).expect("JSON");
            session.code_objects.push(CodeObject {
                id: CodeObjectId(int(row, "id")),
                agent: AgentHandle(number(&json["agent_id"], "handle")),
                uri: text(row, "uri"),
                load_base: int(row, "load_base"),
                load_size: int(row, "load_size"),
                load_delta: int(row, "load_delta").cast_signed(),
                storage_type: number(&json, "storage_type") as u32,
                memory_base: number(&json, "memory_base"),
                memory_size: number(&json, "memory_size"),
                size: number(&json, "size"),
            });
        },
    );
    each(
        connection,
        "SELECT * FROM rocpd_info_kernel_symbol ORDER BY id",
        |row| {
            let json: Value = serde_json::from_str(&text(row, "extdata")).expect("JSON");
            session.kernel_symbols.push(KernelSymbol {
                id: KernelId(int(row, "id")),
                code_object: CodeObjectId(int(row, "code_object_id")),
                name: text(row, "kernel_name"),
                kernel_object: int(row, "kernel_object"),
                kernarg_size: int(row, "kernarg_segment_size") as u32,
                kernarg_align: int(row, "kernarg_segment_alignment") as u32,
                group_size: int(row, "group_segment_size") as u32,
                private_size: int(row, "private_segment_size") as u32,
                sgpr_count: int(row, "sgpr_count") as u32,
                arch_vgpr_count: int(row, "arch_vgpr_count") as u32,
                accum_vgpr_count: int(row, "accum_vgpr_count") as u32,
                entry_offset: number(&json, "kernel_code_entry_byte_offset").cast_signed(),
                kernel_address: number(&json["kernel_address"], "handle"),
                size: number(&json, "size"),
            });
        },
    );
    calls(connection, &mut session);
    device_work(connection, &mut session, &handle);
    session
}

fn calls(connection: &Connection, session: &mut Session) {
    // What a mark's row in the database calls its name is the track's; the operation is always this one.
    let sql = "SELECT category, name, tid, start, \"end\", stack_id, parent_stack_id, extdata, event_id, 0 AS sample FROM regions
        UNION ALL SELECT category, 'roctxMarkA', tid, start, \"END\", stack_id, parent_stack_id, extdata, event_id, 1 FROM sample_regions
        ORDER BY start";
    let mut arguments: HashMap<u64, Vec<[String; 3]>> = HashMap::new();
    each(
        connection,
        "SELECT * FROM rocpd_arg ORDER BY event_id, position",
        |row| {
            arguments
                .entry(int(row, "event_id"))
                .or_default()
                .push(["type", "name", "value"].map(|name| text(row, name)));
        },
    );
    each(connection, sql, |row| {
        let json: Value = serde_json::from_str(&text(row, "extdata")).expect("JSON");
        let message = json["message"].as_str().unwrap_or_default();
        let kind = Kind::from_name(&text(row, "category")).expect("a kind");
        let operation = session.add_operation(kind, &text(row, "name"));
        let message = session.strings.intern(message);
        let calls = &mut session.calls;
        let offset = calls.arena.len();
        for part in arguments
            .remove(&int(row, "event_id"))
            .into_iter()
            .flatten()
            .flatten()
        {
            calls.arena.extend((part.len() as u32).to_le_bytes());
            calls.arena.extend(part.as_bytes());
        }
        calls.push(CallRow {
            args: ArgsRef {
                offset: offset as u64,
                len: (calls.arena.len() - offset) as u32,
                flags: rpd_core::spool::format::call_flag::ARGUMENT_TEXTS,
            },
            operation,
            message,
            start: Nanoseconds(int(row, "start")),
            end: Nanoseconds(int(row, "end")),
            thread: ThreadId(int(row, "tid") as u32),
            correlation: CorrelationId(int(row, "stack_id")),
            ancestor: CorrelationId(int(row, "parent_stack_id")),
        });
    });
}

fn device_work(
    connection: &Connection,
    session: &mut Session,
    handle: &dyn Fn(&Row<'_>, &str) -> AgentHandle,
) {
    let sql = "SELECT k.*, e.stack_id FROM rocpd_kernel_dispatch k JOIN rocpd_event e ON e.id = k.event_id ORDER BY start";
    each(connection, sql, |row| {
        let table = &mut session.dispatches;
        let dim = |what: &str| {
            ["x", "y", "z"].map(|axis| int(row, &format!("{what}_size_{axis}")) as u32)
        };
        table.push(DispatchRow {
            start: Nanoseconds(int(row, "start")),
            end: Nanoseconds(int(row, "end")),
            thread: ThreadId(int(row, "tid") as u32),
            correlation: CorrelationId(int(row, "stack_id")),
            agent: handle(row, "agent_id"),
            queue: QueueId(int(row, "queue_id")),
            stream: StreamId(int(row, "stream_id") as u32),
            region: 0,
            kernel: KernelId(int(row, "kernel_id")),
            dispatch: DispatchId(int(row, "dispatch_id")),
            private_size: int(row, "private_segment_size") as u32,
            group_size: int(row, "group_segment_size") as u32,
            workgroup: dim("workgroup"),
            grid: dim("grid"),
        });
    });
    let sql = "SELECT m.*, s.string AS name, e.stack_id FROM rocpd_memory_copy m JOIN rocpd_event e ON e.id = m.event_id
        JOIN rocpd_string s ON s.id = m.name_id ORDER BY m.id";
    each(connection, sql, |row| {
        let operation = session.add_operation(Kind::MemoryCopy, &text(row, "name"));
        let table = &mut session.copies;
        table.push(CopyRow {
            operation,
            start: Nanoseconds(int(row, "start")),
            end: Nanoseconds(int(row, "end")),
            thread: ThreadId(int(row, "tid") as u32),
            correlation: CorrelationId(int(row, "stack_id")),
            dst_agent: handle(row, "dst_agent_id"),
            src_agent: handle(row, "src_agent_id"),
            bytes: int(row, "size"),
            dst_address: int(row, "dst_address"),
            src_address: int(row, "src_address"),
            stream: StreamId(int(row, "stream_id") as u32),
            region: 0,
        });
    });
    let sql = "SELECT m.*, e.stack_id, e.parent_stack_id FROM rocpd_memory_allocate m JOIN rocpd_event e ON e.id = m.event_id ORDER BY start";
    each(connection, sql, |row| {
        let operation = match &*text(row, "type") {
            "ALLOC" => "MEMORY_ALLOCATION_ALLOCATE",
            _ => "MEMORY_ALLOCATION_FREE",
        };
        let operation = session.add_operation(Kind::MemoryAllocation, operation);
        let table = &mut session.allocations;
        table.push(AllocationRow {
            operation,
            start: Nanoseconds(int(row, "start")),
            end: Nanoseconds(int(row, "end")),
            thread: ThreadId(int(row, "tid") as u32),
            correlation: CorrelationId(int(row, "stack_id")),
            ancestor: CorrelationId(int(row, "parent_stack_id")),
            agent: handle(row, "agent_id"),
            address: int(row, "address"),
            bytes: int(row, "size"),
            stream: StreamId(int(row, "stream_id") as u32),
        });
    });
}

-- Views for people and tools, over those that `tables.rs` makes, one for each table of schema.sql. Lines that begin with
-- `graphs:` are left out where no dispatch or copy has a graph.
CREATE VIEW code_objects AS
    SELECT c.id, c.guid, c.nid, p.pid, a.absolute_index AS agent_abs_index, c.uri, c.load_base, c.load_size,
        c.load_delta, c.storage_type AS storage_type_str, json_extract(c.extdata, '$.size') AS code_object_size,
        json_extract(c.extdata, '$.storage_type') AS storage_type,
        json_extract(c.extdata, '$.memory_base') AS memory_base,
        json_extract(c.extdata, '$.memory_size') AS memory_size
    FROM rocpd_info_code_object c
        JOIN rocpd_info_agent a ON a.id = c.agent_id AND a.guid = c.guid
        JOIN rocpd_info_process p ON p.id = c.pid AND p.guid = c.guid;
CREATE VIEW kernel_symbols AS
    SELECT k.id, k.guid, k.nid, p.pid, k.code_object_id, k.kernel_name, k.display_name, k.kernel_object,
        k.kernarg_segment_size, k.kernarg_segment_alignment, k.group_segment_size, k.private_segment_size, k.sgpr_count,
        k.arch_vgpr_count, k.accum_vgpr_count, json_extract(k.extdata, '$.size') AS kernel_symbol_size,
        json_extract(k.extdata, '$.kernel_id') AS kernel_id,
        json_extract(k.extdata, '$.kernel_code_entry_byte_offset') AS kernel_code_entry_byte_offset,
        json_extract(k.extdata, '$.formatted_kernel_name') AS formatted_kernel_name,
        json_extract(k.extdata, '$.demangled_kernel_name') AS demangled_kernel_name,
        json_extract(k.extdata, '$.truncated_kernel_name') AS truncated_kernel_name,
        json_extract(k.extdata, '$.kernel_address.handle') AS kernel_address
    FROM rocpd_info_kernel_symbol k JOIN rocpd_info_process p ON p.id = k.pid AND p.guid = k.guid;
CREATE VIEW processes AS
    SELECT n.id AS nid, n.machine_id, n.system_name, n.hostname, n.release AS system_release,
        n.version AS system_version, p.guid, p.ppid, p.pid, p.init, p.start, p."end", p.fini, p.command
    FROM rocpd_info_process p JOIN rocpd_info_node n ON n.id = p.nid AND n.guid = p.guid;
CREATE VIEW threads AS
    SELECT n.id AS nid, n.machine_id, n.system_name, n.hostname, n.release AS system_release,
        n.version AS system_version, p.guid, p.ppid, p.pid, t.tid, t.start, t."end", t.name
    FROM rocpd_info_thread t
        JOIN rocpd_info_process p ON p.id = t.pid AND p.guid = t.guid
        JOIN rocpd_info_node n ON n.id = t.nid AND n.guid = t.guid;
CREATE VIEW regions AS
    SELECT r.id, r.guid, c.string AS category, s.string AS name, r.nid, p.pid, t.tid, r.start, r."end",
        r."end" - r.start AS duration, r.event_id, e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id,
        e.extdata, e.call_stack, e.line_info
    FROM rocpd_region r
        JOIN rocpd_event e ON e.id = r.event_id AND e.guid = r.guid
        JOIN rocpd_string s ON s.id = r.name_id AND s.guid = r.guid
        JOIN rocpd_info_process p ON p.id = r.pid AND p.guid = r.guid
        JOIN rocpd_info_thread t ON t.id = r.tid AND t.guid = r.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
CREATE VIEW region_args AS
    SELECT r.id, r.guid, r.nid, p.pid, a.type, a.name, a.value
    FROM rocpd_region r
        JOIN rocpd_event e ON e.id = r.event_id AND e.guid = r.guid
        JOIN rocpd_arg a ON a.event_id = e.id AND a.guid = r.guid
        JOIN rocpd_info_process p ON p.id = r.pid AND p.guid = r.guid;
CREATE VIEW samples AS
    SELECT m.id, m.guid, c.string AS category, s.string AS name, k.nid, p.pid, t.tid, m.timestamp, m.event_id,
        e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id, e.extdata, e.call_stack, e.line_info
    FROM rocpd_sample m
        JOIN rocpd_track k ON k.id = m.track_id AND k.guid = m.guid
        JOIN rocpd_event e ON e.id = m.event_id AND e.guid = m.guid
        JOIN rocpd_info_process p ON p.id = k.pid AND p.guid = m.guid
        JOIN rocpd_info_thread t ON t.id = k.tid AND t.guid = m.guid
        LEFT JOIN rocpd_string s ON s.id = k.name_id AND s.guid = m.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
CREATE VIEW sample_regions AS
    SELECT id, guid, category, name, nid, pid, tid, timestamp AS start, timestamp AS "END", 0 AS duration, event_id,
        stack_id, parent_stack_id, corr_id, extdata, call_stack, line_info
    FROM samples;
CREATE VIEW regions_and_samples AS
    SELECT * FROM regions UNION ALL SELECT * FROM sample_regions;
CREATE VIEW kernels AS
    SELECT k.id, k.guid, t.tid, c.string AS category, r.string AS region, y.display_name AS name, k.nid, p.pid,
        a.absolute_index AS agent_abs_index, a.logical_index AS agent_log_index, a.type_index AS agent_type_index,
        a.type AS agent_type, y.code_object_id, k.kernel_id, k.dispatch_id, k.stream_id, k.queue_id, q.name AS queue,
        s.name AS stream, k.start, k."end", k."end" - k.start AS duration, k.grid_size_x AS grid_x,
        k.grid_size_y AS grid_y, k.grid_size_z AS grid_z, k.workgroup_size_x AS workgroup_x,
        k.workgroup_size_y AS workgroup_y, k.workgroup_size_z AS workgroup_z, k.group_segment_size AS lds_size,
        k.private_segment_size AS scratch_size, y.arch_vgpr_count AS vgpr_count, y.accum_vgpr_count, y.sgpr_count,
        y.group_segment_size AS static_lds_size, y.private_segment_size AS static_scratch_size, e.stack_id,
        e.parent_stack_id, e.correlation_id AS corr_id
    -- graphs: , k.graph_exec_id, k.graph_node_id
    -- replays: , k.replay_pass
    FROM rocpd_kernel_dispatch k
        JOIN rocpd_info_agent a ON a.id = k.agent_id AND a.guid = k.guid
        JOIN rocpd_event e ON e.id = k.event_id AND e.guid = k.guid
        JOIN rocpd_info_kernel_symbol y ON y.id = k.kernel_id AND y.guid = k.guid
        JOIN rocpd_info_thread t ON t.id = k.tid AND t.guid = k.guid
        JOIN rocpd_info_process p ON p.id = k.pid AND p.guid = k.guid
        LEFT JOIN rocpd_string r ON r.id = k.region_name_id AND r.guid = k.guid
        LEFT JOIN rocpd_info_stream s ON s.id = k.stream_id AND s.guid = k.guid
        LEFT JOIN rocpd_info_queue q ON q.id = k.queue_id AND q.guid = k.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
CREATE VIEW pmc_info AS
    SELECT i.id, i.guid, i.nid, p.pid, a.absolute_index AS agent_abs_index, i.is_constant, i.is_derived, i.name,
        i.description, i.block, i.expression
    FROM rocpd_info_pmc i
        JOIN rocpd_info_agent a ON a.id = i.agent_id AND a.guid = i.guid
        JOIN rocpd_info_process p ON p.id = i.pid AND p.guid = i.guid;
CREATE VIEW pmc_events AS
    SELECT v.id, v.guid, v.pmc_id, e.id AS event_id, c.string AS category, y.display_name AS name, k.nid, p.pid,
        k.dispatch_id, k.start, k."end", k."end" - k.start AS duration, i.name AS counter_name,
        v.value AS counter_value
    FROM rocpd_pmc_event v
        JOIN rocpd_info_pmc i ON i.id = v.pmc_id AND i.guid = v.guid
        JOIN rocpd_event e ON e.id = v.event_id AND e.guid = v.guid
        JOIN rocpd_kernel_dispatch k ON k.event_id = v.event_id AND k.guid = v.guid
        JOIN rocpd_info_process p ON p.id = k.pid AND p.guid = k.guid
        LEFT JOIN rocpd_info_kernel_symbol y ON y.id = k.kernel_id AND y.guid = k.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
CREATE VIEW events_args AS
    SELECT e.id AS event_id, c.string AS category, e.stack_id, e.parent_stack_id, e.correlation_id,
        a.position AS arg_position, a.type AS arg_type, a.name AS arg_name, a.value AS arg_value, e.call_stack,
        e.line_info, a.extdata
    FROM rocpd_event e
        JOIN rocpd_arg a ON a.event_id = e.id AND a.guid = e.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
CREATE VIEW stream_args AS
    SELECT a.id AS argument_id, a.event_id, a.position AS arg_position, a.type AS arg_type, a.value AS arg_value,
        json_extract(a.extdata, '$.stream_id') AS stream_id, s.nid, p.pid, s.name AS stream_name, s.extdata
    FROM rocpd_arg a
        JOIN rocpd_info_stream s ON s.id = json_extract(a.extdata, '$.stream_id') AND s.guid = a.guid
        JOIN rocpd_info_process p ON p.id = s.pid AND p.guid = s.guid
    WHERE a.name = 'stream';
CREATE VIEW memory_copies AS
    SELECT m.id, m.guid, c.string AS category, m.nid, p.pid, t.tid, m.start, m."end", m."end" - m.start AS duration,
        s.string AS name, r.string AS region_name, m.stream_id, m.queue_id, x.name AS stream_name, q.name AS queue_name,
        m.size, d.name AS dst_device, d.absolute_index AS dst_agent_abs_index, d.logical_index AS dst_agent_log_index,
        d.type_index AS dst_agent_type_index, d.type AS dst_agent_type, m.dst_address, a.name AS src_device,
        a.absolute_index AS src_agent_abs_index, a.logical_index AS src_agent_log_index,
        a.type_index AS src_agent_type_index, a.type AS src_agent_type, m.src_address, e.stack_id, e.parent_stack_id,
        e.correlation_id AS corr_id
    -- graphs: , m.graph_exec_id, m.graph_node_id
    FROM rocpd_memory_copy m
        JOIN rocpd_string s ON s.id = m.name_id AND s.guid = m.guid
        JOIN rocpd_info_agent d ON d.id = m.dst_agent_id AND d.guid = m.guid
        JOIN rocpd_info_agent a ON a.id = m.src_agent_id AND a.guid = m.guid
        JOIN rocpd_event e ON e.id = m.event_id AND e.guid = m.guid
        JOIN rocpd_info_process p ON p.id = m.pid AND p.guid = m.guid
        JOIN rocpd_info_thread t ON t.id = m.tid AND t.guid = m.guid
        LEFT JOIN rocpd_string r ON r.id = m.region_name_id AND r.guid = m.guid
        LEFT JOIN rocpd_info_queue q ON q.id = m.queue_id AND q.guid = m.guid
        LEFT JOIN rocpd_info_stream x ON x.id = m.stream_id AND x.guid = m.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
CREATE VIEW memory_allocations AS
    SELECT m.id, m.guid, c.string AS category, m.nid, p.pid, t.tid, m.start, m."end", m."end" - m.start AS duration,
        m.type, m.level, a.name AS agent_name, a.absolute_index AS agent_abs_index, a.logical_index AS agent_log_index,
        a.type_index AS agent_type_index, a.type AS agent_type, m.address, m.size, m.queue_id, q.name AS queue_name,
        m.stream_id, x.name AS stream_name, e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id
    FROM rocpd_memory_allocate m
        JOIN rocpd_event e ON e.id = m.event_id AND e.guid = m.guid
        JOIN rocpd_info_process p ON p.id = m.pid AND p.guid = m.guid
        JOIN rocpd_info_thread t ON t.id = m.tid AND t.guid = m.guid
        LEFT JOIN rocpd_info_agent a ON a.id = m.agent_id AND a.guid = m.guid
        LEFT JOIN rocpd_info_queue q ON q.id = m.queue_id AND q.guid = m.guid
        LEFT JOIN rocpd_info_stream x ON x.id = m.stream_id AND x.guid = m.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid;
CREATE VIEW scratch_memory AS
    SELECT m.id, m.guid, m.nid, p.pid, m.type AS operation, a.name AS agent_name, a.absolute_index AS agent_abs_index,
        a.logical_index AS agent_log_index, a.type_index AS agent_type_index, a.type AS agent_type, m.queue_id, t.tid,
        json_extract(m.extdata, '$.flags') AS alloc_flags, m.start, m."end", m."end" - m.start AS duration, m.size,
        m.address, e.correlation_id, e.stack_id, e.parent_stack_id, e.correlation_id AS corr_id, c.string AS category,
        e.extdata AS event_extdata
    FROM rocpd_memory_allocate m
        JOIN rocpd_event e ON e.id = m.event_id AND e.guid = m.guid
        JOIN rocpd_info_process p ON p.id = m.pid AND p.guid = m.guid
        JOIN rocpd_info_thread t ON t.id = m.tid AND t.guid = m.guid
        LEFT JOIN rocpd_info_agent a ON a.id = m.agent_id AND a.guid = m.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
    WHERE m.level = 'SCRATCH'
    ORDER BY m.start;
CREATE VIEW counters_collection AS
    SELECT min(v.id) AS id, v.guid, k.dispatch_id, k.kernel_id, e.id AS event_id, e.correlation_id, e.stack_id,
        e.parent_stack_id, p.pid, t.tid, k.agent_id, a.absolute_index AS agent_abs_index,
        a.logical_index AS agent_log_index, a.type_index AS agent_type_index, a.type AS agent_type, k.queue_id,
        k.grid_size_x, k.grid_size_y, k.grid_size_z, k.grid_size_x * k.grid_size_y * k.grid_size_z AS grid_size,
        y.display_name AS kernel_name, r.string AS kernel_region, k.workgroup_size_x, k.workgroup_size_y,
        k.workgroup_size_z, k.workgroup_size_x * k.workgroup_size_y * k.workgroup_size_z AS workgroup_size,
        k.group_segment_size AS lds_block_size, k.private_segment_size AS scratch_size,
        y.arch_vgpr_count AS vgpr_count, y.accum_vgpr_count, y.sgpr_count, i.name AS counter_name,
        i.symbol AS counter_symbol, i.component, i.description, i.block, i.expression, i.value_type,
        i.id AS counter_id, sum(v.value) AS value, k.start, k."end", i.is_constant, i.is_derived,
        k."end" - k.start AS duration, c.string AS category, k.nid, e.extdata, y.code_object_id
    -- replays: , k.replay_pass
    FROM rocpd_pmc_event v
        JOIN rocpd_info_pmc i ON i.id = v.pmc_id AND i.guid = v.guid
        JOIN rocpd_event e ON e.id = v.event_id AND e.guid = v.guid
        JOIN rocpd_kernel_dispatch k ON k.event_id = v.event_id AND k.guid = v.guid
        JOIN rocpd_info_agent a ON a.id = k.agent_id AND a.guid = k.guid
        JOIN rocpd_info_kernel_symbol y ON y.id = k.kernel_id AND y.guid = k.guid
        JOIN rocpd_info_process p ON p.id = k.pid AND p.guid = k.guid
        JOIN rocpd_info_thread t ON t.id = k.tid AND t.guid = k.guid
        LEFT JOIN rocpd_string r ON r.id = k.region_name_id AND r.guid = k.guid
        LEFT JOIN rocpd_string c ON c.id = e.category_id AND c.guid = e.guid
    -- Each run of a replayed dispatch has an event of its own.
    GROUP BY v.guid, k.dispatch_id, i.name, k.agent_id, e.id;
-- These three leave out what ends before it begins, or lasts longer than ten years.
CREATE VIEW top_kernels AS
    SELECT y.display_name AS name, count(*) AS total_calls, sum(k."end" - k.start) / 1000.0 AS total_duration,
        sum(k."end" - k.start) / count(*) / 1000.0 AS average,
        sum(k."end" - k.start) * 100.0 / (
            SELECT sum("end" - start) FROM rocpd_kernel_dispatch WHERE "end" - start BETWEEN 0 AND 315360000000000000
    -- replays: AND coalesce(replay_pass, 0) = 0
        ) AS percentage
    FROM rocpd_kernel_dispatch k JOIN rocpd_info_kernel_symbol y ON y.id = k.kernel_id AND y.guid = k.guid
    WHERE k."end" - k.start BETWEEN 0 AND 315360000000000000
    -- replays: AND coalesce(k.replay_pass, 0) = 0
    GROUP BY y.display_name
    ORDER BY total_duration DESC;
CREATE VIEW busy AS
    WITH work AS (
        SELECT agent_id, guid, start, "end" FROM rocpd_kernel_dispatch WHERE "end" - start BETWEEN 0 AND 315360000000000000
        UNION ALL
        SELECT dst_agent_id, guid, start, "end" FROM rocpd_memory_copy WHERE "end" - start BETWEEN 0 AND 315360000000000000
    )
    SELECT w.agent_id, a.type, w.GpuTime, all_work.WallTime, w.GpuTime * 1.0 / all_work.WallTime AS Busy
    FROM (SELECT agent_id, guid, sum("end" - start) AS GpuTime FROM work GROUP BY agent_id, guid) w
        CROSS JOIN (SELECT max("end") - min(start) AS WallTime FROM work) all_work
        JOIN rocpd_info_agent a ON a.id = w.agent_id AND a.guid = w.guid;
CREATE VIEW top AS
    WITH record AS (
        SELECT y.display_name AS name, k."end" - k.start AS duration
        FROM rocpd_kernel_dispatch k JOIN rocpd_info_kernel_symbol y ON y.id = k.kernel_id AND y.guid = k.guid
    -- replays: WHERE coalesce(k.replay_pass, 0) = 0
        UNION ALL
        SELECT s.string, m."end" - m.start
        FROM rocpd_memory_copy m JOIN rocpd_string s ON s.id = m.name_id AND s.guid = m.guid
        UNION ALL
        SELECT s.string, r."end" - r.start
        FROM rocpd_region r JOIN rocpd_string s ON s.id = r.name_id AND s.guid = r.guid
    ), work AS (
        SELECT name, duration FROM record WHERE duration BETWEEN 0 AND 315360000000000000
    )
    SELECT name, count(*) AS total_calls, sum(duration) / 1000.0 AS total_duration,
        sum(duration) / count(*) / 1000.0 AS average,
        sum(duration) * 100.0 / (SELECT sum(duration) FROM work) AS percentage
    FROM work
    GROUP BY name
    ORDER BY total_duration DESC;

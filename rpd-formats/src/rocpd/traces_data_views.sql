-- Views to query, made where there are thread traces. They are the same over several recordings.
CREATE VIEW thread_traces AS
    SELECT s.guid, s.trace, y.display_name AS kernel, s.agent_id, s.shader_engine, s.bytes, s.capacity, s.is_full, s.started,
        s.waves, s.instructions, s.unmatched, s.lost, s.incomplete_waves
    FROM rpd_trace_stream s LEFT JOIN rocpd_info_kernel_symbol y ON y.id = s.kernel_id AND y.guid = s.guid;
CREATE VIEW thread_trace_waves AS
    SELECT w.guid, s.trace, s.shader_engine, w.cu, w.simd, w.slot, w.start, w."end", w."end" - w.start AS duration,
        w.instructions, w.latency, w.stall, w.is_complete
    FROM rpd_trace_wave w JOIN rpd_trace_stream s ON s.id = w.stream_id AND s.guid = w.guid;
CREATE VIEW thread_trace_occupancy AS
    SELECT o.guid, s.trace, s.shader_engine, o.start, o."end", 1.0 * o.wave_cycles / (o."end" - o.start) AS waves
    FROM rpd_trace_occupancy o JOIN rpd_trace_stream s ON s.id = o.stream_id AND s.guid = o.guid;
CREATE VIEW thread_trace_units AS
    SELECT u.guid, s.trace, s.shader_engine, u.cu, u.waves, u.wave_cycles
    FROM rpd_trace_unit u JOIN rpd_trace_stream s ON s.id = u.stream_id AND s.guid = u.guid;
CREATE VIEW thread_trace_instructions AS
    SELECT p.guid, p.trace, y.display_name AS kernel, i.code_object_id, i."offset" AS code_object_offset,
        t.string AS instruction, f.string AS file, l.line, p.hits, p.latency,
        coalesce((SELECT sum(c.cycles) FROM rpd_trace_stall c
            WHERE c.trace_instruction_id = p.id AND c.guid = p.guid), 0) AS stall,
        p.idle,
        (SELECT group_concat(c.reason || '=' || c.cycles, ' ') FROM rpd_trace_stall c
            WHERE c.trace_instruction_id = p.id AND c.guid = p.guid) AS stall_reasons
    FROM rpd_trace_instruction p JOIN rpd_instruction i ON i.id = p.instruction_id AND i.guid = p.guid
        LEFT JOIN rocpd_info_kernel_symbol y ON y.id = p.kernel_id AND y.guid = p.guid
        LEFT JOIN rocpd_string t ON t.id = i.text_id AND t.guid = i.guid
        LEFT JOIN rpd_instruction_line l ON l.instruction_id = i.id AND l.guid = i.guid AND l.depth = 0
        LEFT JOIN rocpd_string f ON f.id = l.file_id AND f.guid = l.guid
    ORDER BY p.latency DESC;
CREATE VIEW thread_trace_lines AS
    SELECT guid, kernel, file, line, sum(hits) AS hits, sum(latency) AS latency, sum(stall) AS stall, sum(idle) AS idle
    FROM thread_trace_instructions
    GROUP BY guid, kernel, file, line
    ORDER BY latency DESC;

-- One view per table of traces.sql, under the name that readers use.
CREATE VIEW rpd_trace_stream AS
    SELECT id, '%guid%' AS guid, agent_id, trace, kernel_id, shader_engine, bytes, capacity, is_full, started, waves,
        instructions, unmatched, lost, incomplete_waves
    FROM rpd_trace_stream%suffix%;
CREATE VIEW rpd_trace_wave AS
    SELECT id, '%guid%' AS guid, stream_id, cu, simd, slot, start, "end", instructions, latency, stall, is_complete
    FROM rpd_trace_wave%suffix%;
CREATE VIEW rpd_trace_occupancy AS
    SELECT id, '%guid%' AS guid, stream_id, start, "end", wave_cycles FROM rpd_trace_occupancy%suffix%;
CREATE VIEW rpd_trace_unit AS
    SELECT id, '%guid%' AS guid, stream_id, cu, waves, wave_cycles FROM rpd_trace_unit%suffix%;
CREATE VIEW rpd_trace_instruction AS
    SELECT id, '%guid%' AS guid, agent_id, trace, kernel_id, instruction_id, hits, latency, idle
    FROM rpd_trace_instruction%suffix%;
CREATE VIEW rpd_trace_stall AS
    SELECT id, '%guid%' AS guid, trace_instruction_id, reason, cycles FROM rpd_trace_stall%suffix%;

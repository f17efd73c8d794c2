-- Tables of thread traces, made only for runs that have some; their instructions are those of samples.sql. `%suffix%` ends
-- every table's name, as in schema.sql. Readers use the rpd_* views of traces_views.sql, which add `guid`.

-- What was found in the stream of a shader engine. `trace` is the number of a dispatch, or, with `kernel_id` 0, that of a
-- trace of the whole agent. `is_full`: the buffer of `capacity` bytes was full. `started` counts waves of all compute units,
-- the other columns those of the traced one.
CREATE TABLE rpd_trace_stream%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    trace BIGINT NOT NULL,
    kernel_id INTEGER NOT NULL,
    shader_engine INTEGER NOT NULL,
    bytes BIGINT NOT NULL,
    capacity BIGINT NOT NULL,
    is_full INTEGER NOT NULL,
    started BIGINT NOT NULL,
    waves BIGINT NOT NULL,
    instructions BIGINT NOT NULL,
    unmatched BIGINT NOT NULL,
    lost BIGINT NOT NULL,
    incomplete_waves BIGINT NOT NULL
);
-- A wave of the traced compute unit; times are shader clock cycles of its trace.
CREATE TABLE rpd_trace_wave%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    stream_id INTEGER NOT NULL REFERENCES rpd_trace_stream%suffix% (id) ON UPDATE CASCADE,
    cu INTEGER NOT NULL,
    simd INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    instructions BIGINT NOT NULL,
    latency BIGINT NOT NULL,
    stall BIGINT NOT NULL,
    is_complete INTEGER NOT NULL
);
-- Waves on all compute units of a shader engine over time: cycles of waves, added up, between `start` and `end`. Parts without
-- waves have no row.
CREATE TABLE rpd_trace_occupancy%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    stream_id INTEGER NOT NULL REFERENCES rpd_trace_stream%suffix% (id) ON UPDATE CASCADE,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    wave_cycles BIGINT NOT NULL
);
-- What ran on a compute unit, whether its instructions were traced or not.
CREATE TABLE rpd_trace_unit%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    stream_id INTEGER NOT NULL REFERENCES rpd_trace_stream%suffix% (id) ON UPDATE CASCADE,
    cu INTEGER NOT NULL,
    waves BIGINT NOT NULL,
    wave_cycles BIGINT NOT NULL
);
-- What an instruction took in a trace, added up over its waves, in shader clock cycles: `latency` from when it could first
-- have been issued to its end, `idle` between the instructions before it and that.
CREATE TABLE rpd_trace_instruction%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    trace BIGINT NOT NULL,
    kernel_id INTEGER NOT NULL,
    instruction_id INTEGER NOT NULL REFERENCES rpd_instruction%suffix% (id) ON UPDATE CASCADE,
    hits BIGINT NOT NULL,
    latency BIGINT NOT NULL,
    idle BIGINT NOT NULL
);
-- The part of `latency` before it was issued, by reason.
CREATE TABLE rpd_trace_stall%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    trace_instruction_id INTEGER NOT NULL REFERENCES rpd_trace_instruction%suffix% (id) ON UPDATE CASCADE,
    reason TEXT NOT NULL,
    cycles BIGINT NOT NULL
);

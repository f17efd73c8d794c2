-- Tables of PC samples, made only for runs that have some. `%suffix%` ends every table's name, as in schema.sql; texts
-- are ids of rocpd_string. Readers use the rpd_* views of samples_views.sql, which add `guid`.

-- How an agent was sampled: `method` is stochastic or host_trap, `interval` counts instructions, cycles or (time)
-- microseconds.
CREATE TABLE rpd_pc_sampling%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    method TEXT NOT NULL,
    unit TEXT NOT NULL,
    "interval" BIGINT NOT NULL
);
-- The bytes of code objects, which are ELF files, in parts that follow one another. Code objects with the same `content`
-- have the same bytes.
CREATE TABLE rpd_code_bytes%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    content TEXT NOT NULL,
    bytes BLOB NOT NULL
);
CREATE TABLE rpd_code_object%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    content TEXT NOT NULL
);
-- An instruction of a function that samples were taken in, or another place that samples are at. `offset` is from the
-- load address of the code object; without one (0) it is an address. `text_id` is NULL for what could not be decoded.
CREATE TABLE rpd_instruction%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    code_object_id INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    length INTEGER NOT NULL,
    text_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    function_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE
);
-- Source lines of an instruction: its own has `depth` 0, the line of the call that was inlined there 1, and so on.
CREATE TABLE rpd_instruction_line%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    instruction_id INTEGER NOT NULL REFERENCES rpd_instruction%suffix% (id) ON UPDATE CASCADE,
    depth INTEGER NOT NULL,
    function_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    file_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    line INTEGER NOT NULL,
    col INTEGER NOT NULL
);
-- Source files, as they were when the database was written.
CREATE TABLE rpd_source%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    path_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    text TEXT NOT NULL
);
-- A sample. `hardware`, `snapshot` and `memory` are packed as the SDK packs them; `state` has, from the lowest bit: 1
-- stochastic, 2 issued, 4 `memory` is meaningful; in bits 8 to 15 the class of the instruction, in 16 to 23 the number
-- of the wave in its workgroup, from 24 on the active waves. `snapshot` and `memory` are NULL for host trap samples.
CREATE TABLE rpd_pc_sample%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    "timestamp" BIGINT NOT NULL,
    instruction_id INTEGER NOT NULL REFERENCES rpd_instruction%suffix% (id) ON UPDATE CASCADE,
    dispatch_id BIGINT NOT NULL,
    correlation_id BIGINT NOT NULL,
    exec_mask BIGINT NOT NULL,
    hardware BIGINT NOT NULL,
    workgroup_x INTEGER NOT NULL,
    workgroup_y INTEGER NOT NULL,
    workgroup_z INTEGER NOT NULL,
    state BIGINT NOT NULL,
    region_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    snapshot INTEGER,
    memory INTEGER
);
-- Samples added up by kernel, instruction and what the issue logic did: `issue` is NULL for host trap samples, issued,
-- or why no instruction was issued. `lanes` and `waves` are sums over the samples; 0 on NVIDIA GPUs, which report neither, nor
-- a sample by itself: these have no rows in rpd_pc_sample. `offset` of their instructions has the number of the function's
-- symbol in its module times 4294967296, plus the offset in the function.
CREATE TABLE rpd_pc_total%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    kernel_id INTEGER NOT NULL,
    instruction_id INTEGER NOT NULL REFERENCES rpd_instruction%suffix% (id) ON UPDATE CASCADE,
    issue TEXT,
    samples BIGINT NOT NULL,
    lanes BIGINT NOT NULL,
    waves BIGINT NOT NULL
);
-- Samples of a kernel at an instruction with ticks drawn again: 64 numbers of 32 bits, for the errors of shares.
CREATE TABLE rpd_pc_replicate%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    kernel_id INTEGER NOT NULL,
    instruction_id INTEGER NOT NULL REFERENCES rpd_instruction%suffix% (id) ON UPDATE CASCADE,
    counts BLOB NOT NULL
);

-- Tables of schema 3, with the columns of the original in its order. `%suffix%` ends every table's name, `%guid%`, `%nid%` and
-- `%pid%` are the constants of the process.
--
-- A column marked `constant` has the same value in every row. `tables.rs` makes it last, where it takes no space; with the layout
-- of the original it stands in its place and each row has it. The rocpd_* views, which are what readers use, have the columns in
-- the order of this file either way. A row takes no space for values at its end that are the defaults of their columns.
--
-- What is marked `since` is there in databases of that version of the schema and later. A recording has the first version that has
-- a place for all that it holds.
--
-- A column marked `id` has the id of its row, and the view takes it from there: so no index is needed to find the row of an event.

CREATE TABLE rocpd_metadata%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    tag TEXT NOT NULL,
    value TEXT NOT NULL
);
CREATE TABLE rocpd_string%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    string TEXT NOT NULL UNIQUE ON CONFLICT ABORT
);
CREATE TABLE rocpd_info_node%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    hash BIGINT NOT NULL UNIQUE,
    machine_id TEXT NOT NULL UNIQUE,
    system_name TEXT,
    hostname TEXT,
    release TEXT,
    version TEXT,
    hardware_name TEXT,
    domain_name TEXT
);
CREATE TABLE rocpd_info_process%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    ppid INTEGER,
    pid INTEGER NOT NULL,
    init BIGINT,
    fini BIGINT,
    start BIGINT,
    "end" BIGINT,
    command TEXT,
    environment JSONB NOT NULL DEFAULT '{}',
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_info_thread%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    ppid INTEGER,
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    tid INTEGER NOT NULL,
    name TEXT,
    start BIGINT,
    "end" BIGINT,
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_info_agent%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    type TEXT CHECK (type IN ('CPU', 'GPU', 'NIC')),
    absolute_index INTEGER,
    logical_index INTEGER,
    type_index INTEGER,
    uuid INTEGER,
    name TEXT,
    model_name TEXT,
    vendor_name TEXT,
    product_name TEXT,
    user_name TEXT,
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_info_queue%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    name TEXT,
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_info_stream%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    name TEXT,
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_info_pmc%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    target_arch TEXT CHECK (target_arch IN ('CPU', 'GPU', 'NIC')),
    event_code INT,
    instance_id INTEGER,
    name TEXT NOT NULL,
    symbol TEXT NOT NULL,
    description TEXT,
    long_description TEXT DEFAULT '',
    component TEXT,
    units TEXT DEFAULT '',
    value_type TEXT CHECK (value_type IN ('ABS', 'ACCUM', 'RELATIVE')),
    block TEXT,
    expression TEXT,
    is_constant INTEGER,
    is_derived INTEGER,
    spm_support INTEGER DEFAULT 0, -- since 3.0.3
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_info_code_object%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    uri TEXT,
    load_base BIGINT,
    load_size BIGINT,
    load_delta BIGINT,
    storage_type TEXT CHECK (storage_type IN ('FILE', 'MEMORY')),
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_info_kernel_symbol%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    code_object_id INTEGER NOT NULL REFERENCES rocpd_info_code_object%suffix% (id) ON UPDATE CASCADE,
    kernel_name TEXT,
    display_name TEXT,
    kernel_object INTEGER,
    kernarg_segment_size INTEGER,
    kernarg_segment_alignment INTEGER,
    group_segment_size INTEGER,
    private_segment_size INTEGER,
    sgpr_count INTEGER,
    arch_vgpr_count INTEGER,
    accum_vgpr_count INTEGER,
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_track%suffix% (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    guid TEXT NOT NULL DEFAULT '%guid%',
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE,
    pid INTEGER DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE,
    tid INTEGER REFERENCES rocpd_info_thread%suffix% (id) ON UPDATE CASCADE,
    name_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_event%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    category_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    stack_id INTEGER,
    parent_stack_id INTEGER DEFAULT 0,
    correlation_id INTEGER DEFAULT 0,
    call_stack JSONB NOT NULL DEFAULT '{}', -- constant
    line_info JSONB NOT NULL DEFAULT '{}', -- constant
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_arg%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    event_id INTEGER NOT NULL REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    position INTEGER NOT NULL,
    type TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT,
    extdata JSONB NOT NULL DEFAULT '{}' -- constant
);
-- Values of a counter in a dispatch stand in the order of its instances; where one is left out before a value, the key
-- `rpd_instance` of its `extdata` is its number.
CREATE TABLE rocpd_pmc_event%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    sample_id INTEGER DEFAULT NULL REFERENCES rocpd_sample%suffix% (id) ON UPDATE CASCADE, -- since 3.0.3
    pmc_id INTEGER NOT NULL REFERENCES rocpd_info_pmc%suffix% (id) ON UPDATE CASCADE,
    value REAL DEFAULT 0.0,
    xcc INTEGER DEFAULT NULL, -- since 3.0.3
    shader_engine INTEGER DEFAULT NULL, -- since 3.0.3
    instance INTEGER DEFAULT NULL, -- since 3.0.3
    extdata JSONB DEFAULT '{}'
);
CREATE TABLE rocpd_region%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE, -- constant
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE, -- constant
    tid INTEGER NOT NULL REFERENCES rocpd_info_thread%suffix% (id) ON UPDATE CASCADE,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    name_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE, -- id
    extdata JSONB NOT NULL DEFAULT '{}' -- constant
);
CREATE TABLE rocpd_sample%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    track_id INTEGER NOT NULL REFERENCES rocpd_track%suffix% (id) ON UPDATE CASCADE,
    timestamp BIGINT NOT NULL,
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE, -- id
    extdata JSONB NOT NULL DEFAULT '{}' -- constant
);
CREATE TABLE rocpd_kernel_dispatch%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE, -- constant
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE, -- constant
    tid INTEGER REFERENCES rocpd_info_thread%suffix% (id) ON UPDATE CASCADE,
    agent_id INTEGER NOT NULL REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    kernel_id INTEGER NOT NULL REFERENCES rocpd_info_kernel_symbol%suffix% (id) ON UPDATE CASCADE,
    dispatch_id INTEGER NOT NULL,
    queue_id INTEGER NOT NULL REFERENCES rocpd_info_queue%suffix% (id) ON UPDATE CASCADE,
    stream_id INTEGER NOT NULL REFERENCES rocpd_info_stream%suffix% (id) ON UPDATE CASCADE,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    private_segment_size INTEGER,
    group_segment_size INTEGER,
    workgroup_size_x INTEGER NOT NULL,
    workgroup_size_y INTEGER NOT NULL,
    workgroup_size_z INTEGER NOT NULL,
    grid_size_x INTEGER NOT NULL,
    grid_size_y INTEGER NOT NULL,
    grid_size_z INTEGER NOT NULL,
    graph_exec_id INTEGER NOT NULL DEFAULT 0, -- since 3.0.2
    graph_node_id INTEGER NOT NULL DEFAULT 0, -- since 3.0.2
    region_name_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    replay_pass INTEGER, -- since 3.0.5
    extdata JSONB NOT NULL DEFAULT '{}' -- constant
);
CREATE TABLE rocpd_memory_copy%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE, -- constant
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE, -- constant
    tid INTEGER REFERENCES rocpd_info_thread%suffix% (id) ON UPDATE CASCADE,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    name_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    dst_agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    dst_address INTEGER,
    src_agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    src_address INTEGER,
    size INTEGER NOT NULL,
    queue_id INTEGER DEFAULT NULL REFERENCES rocpd_info_queue%suffix% (id) ON UPDATE CASCADE, -- constant
    stream_id INTEGER REFERENCES rocpd_info_stream%suffix% (id) ON UPDATE CASCADE,
    graph_exec_id INTEGER NOT NULL DEFAULT 0, -- since 3.0.2
    graph_node_id INTEGER NOT NULL DEFAULT 0, -- since 3.0.2
    region_name_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    extdata JSONB NOT NULL DEFAULT '{}' -- constant
);
CREATE TABLE rocpd_memory_allocate%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE, -- constant
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE, -- constant
    tid INTEGER REFERENCES rocpd_info_thread%suffix% (id) ON UPDATE CASCADE,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    type TEXT CHECK (type IN ('ALLOC', 'FREE', 'REALLOC', 'RECLAIM')),
    level TEXT CHECK (level IN ('REAL', 'VIRTUAL', 'SCRATCH')),
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    address INTEGER,
    size INTEGER NOT NULL,
    queue_id INTEGER REFERENCES rocpd_info_queue%suffix% (id) ON UPDATE CASCADE,
    stream_id INTEGER REFERENCES rocpd_info_stream%suffix% (id) ON UPDATE CASCADE,
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    extdata JSONB NOT NULL DEFAULT '{}'
);
CREATE TABLE rocpd_graph_launch%suffix% ( -- since 3.0.2
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE, -- constant
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE, -- constant
    tid INTEGER REFERENCES rocpd_info_thread%suffix% (id) ON UPDATE CASCADE,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    queue_id INTEGER DEFAULT NULL REFERENCES rocpd_info_queue%suffix% (id) ON UPDATE CASCADE,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    graph_exec_id INTEGER NOT NULL,
    kernel_dispatch_count INTEGER NOT NULL DEFAULT 0,
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    extdata JSONB NOT NULL DEFAULT '{}' -- constant
);
CREATE TABLE rocpd_hip_event%suffix% ( -- since 3.0.4
    id INTEGER NOT NULL PRIMARY KEY,
    guid TEXT NOT NULL DEFAULT '%guid%', -- constant
    nid INTEGER NOT NULL DEFAULT %nid% REFERENCES rocpd_info_node%suffix% (id) ON UPDATE CASCADE, -- constant
    pid INTEGER NOT NULL DEFAULT %pid% REFERENCES rocpd_info_process%suffix% (id) ON UPDATE CASCADE, -- constant
    tid INTEGER REFERENCES rocpd_info_thread%suffix% (id) ON UPDATE CASCADE,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    name_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    agent_id INTEGER REFERENCES rocpd_info_agent%suffix% (id) ON UPDATE CASCADE,
    queue_id INTEGER REFERENCES rocpd_info_queue%suffix% (id) ON UPDATE CASCADE,
    stream_id INTEGER REFERENCES rocpd_info_stream%suffix% (id) ON UPDATE CASCADE,
    hip_event_handle INTEGER NOT NULL,
    source_queue_id INTEGER,
    event_id INTEGER REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    extdata JSONB NOT NULL DEFAULT '{}' -- constant
);

-- Tables of call stacks, made only for runs that have some or requested them. `%suffix%` ends every table's name, as in schema.sql; texts
-- are ids of rocpd_string. Readers use the rpd_* views of stacks_views.sql, which add `guid` and, where the process
-- matters, `pid`. Tags of rocpd_metadata: `stacks` (native, python, merged), `stacks_runtime_frames` and
-- `stacks_interpreter_frames` (0, 1: whether frames of GPU runtimes and of interpreters are shown).

-- A file that was mapped into the process, once for each time that it was loaded. `base` is the load bias: an address
-- minus it is an address of the file. `build_id` is in hexadecimal digits. `seen_to` is NULL for what was not unloaded.
CREATE TABLE rpd_module%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    path_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    build_id TEXT,
    base BIGINT NOT NULL,
    start BIGINT NOT NULL,
    "end" BIGINT NOT NULL,
    seen_from BIGINT,
    seen_to BIGINT
);
-- A Python code object. `pyversion` is as PY_VERSION_HEX; `linetable` is the interpreter's table, encoded as that version
-- encodes it.
CREATE TABLE rpd_pycode%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    filename_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    name_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    qualname_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    firstlineno INTEGER NOT NULL,
    pyversion INTEGER NOT NULL,
    linetable BLOB NOT NULL
);
-- A place in code. Native: an address in `rel_pc`, relative to its module or, without one, absolute. Python: an offset
-- into the code object, as the interpreter keeps it.
CREATE TABLE rpd_location%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('native', 'python', 'jit', 'api', 'script', 'inductor', 'unplaced-marker',
        'truncated-marker', 'gap-marker', 'guessed')),
    module_id INTEGER REFERENCES rpd_module%suffix% (id) ON UPDATE CASCADE,
    rel_pc BIGINT,
    pycode_id INTEGER REFERENCES rpd_pycode%suffix% (id) ON UPDATE CASCADE,
    lasti INTEGER
);
-- What stands at a location, written when symbols are looked up: the innermost inlined function has `inline_depth` 0, the
-- function that has the code the greatest. `evidence` is what the function's name is from: dwarf, symtab, dynsym, none, or
-- what other kinds of location have.
CREATE TABLE rpd_frame%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    location_id INTEGER NOT NULL REFERENCES rpd_location%suffix% (id) ON UPDATE CASCADE,
    inline_depth INTEGER NOT NULL,
    function_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    file_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    line INTEGER,
    col INTEGER,
    evidence TEXT
);
-- The call tree: a node for each distinct beginning of a stack, seen from the outermost frame, which has no parent. A
-- stack is named by the node of its innermost frame.
CREATE TABLE rpd_stack%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    parent_id INTEGER REFERENCES rpd_stack%suffix% (id) ON UPDATE CASCADE,
    location_id INTEGER NOT NULL REFERENCES rpd_location%suffix% (id) ON UPDATE CASCADE,
    depth INTEGER NOT NULL
);
-- The stack of a call, marker or allocation. `api_id` is the id of its event. `flags` are bits: 1 truncated, 2 on a stack
-- that is not the thread's own, 4 frames left out in the middle, 8 with Python frames that have no place, 16 something
-- that the stack refers to could not be stored, 32 Python frames could not be read, 65536 taken of one call in several.
-- A stack of which nothing is known has no row.
CREATE TABLE rpd_api_stack%suffix% (
    api_id INTEGER NOT NULL PRIMARY KEY REFERENCES rocpd_event%suffix% (id) ON UPDATE CASCADE,
    stack_id INTEGER NOT NULL REFERENCES rpd_stack%suffix% (id) ON UPDATE CASCADE,
    flags INTEGER NOT NULL DEFAULT 0
);
-- The call that added a node to a graph, where it is known: its event has this `stack_id`. Work of the node has the stack
-- of that call.
CREATE TABLE rpd_captured_node%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    graph_exec_id INTEGER NOT NULL,
    graph_node_id INTEGER NOT NULL,
    stack_id BIGINT NOT NULL
);
-- The frames of the stacks in rpd_api_stack, `depth` 0 innermost, inlined ones counted; written with rpd_frame.
CREATE TABLE rpd_stack_frame%suffix% (
    stack_id INTEGER NOT NULL REFERENCES rpd_stack%suffix% (id) ON UPDATE CASCADE,
    depth INTEGER NOT NULL,
    frame_id INTEGER NOT NULL REFERENCES rpd_frame%suffix% (id) ON UPDATE CASCADE,
    PRIMARY KEY (stack_id, depth)
) WITHOUT ROWID;
-- What lines of a generated Python file were made from, as the program said through the Python package rpd: `depth` 0 is
-- the innermost source frame.
CREATE TABLE rpd_generated_line%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    first_line INTEGER NOT NULL,
    last_line INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    function_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    source_id INTEGER REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    source_line INTEGER
);
-- Texts of generated Python files that stacks have code of.
CREATE TABLE rpd_generated_file%suffix% (
    file_id INTEGER NOT NULL PRIMARY KEY REFERENCES rocpd_string%suffix% (id) ON UPDATE CASCADE,
    text TEXT NOT NULL
);
-- Empty tables beside the views of stacks_compat.sql. `rocpd merge` of the original makes of each view rocpd_<name> the union of
-- the tables rocpd_<name>_*, and fails where there is none.
CREATE TABLE rocpd_api%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    pid INTEGER NOT NULL,
    tid INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER NOT NULL,
    apiName_id BIGINT NOT NULL,
    category_id BIGINT NOT NULL,
    domain_id BIGINT NOT NULL,
    args_id BIGINT NOT NULL
);
CREATE TABLE rocpd_ustring%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    string TEXT NOT NULL
);
CREATE TABLE rocpd_stackframe%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    api_ptr_id BIGINT NOT NULL,
    depth INTEGER NOT NULL,
    name_id BIGINT NOT NULL
);
CREATE TABLE rocpd_stackstrings%suffix% (
    id INTEGER NOT NULL PRIMARY KEY,
    hip_api TEXT NOT NULL,
    args TEXT NOT NULL,
    depth INTEGER NOT NULL,
    frame TEXT NOT NULL
);

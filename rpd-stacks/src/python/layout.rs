//! Offsets of the fields of CPython's structures, by version.
//!
//! Up to 3.12 the numbers are a table, taken from the headers of each version. From 3.13 on an interpreter carries a
//! table of its own at the start of `_PyRuntime`; the order of that table is known for the versions named here, and an
//! interpreter of any other version is not read. All numbers are of 64-bit builds.

use super::memory::Memory;

/// Sign by which the Python frames of one activation of the evaluator are delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Each frame has its own activation, of which nothing is known (3.8, 3.9).
    Each,
    /// Each frame has its own activation, and a `CFrame` on its stack (3.10).
    EachWithCFrame,
    /// A frame marked as entry is the outermost of an activation, which has a `_PyCFrame` on its stack (3.11).
    EntryFrame,
    /// A frame that is a C local of the evaluator follows the outermost of an activation (from 3.12 on).
    Shim,
}

/// Offsets of fields in bytes, and other differences between versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) grouping: Grouping,
    /// `_PyRuntime` to the thread state that finalizes, or null.
    pub(crate) finalizing: usize,
    /// Where the states of threads are listed; `None` before 3.12, where the state that belongs to a thread is not known
    /// if it runs several interpreters.
    pub(crate) states: Option<StateLists>,
    /// Thread state to the first frame (3.8 to 3.10, 3.13 on) or to the current `CFrame` (3.11, 3.12).
    pub(crate) current: usize,
    /// Thread state to the current `CFrame` and to the outermost `CFrame` (3.10 to 3.12).
    pub(crate) c_frame: usize,
    pub(crate) root_c_frame: usize,
    /// `CFrame` to the next further out, and to its frame (3.11, 3.12).
    pub(crate) c_frame_previous: usize,
    pub(crate) c_frame_current: usize,
    /// Frame to its fields. `instruction` is `f_lasti`, `prev_instr` or `instr_ptr`.
    pub(crate) frame_previous: usize,
    pub(crate) frame_code: usize,
    pub(crate) frame_instruction: usize,
    pub(crate) frame_owner: usize,
    pub(crate) frame_is_entry: usize,
    /// Index of the copy of the code that the frame runs, 0 if code has one copy only.
    pub(crate) frame_code_copy: usize,
    /// Code object to its fields; 0 for one that the version lacks.
    pub(crate) code_file: usize,
    pub(crate) code_name: usize,
    pub(crate) code_qualname: usize,
    pub(crate) code_first_line: usize,
    pub(crate) code_line_table: usize,
    pub(crate) code_instructions: usize,
    pub(crate) code_first_traceable: usize,
    /// A number that no two code objects of a process share unless it is 0 (3.12 on).
    pub(crate) code_version: usize,
    /// The copies of the code (free-threaded 3.14).
    pub(crate) code_copies: usize,
    pub(crate) object_type: usize,
    /// Type to its name and to the function that frees its objects.
    pub(crate) type_name: usize,
    pub(crate) type_deallocate: usize,
    /// `str` to its fields, and the size of the two headers before the characters.
    pub(crate) text_length: usize,
    pub(crate) text_hash: usize,
    pub(crate) text_state: usize,
    pub(crate) text_ascii: usize,
    pub(crate) text_compact: usize,
    /// First bit of `kind` in the state of a `str`.
    pub(crate) text_kind_shift: u32,
    pub(crate) bytes_length: usize,
    pub(crate) bytes_data: usize,
}

/// Offsets of the links from `_PyRuntime` to interpreters and from these to the states of their threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateLists {
    /// `_PyRuntime` to the interpreter that was made last. The main interpreter, the last of the list, is named one word
    /// further.
    pub(crate) interpreters: usize,
    /// Interpreter to the next one, and to its first thread state.
    pub(crate) interpreter_next: usize,
    pub(crate) interpreter_states: usize,
    /// Thread state to the next one, to its interpreter, and to the `pthread_t` of its thread.
    pub(crate) state_next: usize,
    pub(crate) state_interpreter: usize,
    pub(crate) state_thread: usize,
}

const BEFORE_3_12: Layout = Layout {
    grouping: Grouping::Each,
    finalizing: 16,
    states: None,
    current: 24,
    c_frame: 0,
    root_c_frame: 0,
    c_frame_previous: 0,
    c_frame_current: 0,
    frame_previous: 24,
    frame_code: 32,
    frame_instruction: 104,
    frame_owner: 0,
    frame_is_entry: 0,
    frame_code_copy: 0,
    code_file: 104,
    code_name: 112,
    code_qualname: 0,
    code_first_line: 40,
    code_line_table: 120,
    code_instructions: 0,
    code_first_traceable: 0,
    code_version: 0,
    code_copies: 0,
    object_type: 8,
    type_name: 24,
    type_deallocate: 48,
    text_length: 16,
    text_hash: 24,
    text_state: 32,
    text_ascii: 48,
    text_compact: 72,
    text_kind_shift: 2,
    bytes_length: 16,
    bytes_data: 32,
};

const V3_10: Layout = Layout {
    grouping: Grouping::EachWithCFrame,
    c_frame: 48,
    root_c_frame: 264,
    c_frame_previous: 8,
    frame_instruction: 96,
    ..BEFORE_3_12
};

const V3_11: Layout = Layout {
    grouping: Grouping::EntryFrame,
    finalizing: 24,
    current: 56,
    c_frame: 56,
    root_c_frame: 336,
    c_frame_previous: 16,
    c_frame_current: 8,
    frame_previous: 48,
    frame_code: 32,
    frame_instruction: 56,
    frame_owner: 69,
    frame_is_entry: 68,
    code_file: 112,
    code_name: 120,
    code_qualname: 128,
    code_first_line: 72,
    code_line_table: 136,
    code_instructions: 184,
    code_first_traceable: 168,
    ..BEFORE_3_12
};

const V3_12: Layout = Layout {
    grouping: Grouping::Shim,
    states: Some(StateLists {
        interpreters: 40,
        interpreter_next: 0,
        interpreter_states: 72,
        state_next: 8,
        state_interpreter: 16,
        state_thread: 136,
    }),
    root_c_frame: 272,
    c_frame_previous: 8,
    c_frame_current: 0,
    frame_previous: 8,
    frame_code: 0,
    frame_owner: 70,
    frame_is_entry: 0,
    code_first_line: 68,
    code_instructions: 192,
    code_first_traceable: 176,
    code_version: 92,
    text_ascii: 40,
    text_compact: 56,
    ..V3_11
};

/// Position of each offset in the interpreter's own table, counted in words after cookie and version.
struct TableOrder {
    words: usize,
    free_threaded: usize,
    finalizing: usize,
    interpreters: usize,
    interpreter_next: usize,
    interpreter_states: usize,
    state_next: usize,
    state_interpreter: usize,
    current_frame: usize,
    state_thread: usize,
    frame_previous: usize,
    frame_code: usize,
    frame_instruction: usize,
    frame_owner: usize,
    frame_code_copy: Option<usize>,
    code_file: usize,
    code_name: usize,
    code_qualname: usize,
    code_line_table: usize,
    code_first_line: usize,
    code_instructions: usize,
    code_copies: Option<usize>,
    object_type: usize,
    bytes_length: usize,
    bytes_data: usize,
    text_state: usize,
    text_length: usize,
    text_ascii: usize,
}

/// Words before the groups of the table, and of each group: the numbers below are sums of these.
const TABLE_3_13: TableOrder = TableOrder {
    words: 71,
    free_threaded: 0,
    finalizing: 2,
    interpreters: 3,
    interpreter_next: 6,
    interpreter_states: 7,
    state_next: 19,
    state_interpreter: 20,
    current_frame: 21,
    state_thread: 22,
    frame_previous: 27,
    frame_code: 28,
    frame_instruction: 29,
    frame_owner: 31,
    frame_code_copy: None,
    code_file: 33,
    code_name: 34,
    code_qualname: 35,
    code_line_table: 36,
    code_first_line: 37,
    code_instructions: 41,
    code_copies: None,
    object_type: 43,
    bytes_length: 63,
    bytes_data: 64,
    text_state: 66,
    text_length: 67,
    text_ascii: 68,
};

const TABLE_3_14: TableOrder = TableOrder {
    words: 93,
    free_threaded: 0,
    finalizing: 2,
    interpreters: 3,
    interpreter_next: 6,
    interpreter_states: 7,
    state_next: 22,
    state_interpreter: 23,
    current_frame: 24,
    state_thread: 25,
    frame_previous: 30,
    frame_code: 31,
    frame_instruction: 32,
    frame_owner: 34,
    frame_code_copy: Some(36),
    code_file: 38,
    code_name: 39,
    code_qualname: 40,
    code_line_table: 41,
    code_first_line: 42,
    code_instructions: 46,
    code_copies: Some(47),
    object_type: 49,
    bytes_length: 73,
    bytes_data: 74,
    text_state: 76,
    text_length: 77,
    text_ascii: 78,
};

/// Largest offset that is accepted.
const LARGEST_OFFSET: u64 = 1 << 16;

/// Reads the interpreter's own table at `runtime` in the order of its version.
fn own_table(memory: &impl Memory, runtime: usize, order: &TableOrder) -> Option<Layout> {
    let word = |index: usize| {
        debug_assert!(index < order.words);
        memory
            .word(runtime + 16 + 8 * index)
            .map(|word| word as u64)
    };
    // A greater number is no offset: the table is of another version, or no table at all.
    let offset = |index: usize| {
        word(index)
            .filter(|&offset| offset < LARGEST_OFFSET)
            .map(|offset| offset as usize)
    };
    let free_threaded = match word(order.free_threaded)? {
        0 => false,
        1 => true,
        _ => return None,
    };
    // Only the free-threaded build has these fields.
    let optional = |index: Option<usize>| match index {
        Some(index) if free_threaded => offset(index),
        _ => Some(0),
    };
    let first_line = offset(order.code_first_line)?;
    let instructions = offset(order.code_instructions)?;
    let code_copies = optional(order.code_copies)?;
    // The table does not name these: they keep their distance to a neighbour in all versions that have one.
    let code_version = first_line + 24;
    let code_first_traceable = if code_copies == 0 {
        instructions.checked_sub(16)?
    } else {
        code_copies.checked_sub(16)?
    };
    let text_length = offset(order.text_length)?;
    let text_ascii = offset(order.text_ascii)?;
    // Fields of the C frames stay 0: from 3.13 on the first frame is in the thread's state.
    Some(Layout {
        finalizing: offset(order.finalizing)?,
        states: Some(StateLists {
            interpreters: offset(order.interpreters)?,
            interpreter_next: offset(order.interpreter_next)?,
            interpreter_states: offset(order.interpreter_states)?,
            state_next: offset(order.state_next)?,
            state_interpreter: offset(order.state_interpreter)?,
            state_thread: offset(order.state_thread)?,
        }),
        current: offset(order.current_frame)?,
        c_frame: 0,
        root_c_frame: 0,
        c_frame_previous: 0,
        c_frame_current: 0,
        frame_previous: offset(order.frame_previous)?,
        frame_code: offset(order.frame_code)?,
        frame_instruction: offset(order.frame_instruction)?,
        frame_owner: offset(order.frame_owner)?,
        frame_code_copy: optional(order.frame_code_copy)?,
        code_file: offset(order.code_file)?,
        code_name: offset(order.code_name)?,
        code_qualname: offset(order.code_qualname)?,
        code_first_line: first_line,
        code_line_table: offset(order.code_line_table)?,
        code_instructions: instructions,
        code_first_traceable,
        code_version,
        code_copies,
        object_type: offset(order.object_type)?,
        text_length,
        text_hash: text_length + 8,
        text_state: offset(order.text_state)?,
        text_ascii,
        text_compact: text_ascii + 16,
        text_kind_shift: if code_copies == 0 { 2 } else { 8 },
        bytes_length: offset(order.bytes_length)?,
        bytes_data: offset(order.bytes_data)?,
        ..V3_12
    })
}

/// Cookie at the start of the interpreter's own table.
const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");

/// The layout of the interpreter of `version` (as `PY_VERSION_HEX`) whose `_PyRuntime` is at `runtime`; `None` if the
/// version is not known or its table was not confirmed.
pub(crate) fn of_version(memory: &impl Memory, version: u32, runtime: usize) -> Option<Layout> {
    let order = match version >> 16 {
        0x0308 | 0x0309 => return Some(BEFORE_3_12),
        0x030a => return Some(V3_10),
        0x030b => return Some(V3_11),
        0x030c => return Some(V3_12),
        0x030d => &TABLE_3_13,
        0x030e => &TABLE_3_14,
        _ => return None,
    };
    if memory.word(runtime)? as u64 != COOKIE || memory.word(runtime + 8)? as u32 != version {
        return None;
    }
    own_table(memory, runtime, order)
}

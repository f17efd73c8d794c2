//! Databases with call stacks, made from the schema alone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rpd_symbols::Module;
use rusqlite::{Connection, params};

const SUFFIX: &str = "_0000";

fn filled(sql: &str) -> String {
    sql.replace("%suffix%", SUFFIX)
        .replace("%guid%", "0000")
        .replace("%nid%", "1")
        .replace("%pid%", "77")
        .replace("%session%", "0")
        .replace("%address%", &digits("(coalesce(m.base, 0) + l.rel_pc)"))
        .replace("%size%", &digits("CAST(a.value AS INTEGER)"))
}

/// SQL for the hexadecimal digits of a number, without a function that views may not use.
fn digits(number: &str) -> String {
    let digit = |shift| format!("substr('0123456789abcdef', (({number} >> {shift}) & 15) + 1, 1)");
    let all: Vec<String> = (0..16).rev().map(|index| digit(index * 4)).collect();
    all.join(" || ")
}

/// A database in the making.
pub(crate) struct Recording {
    directory: tempfile::TempDir,
    connection: Connection,
    nodes: i64,
    locations: HashMap<String, i64>,
    calls: i64,
}

/// The code that a frame of a stack is in.
pub(crate) enum Code<'a> {
    /// A module's id, and an address in its file.
    Native(i64, u64),
    /// A code object's id, and an offset in it.
    Python(i64, i64),
    /// A marker of a stack, by its kind.
    Marker(&'a str),
}

impl Recording {
    pub(crate) fn new() -> Recording {
        let directory = tempfile::tempdir().expect("a directory");
        let connection = Connection::open(directory.path().join("x_results.db")).expect("opened");
        let schema = include_str!("../../../rpd-formats/src/rocpd/schema.sql");
        connection.execute_batch(&filled(schema)).expect("made");
        let tables = schema.split("CREATE TABLE ").skip(1);
        for table in tables.filter_map(|statement| Some(statement.split_once('%')?.0)) {
            let view = format!("CREATE VIEW {table} AS SELECT * FROM {table}_0000");
            connection.execute_batch(&view).expect("made");
        }
        for sql in [
            include_str!("../../../rpd-formats/src/rocpd/stacks.sql"),
            include_str!("../../../rpd-formats/src/rocpd/stacks_indices.sql"),
            include_str!("../../../rpd-formats/src/rocpd/views.sql"),
            include_str!("../../../rpd-formats/src/rocpd/stacks_views.sql"),
            include_str!("../../../rpd-formats/src/rocpd/stacks_compat.sql"),
        ] {
            connection.execute_batch(&filled(sql)).expect("made");
        }
        let recording = Recording {
            directory,
            connection,
            nodes: 0,
            locations: HashMap::new(),
            calls: 0,
        };
        let category = recording.string("HIP_RUNTIME_API");
        assert_eq!(category, 1);
        recording.run(
            "INSERT INTO rocpd_metadata_0000 (tag, value) VALUES ('schema_version', '3'), ('guid', '0000'),
                ('uuid', '_0000');
            INSERT INTO rocpd_info_node_0000 (id, hash, machine_id) VALUES (1, 1, 'machine');
            INSERT INTO rocpd_info_process_0000 (id, nid, pid, command) VALUES (77, 1, 77, 'program');
            INSERT INTO rocpd_info_thread_0000 (id, tid) VALUES (78, 78);
            INSERT INTO rocpd_info_agent_0000 (id, type, absolute_index, name) VALUES (5, 'GPU', 1, 'gfx90a');",
        );
        recording
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("x_results.db")
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn run(&self, sql: &str) {
        self.connection
            .execute_batch(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn string(&self, text: &str) -> i64 {
        self.connection
            .execute(
                "INSERT OR IGNORE INTO rocpd_string_0000 (id, string)
                    SELECT coalesce(max(id), 0) + 1, ?1 FROM rocpd_string_0000",
                [text],
            )
            .ok();
        self.connection
            .query_row(
                "SELECT id FROM rocpd_string_0000 WHERE string = ?1",
                [text],
                |row| row.get(0),
            )
            .expect("a string")
    }

    pub(crate) fn module(&self, module: &Module, base: u64) -> i64 {
        let path = self.string(&module.path);
        self.connection
            .execute(
                "INSERT INTO rpd_module_0000 (path_id, build_id, base, start, \"end\") VALUES (?1, ?2, ?3, ?3, ?3)",
                params![path, module.build_id, base.cast_signed()],
            )
            .expect("inserted");
        self.connection.last_insert_rowid()
    }

    /// A code object of Python 3.10: `lines` are pairs of bytes and lines.
    pub(crate) fn python(&self, file: &str, name: &str, first_line: i64, lines: &[u8]) -> i64 {
        let (file, name) = (self.string(file), self.string(name));
        self.connection
            .execute(
                "INSERT INTO rpd_pycode_0000 (filename_id, name_id, firstlineno, pyversion, linetable)
                    VALUES (?1, ?2, ?3, 0x030a0df0, ?4)",
                params![file, name, first_line, lines],
            )
            .expect("inserted");
        self.connection.last_insert_rowid()
    }

    /// A stack, outermost first.
    pub(crate) fn stack(&mut self, frames: &[Code<'_>]) -> i64 {
        let mut parent = None;
        for (depth, frame) in (0_i64..).zip(frames) {
            self.nodes += 1;
            let (kind, module, address, code, lasti) = match *frame {
                Code::Native(module, address) => (
                    "native",
                    Some(module),
                    Some(address.cast_signed()),
                    None,
                    None,
                ),
                Code::Python(code, lasti) => ("python", None, None, Some(code), Some(lasti)),
                Code::Marker(kind) => (kind, None, None, None, None),
            };
            let key = format!("{kind} {module:?} {address:?} {code:?} {lasti:?}");
            let next = self.locations.len() as i64 + 1;
            let location = *self.locations.entry(key).or_insert(next);
            if location == next {
                self.connection
                    .execute(
                        "INSERT INTO rpd_location_0000 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                        params![location, kind, module, address, code, lasti],
                    )
                    .expect("inserted");
            }
            self.connection
                .execute(
                    "INSERT INTO rpd_stack_0000 VALUES (?1, ?2, ?3, ?4)",
                    params![self.nodes, parent, location, depth],
                )
                .expect("inserted");
            parent = Some(self.nodes);
        }
        self.nodes
    }

    /// A call that took `duration`; its event, which is its correlation id too.
    pub(crate) fn call(&mut self, name: &str, stack: i64, duration: i64) -> i64 {
        let name = self.string(name);
        self.calls += 1;
        let id = self.calls;
        let start = id * 1000;
        self.run(&format!(
            "INSERT INTO rocpd_event_0000 (id, category_id, stack_id, parent_stack_id) VALUES ({id}, 1, {id}, {id});
            INSERT INTO rocpd_region_0000 (id, tid, start, \"end\", name_id, event_id)
                VALUES ({id}, 78, {start}, {}, {name}, {id});",
            start + duration
        ));
        if stack != 0 {
            self.run(&format!(
                "INSERT INTO rpd_api_stack_0000 (api_id, stack_id) VALUES ({id}, {stack})"
            ));
        }
        id
    }

    /// An argument of a call.
    pub(crate) fn argument(&self, event: i64, position: i64, ty: &str, name: &str, value: &str) {
        self.connection
            .execute(
                "INSERT INTO rocpd_arg_0000 (event_id, position, type, name, value) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![event, position, ty, name, value],
            )
            .expect("inserted");
    }

    /// The rows of a query, with `|` between columns.
    pub(crate) fn rows(&self, sql: &str) -> Vec<String> {
        let mut statement = self
            .connection
            .prepare(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"));
        let count = statement.column_count();
        let rows = statement
            .query_map([], |row| {
                let columns: Vec<String> = (0..count)
                    .map(|column| {
                        let value: rusqlite::types::Value = row.get(column).expect("a value");
                        match value {
                            rusqlite::types::Value::Null => String::new(),
                            rusqlite::types::Value::Integer(value) => value.to_string(),
                            rusqlite::types::Value::Text(text) => text,
                            other => format!("{other:?}"),
                        }
                    })
                    .collect();
                Ok(columns.join("|"))
            })
            .expect("rows");
        rows.map(|row| row.expect("a row")).collect()
    }
}

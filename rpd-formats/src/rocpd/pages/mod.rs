//! Rows of long tables, written as pages of the database instead of through statements.
//!
//! SQLite makes the schema and closes the file. The pages are then put behind its last one: those of a table in the order of its
//! ids, those of an index in the order of its entries, each full before the next begins. The root of a tree, whose number the
//! schema has, is written into its place at the end. What SQLite would do for each row beside storing it (finding its place,
//! checking constraints, balancing pages) is not needed for rows that come in order and are ours.
//!
//! A record ends at its last value that is not the default of its column: for those that are missing SQLite shows the default.

mod file;
mod tree;

use std::collections::HashMap;
use std::io;

use rpd_core::storage::column::Storage;
use rpd_core::storage::sorted::{Keyed, Sorter};
use rusqlite::Connection;
use rusqlite::types::Value;
use zerocopy::{Immutable, IntoBytes};

pub(in crate::rocpd) use file::PageFile;
use tree::{Kind, Tree, Varints};

/// What is known of the tables of a database before pages are appended.
pub(in crate::rocpd) struct Tables(HashMap<String, Shape>);

struct Shape {
    root: u32,
    columns: Vec<Column>,
    indices: Vec<Index>,
}

struct Column {
    name: String,
    /// Whether it is another name of the row's id.
    is_id: bool,
    is_text: bool,
    default: Value,
}

struct Index {
    root: u32,
    columns: Vec<String>,
}

impl Tables {
    /// Reads the schema.
    ///
    /// # Errors
    /// When SQLite cannot.
    pub(in crate::rocpd) fn read(connection: &Connection) -> rusqlite::Result<Tables> {
        let mut tables: HashMap<String, Shape> = HashMap::new();
        let mut statement = connection.prepare(
            "SELECT m.name, m.rootpage, c.name, c.type, c.dflt_value, c.pk FROM sqlite_schema m
                JOIN pragma_table_list(m.name) l JOIN pragma_table_info(m.name) c
                WHERE m.type = 'table' AND l.schema = 'main' AND NOT l.wr ORDER BY m.name, c.cid",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let kind: String = row.get(3)?;
            let default: Option<String> = row.get(4)?;
            let default = match default {
                Some(sql) => {
                    connection.query_row(&format!("SELECT {sql}"), [], |row| row.get(0))?
                }
                None => Value::Null,
            };
            let shape = tables.entry(row.get(0)?).or_insert(Shape {
                root: row.get(1)?,
                columns: Vec::new(),
                indices: Vec::new(),
            });
            shape.columns.push(Column {
                name: row.get(2)?,
                is_id: kind == "INTEGER" && row.get::<_, i64>(5)? != 0,
                is_text: kind == "TEXT",
                default,
            });
        }
        let mut statement = connection.prepare(
            "SELECT m.tbl_name, m.rootpage, i.seqno, i.name FROM sqlite_schema m JOIN pragma_index_info(m.name) i
                WHERE m.type = 'index' ORDER BY m.rowid, i.seqno",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let Some(shape) = tables.get_mut(&row.get::<_, String>(0)?) else {
                continue;
            };
            if row.get::<_, i64>(2)? == 0 {
                shape.indices.push(Index {
                    root: row.get(1)?,
                    columns: Vec::new(),
                });
            }
            if let Some(index) = shape.indices.last_mut() {
                index.columns.push(row.get(3)?);
            }
        }
        Ok(Tables(tables))
    }
}

/// A value where all rows have the same, as it stands in a record.
#[derive(Default)]
struct Constants {
    types: Vec<u8>,
    body: Vec<u8>,
}

/// An entry of an index over integers.
#[derive(Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct IntegerEntry {
    value: i64,
    /// Id of the row that has the value.
    id: i64,
}

impl Keyed for IntegerEntry {
    type Key = (i64, i64);

    fn key(&self) -> (i64, i64) {
        (self.value, self.id)
    }
}

/// Entries of an index.
enum Entries<'f> {
    /// In any order, and the page of the index's root.
    Integers(Sorter<IntegerEntry>, u32),
    /// In order: the value of the row before.
    OrderedIntegers(Tree<'f>, i64),
    /// In order: the text of the row that is made, and that of the row before it.
    Texts(Tree<'f>, Vec<u8>, Option<Vec<u8>>),
}

/// Appends rows to an empty table, and entries to its indices.
pub(in crate::rocpd) struct RowWriter<'f> {
    file: &'f PageFile,
    tree: Tree<'f>,
    /// By the values of a row: what stands before each.
    constants: Vec<Constants>,
    defaults: Vec<Value>,
    /// Which of the values is the id; without one, rows are numbered.
    id_at: Option<usize>,
    id: i64,
    /// By indices: which of the values they have.
    indices: Vec<(usize, Entries<'f>)>,
    /// Values of the row that is made: which comes next, and those of indexed columns.
    at: usize,
    keys: Vec<Option<i64>>,
    types: Vec<u8>,
    body: Vec<u8>,
    /// Bytes of both that the record needs.
    kept: (usize, usize),
}

impl<'f> RowWriter<'f> {
    /// Writes into `table`, which is empty. The values of its rows come in the order of `columns`, which stand in that of the
    /// table, but the id, which comes anywhere before the last; what is not among them has its default. Entries of indices are kept in `storage` when there are many.
    ///
    /// # Errors
    /// When the table is not among `tables`, or its columns or indices are others.
    pub(in crate::rocpd) fn new(
        file: &'f PageFile,
        tables: &Tables,
        table: &str,
        columns: &[&str],
        storage: Option<&Storage>,
    ) -> io::Result<RowWriter<'f>> {
        let unfit = |what: &str| {
            let text = format!("rows of {table} cannot be written: {what}");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let shape = (tables.0.get(table)).ok_or_else(|| unfit("there is no such table"))?;
        let mut constants = Vec::new();
        let mut defaults = Vec::new();
        let id = shape.columns.iter().find(|column| column.is_id);
        let id_at = id.and_then(|id| columns.iter().position(|column| *column == id.name));
        let mut between = Constants::default();
        for column in &shape.columns {
            if id_at == Some(defaults.len()) {
                constants.push(Constants::default());
                defaults.push(Value::Null);
            }
            if column.is_id {
                // Its place in the record is empty.
                push_value(&mut between.types, &mut between.body, &Value::Null);
            } else if columns.get(defaults.len()) == Some(&&*column.name) {
                constants.push(std::mem::take(&mut between));
                defaults.push(column.default.clone());
            } else {
                push_value(&mut between.types, &mut between.body, &column.default);
            }
        }
        if defaults.len() != columns.len() {
            return Err(unfit(&format!(
                "no column {} there",
                columns[defaults.len()]
            )));
        }
        let mut indices = Vec::new();
        for index in &shape.indices {
            let at = match &*index.columns {
                [name] => columns.iter().position(|column| column == name),
                _ => None,
            };
            let at = at.ok_or_else(|| unfit("an index has other columns"))?;
            let is_text =
                (shape.columns.iter()).any(|column| column.is_text && column.name == columns[at]);
            let entries = if is_text {
                Entries::Texts(Tree::new(file, Kind::Index, index.root), Vec::new(), None)
            } else {
                Entries::Integers(Sorter::new(storage), index.root)
            };
            indices.push((at, entries));
        }
        Ok(RowWriter {
            file,
            tree: Tree::new(file, Kind::Table, shape.root),
            constants,
            keys: vec![None; columns.len()],
            defaults,
            id_at,
            id: 0,
            indices,
            at: 0,
            types: Vec::new(),
            body: Vec::new(),
            kept: (0, 0),
        })
    }

    /// Has rows come in the order of their indexed numbers: entries of indices are written at once then, instead of being
    /// collected. A row that is out of order is an error.
    pub(in crate::rocpd) fn ordered(mut self) -> RowWriter<'f> {
        for (_, entries) in &mut self.indices {
            if let Entries::Integers(_, root) = *entries {
                let tree = Tree::new(self.file, Kind::Index, root);
                *entries = Entries::OrderedIntegers(tree, i64::MIN);
            }
        }
        self
    }

    /// What stands before the next value. Returns whether the value is one that the record needs.
    #[inline]
    fn next(&mut self, is_default: impl FnOnce(&Value) -> bool) -> bool {
        let constants = &self.constants[self.at];
        if !constants.types.is_empty() {
            self.types.extend_from_slice(&constants.types);
            self.body.extend_from_slice(&constants.body);
        }
        let is_default = is_default(&self.defaults[self.at]);
        self.at += 1;
        !is_default
    }

    #[inline]
    fn keep(&mut self, is_needed: bool) -> &mut Self {
        if is_needed {
            self.kept = (self.types.len(), self.body.len());
        }
        self
    }

    #[inline]
    pub(in crate::rocpd) fn integer(&mut self, value: i64) -> &mut Self {
        let at = self.at;
        if self.id_at == Some(at) {
            self.id = value;
            self.at += 1;
            return self;
        }
        self.keys[at] = Some(value);
        let is_needed = self.next(|default| *default == Value::Integer(value));
        push_integer(&mut self.types, &mut self.body, value);
        self.keep(is_needed)
    }

    /// A number as its bits: addresses and handles may use all 64.
    #[inline]
    pub(in crate::rocpd) fn bits(&mut self, value: u64) -> &mut Self {
        self.integer(value.cast_signed())
    }

    /// Whole numbers are stored as integers, as SQLite does; what is not a number is stored as NULL.
    #[inline]
    pub(in crate::rocpd) fn real(&mut self, value: f64) -> &mut Self {
        if value.is_nan() {
            return self.null();
        }
        let is_needed = self.next(|default| *default == Value::Real(value));
        push_real(&mut self.types, &mut self.body, value);
        self.keep(is_needed)
    }

    #[inline]
    pub(in crate::rocpd) fn null(&mut self) -> &mut Self {
        self.keys[self.at] = None;
        let is_needed = self.next(|default| *default == Value::Null);
        self.types.push(0);
        self.keep(is_needed)
    }

    #[inline]
    pub(in crate::rocpd) fn optional(&mut self, value: Option<i64>) -> &mut Self {
        match value {
            Some(value) => self.integer(value),
            None => self.null(),
        }
    }

    #[inline]
    pub(in crate::rocpd) fn text(&mut self, text: &str) -> &mut Self {
        let at = self.at;
        for (indexed, entries) in &mut self.indices {
            if *indexed == at
                && let Entries::Texts(_, own, _) = entries
            {
                own.clear();
                own.extend_from_slice(text.as_bytes());
            }
        }
        let is_needed =
            self.next(|default| matches!(default, Value::Text(default) if default == text));
        push_bytes(&mut self.types, &mut self.body, text.as_bytes(), 13);
        self.keep(is_needed)
    }

    #[inline]
    pub(in crate::rocpd) fn optional_text(&mut self, text: Option<&str>) -> &mut Self {
        match text {
            Some(text) => self.text(text),
            None => self.null(),
        }
    }

    pub(in crate::rocpd) fn blob(&mut self, bytes: &[u8]) -> &mut Self {
        self.next(|_| false);
        push_bytes(&mut self.types, &mut self.body, bytes, 12);
        self.keep(true)
    }

    /// Ends a row of as many values as there are columns.
    #[inline]
    pub(in crate::rocpd) fn end_row(&mut self) -> io::Result<()> {
        debug_assert_eq!(self.at, self.constants.len());
        if self.id_at.is_none() {
            self.id += 1;
        }
        if self.kept.0 == 0 {
            // A record has at least one value.
            self.keep(true);
        }
        let (types, body) = (&self.types[..self.kept.0], &self.body[..self.kept.1]);
        let header = record_header(types.len());
        self.tree.row(self.id, [header.bytes(), types, body])?;
        for (at, entries) in &mut self.indices {
            match entries {
                Entries::Integers(sorter, _) => {
                    let value = self.keys[*at].ok_or_else(|| unordered("no number"))?;
                    sorter.push(IntegerEntry { value, id: self.id })?;
                }
                Entries::OrderedIntegers(tree, before) => {
                    let value = self.keys[*at].ok_or_else(|| unordered("no number"))?;
                    if value < *before {
                        return Err(unordered("a number that is less than the one before"));
                    }
                    *before = value;
                    let (types, body) = (&mut self.types, &mut self.body);
                    add_integer_entry(tree, types, body, IntegerEntry { value, id: self.id })?;
                }
                Entries::Texts(tree, own, before) => {
                    if before.as_ref().is_some_and(|before| *before >= *own) {
                        return Err(unordered("a text that does not come after the one before"));
                    }
                    let (types, body) = (&mut self.types, &mut self.body);
                    types.clear();
                    body.clear();
                    push_bytes(types, body, own, 13);
                    push_integer(types, body, self.id);
                    let header = record_header(types.len());
                    tree.entry([header.bytes(), types, body])?;
                    std::mem::swap(before.get_or_insert_default(), own);
                }
            }
        }
        self.at = 0;
        self.kept = (0, 0);
        self.types.clear();
        self.body.clear();
        Ok(())
    }

    /// Completes the table and its indices.
    pub(in crate::rocpd) fn finish(self) -> io::Result<()> {
        self.tree.finish()?;
        for (_, entries) in self.indices {
            match entries {
                Entries::Integers(sorter, root) => {
                    let mut tree = Tree::new(self.file, Kind::Index, root);
                    let (mut types, mut body) = (Vec::new(), Vec::new());
                    for entry in sorter.finish()? {
                        add_integer_entry(&mut tree, &mut types, &mut body, entry)?;
                    }
                    tree.finish()?;
                }
                Entries::OrderedIntegers(tree, _) | Entries::Texts(tree, _, _) => tree.finish()?,
            }
        }
        Ok(())
    }
}

/// Adds an entry to the tree of its index; `types` and `body` are room to make its record in.
#[inline]
fn add_integer_entry(
    tree: &mut Tree<'_>,
    types: &mut Vec<u8>,
    body: &mut Vec<u8>,
    entry: IntegerEntry,
) -> io::Result<()> {
    types.clear();
    body.clear();
    for value in [entry.value, entry.id] {
        push_integer(types, body, value);
    }
    let header = record_header(types.len());
    tree.entry([header.bytes(), types, body])
}

fn unordered(what: &str) -> io::Error {
    let text = format!("an indexed column has {what}");
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn push_value(types: &mut Vec<u8>, body: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => types.push(0),
        Value::Integer(value) => push_integer(types, body, *value),
        Value::Real(value) => push_real(types, body, *value),
        Value::Text(text) => push_bytes(types, body, text.as_bytes(), 13),
        Value::Blob(bytes) => push_bytes(types, body, bytes, 12),
    }
}

/// The type of an integer says how many bytes it has; 0 and 1 have none.
#[inline]
fn push_integer(types: &mut Vec<u8>, body: &mut Vec<u8>, value: i64) {
    let size = if value < 0 { !value } else { value };
    let (kind, bytes) = match size {
        0 | 1 if value >= 0 => (8 + value as u8, 0),
        0..=0x7f => (1, 1),
        0x80..=0x7fff => (2, 2),
        0x8000..=0x7f_ffff => (3, 3),
        0x80_0000..=0x7fff_ffff => (4, 4),
        0x8000_0000..=0x7fff_ffff_ffff => (5, 6),
        _ => (6, 8),
    };
    types.push(kind);
    // Appending 8 bytes and dropping those that are not needed is faster than copying any number of bytes.
    let shifted = value.checked_shl(64 - 8 * bytes).unwrap_or_default();
    body.extend_from_slice(&shifted.to_be_bytes());
    body.truncate(body.len() - (8 - bytes as usize));
}

fn push_real(types: &mut Vec<u8>, body: &mut Vec<u8>, value: f64) {
    // Only integers of at most 6 bytes are shorter.
    if value == value.trunc() && value.abs() < (1_i64 << 47) as f64 {
        return push_integer(types, body, value as i64);
    }
    types.push(7);
    body.extend_from_slice(&value.to_be_bytes());
}

/// `kind`: 12 for bytes, 13 for a text.
#[inline]
fn push_bytes(types: &mut Vec<u8>, body: &mut Vec<u8>, bytes: &[u8], kind: u64) {
    match 2 * bytes.len() as u64 + kind {
        short @ ..0x80 => types.push(short as u8),
        long => types.extend_from_slice(Varints::new(long).bytes()),
    }
    body.extend_from_slice(bytes);
}

/// The length of a record's header, which counts itself.
#[inline]
fn record_header(types: usize) -> Varints {
    let header = types as u64 + 1;
    Varints::new(header + u64::from(header > 127))
}

#[cfg(test)]
mod tests;

//! Tables made of pages are compared with those that SQLite makes of the same rows.

use std::path::Path;

use super::*;

/// A table with all that rows may have: constants in front of others and at the end, and an index.
const SCHEMA: &str = "
    CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, guid TEXT NOT NULL DEFAULT 'it''s', a INTEGER DEFAULT 0, r REAL DEFAULT 0.5,
        s TEXT, b BLOB, k INTEGER NOT NULL DEFAULT 7, extdata JSONB NOT NULL DEFAULT '{}', pid INTEGER DEFAULT 9);
    CREATE INDEX t_k ON t (k);
    CREATE TABLE last (k INTEGER, s TEXT DEFAULT 'x', id INTEGER NOT NULL PRIMARY KEY, extdata JSONB NOT NULL DEFAULT '{}');
    CREATE INDEX last_k ON last (k);
    CREATE TABLE plain (a INTEGER, s TEXT);
    CREATE TABLE texts (id INTEGER NOT NULL PRIMARY KEY, s TEXT NOT NULL UNIQUE);";
const COLUMNS: [&str; 7] = ["id", "a", "r", "s", "b", "k", "extdata"];

#[derive(Debug, Clone)]
struct Row {
    id: i64,
    a: Option<i64>,
    r: Option<f64>,
    s: Option<String>,
    b: Vec<u8>,
    k: i64,
    extdata: String,
}

fn database(path: &Path, page_size: u32) -> Connection {
    let connection = Connection::open(path).expect("a database");
    let pragma = format!("PRAGMA page_size = {page_size}; PRAGMA journal_mode = OFF;");
    connection.execute_batch(&pragma).expect("a setting");
    connection.execute_batch(SCHEMA).expect("tables");
    connection
}

/// Writes pages behind a new database, and opens it again.
fn with_pages(
    path: &Path,
    page_size: u32,
    write: impl FnOnce(&PageFile, &Tables) -> io::Result<()>,
) -> Connection {
    let connection = database(path, page_size);
    let tables = Tables::read(&connection).expect("tables");
    connection.close().expect("closed");
    let file = PageFile::open(path).expect("a database");
    write(&file, &tables).expect("written");
    file.finish().expect("written");
    let connection = Connection::open(path).expect("a database");
    let found: String = connection
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("a result");
    assert_eq!(found, "ok", "page size {page_size}");
    connection
}

fn write_rows(file: &PageFile, tables: &Tables, rows: &[Row]) -> io::Result<()> {
    let mut writer = RowWriter::new(file, tables, "t", &COLUMNS, None)?;
    for row in rows {
        writer.integer(row.id).optional(row.a);
        match row.r {
            Some(value) => writer.real(value),
            None => writer.null(),
        };
        writer
            .optional_text(row.s.as_deref())
            .blob(&row.b)
            .integer(row.k)
            .text(&row.extdata)
            .end_row()?;
    }
    writer.finish()
}

/// Each row with the types of its values, in the order of a query.
fn dump(connection: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(sql).expect("a query");
    let count = statement.column_count();
    let rows = statement.query_map([], |row| (0..count).map(|at| row.get(at)).collect());
    let rows: rusqlite::Result<Vec<_>> = rows.expect("rows").collect();
    rows.expect("values")
}

/// Asserts that pages hold what statements would have made of these rows.
fn assert_same(page_size: u32, rows: &[Row]) {
    let directory = tempfile::tempdir().expect("a directory");
    let pages = with_pages(
        &directory.path().join("pages.db"),
        page_size,
        |file, tables| write_rows(file, tables, rows),
    );
    let statements = database(&directory.path().join("statements.db"), page_size);
    statements.execute_batch("BEGIN").expect("begun");
    let mut insert = statements
        .prepare("INSERT INTO t (id, a, r, s, b, k, extdata) VALUES (?, ?, ?, ?, ?, ?, ?)")
        .expect("a statement");
    for row in rows {
        let values = rusqlite::params![row.id, row.a, row.r, row.s, row.b, row.k, row.extdata];
        insert.execute(values).expect("inserted");
    }
    drop(insert);
    statements.execute_batch("COMMIT").expect("done");
    for sql in [
        "SELECT *, typeof(r) FROM t",
        "SELECT k, id FROM t INDEXED BY t_k ORDER BY k, id",
        "SELECT id, a FROM t WHERE id % 7 = 3",
    ] {
        assert!(
            dump(&pages, sql) == dump(&statements, sql),
            "{sql}, {} rows",
            rows.len()
        );
    }
    // SQLite takes the file for its own: what it adds is in order, too.
    pages
        .execute_batch(
            "DELETE FROM t WHERE id % 3 = 0; INSERT INTO t (b, k) VALUES (x'00', 1); VACUUM",
        )
        .expect("changed");
    let found: String = pages
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .expect("a result");
    assert_eq!(found, "ok");
}

fn row(id: i64) -> Row {
    Row {
        id,
        a: Some(id % 3),
        r: Some(id as f64 / 4.0),
        s: Some("text".repeat(id.unsigned_abs() as usize % 5)),
        b: vec![1; id.unsigned_abs() as usize % 3],
        k: id * 7919 % 1000,
        extdata: "{}".to_owned(),
    }
}

#[test]
fn tables_of_any_length_equal_those_of_statements() {
    for page_size in [512, 4096, 65_536] {
        for count in [0, 1, 2, 15, 16, 17, 18, 60, 250, 1000, 20_000] {
            let rows: Vec<Row> = (1..=count).map(row).collect();
            assert_same(page_size, &rows);
        }
    }
}

#[test]
fn values_of_all_widths_equal_those_of_statements() {
    let mut numbers = vec![i64::MIN, i64::MAX, 0, 1, 7, -1];
    for bits in 1..63 {
        let power = 1_i64 << bits;
        numbers.extend([power - 1, power, power + 1, -power, -power - 1, 1 - power]);
    }
    let mut rows = Vec::new();
    for (id, &number) in (1..).zip(&numbers) {
        rows.push(Row {
            a: Some(number),
            r: Some(number as f64),
            k: number,
            ..row(id)
        });
    }
    let reals = [
        0.0,
        -0.0,
        0.5,
        1.5,
        f64::INFINITY,
        f64::MIN_POSITIVE,
        f64::NAN,
        1e300,
        -3.0,
    ];
    for (id, real) in (rows.len() as i64 + 1..).zip(reals) {
        rows.push(Row {
            a: None,
            r: Some(real),
            s: None,
            ..row(id)
        });
    }
    // Ids need not follow one another, and have all widths, too.
    numbers.sort_unstable();
    numbers.dedup();
    let spread: Vec<Row> = numbers.iter().map(|&id| Row { id, ..row(3) }).collect();
    for page_size in [512, 4096] {
        assert_same(page_size, &rows);
        assert_same(page_size, &spread);
    }
}

#[test]
fn texts_around_the_limits_of_pages_equal_those_of_statements() {
    for page_size in [512, 1024, 4096] {
        let size = page_size as usize;
        let around = |middle: usize| middle.saturating_sub(45)..middle + 12;
        let lengths = around(size / 8 + 20)
            .chain(around(size))
            .chain(around(2 * size))
            .chain(around(9 * size));
        let rows: Vec<Row> = (1..)
            .zip(lengths)
            .map(|(id, length)| Row {
                s: Some("x".repeat(length)),
                b: vec![2; length % 5 * 100],
                extdata: if id % 2 == 0 { "{}" } else { "{\"a\":1}" }.to_owned(),
                ..row(id)
            })
            .collect();
        assert_same(page_size, &rows);
    }
}

#[test]
fn unique_texts_are_found_by_statements() {
    let directory = tempfile::tempdir().expect("a directory");
    // Long ones have pages of their own, in the index as well.
    let mut texts: Vec<String> = (0..3000)
        .map(|n| format!("{n}-{}", "y".repeat(n % 1500)))
        .collect();
    texts.push(String::new());
    texts.sort();
    let connection = with_pages(&directory.path().join("pages.db"), 512, |file, tables| {
        let mut writer = RowWriter::new(file, tables, "texts", &["id", "s"], None)?;
        for (id, text) in (1..).zip(&texts) {
            writer.integer(id).text(text).end_row()?;
        }
        writer.finish()
    });
    let mut find = connection
        .prepare("SELECT id FROM texts WHERE s = ?1")
        .expect("a statement");
    for (id, text) in (1_i64..).zip(&texts) {
        let found: i64 = find.query_row([text], |row| row.get(0)).expect("a row");
        assert_eq!(found, id, "{text}");
    }
    let twice = connection.execute("INSERT INTO texts (s) VALUES ('')", []);
    assert!(twice.is_err());
}

#[test]
fn rows_without_an_id_are_numbered() {
    let directory = tempfile::tempdir().expect("a directory");
    let connection = with_pages(&directory.path().join("pages.db"), 512, |file, tables| {
        let mut plain = RowWriter::new(file, tables, "plain", &["a"], None)?;
        let mut others = RowWriter::new(file, tables, "t", &["b", "k"], None)?;
        for number in 0..1000 {
            plain.integer(number).end_row()?;
            others.blob(&[]).integer(-number).end_row()?;
        }
        plain.finish()?;
        others.finish()
    });
    let sums = "SELECT (SELECT sum(rowid - a) FROM plain), (SELECT sum(id + k) FROM t), (SELECT min(extdata) FROM t)";
    let expected = [
        Value::Integer(1000),
        Value::Integer(1000),
        Value::Text("{}".to_owned()),
    ];
    assert_eq!(dump(&connection, sums), [expected]);
}

#[test]
fn rows_with_the_id_at_their_end_are_indexed_in_their_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let connection = with_pages(&directory.path().join("pages.db"), 512, |file, tables| {
        let mut writer = RowWriter::new(file, tables, "last", &["id", "k", "s"], None)?.ordered();
        for id in 1..3000 {
            let text = if id % 2 == 0 { "x" } else { "y" };
            writer
                .integer(id * 2)
                .integer(id / 3)
                .text(text)
                .end_row()?;
        }
        writer.finish()
    });
    let found = dump(
        &connection,
        "SELECT id, k, s, extdata FROM last INDEXED BY last_k WHERE k = 500",
    );
    let row = |id, text: &str| {
        let [text, extdata] = [text, "{}"].map(|text| Value::Text(text.to_owned()));
        vec![Value::Integer(id), Value::Integer(500), text, extdata]
    };
    assert_eq!(found, [row(3000, "x"), row(3002, "y"), row(3004, "x")]);
}

#[test]
fn rows_out_of_order_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    with_pages(&directory.path().join("pages.db"), 512, |file, tables| {
        let mut writer = RowWriter::new(file, tables, "t", &["id", "k"], None)?;
        writer.integer(2).integer(1).end_row()?;
        assert!(writer.integer(2).integer(1).end_row().is_err());
        let mut writer = RowWriter::new(file, tables, "texts", &["id", "s"], None)?;
        writer.integer(1).text("b").end_row()?;
        assert!(writer.integer(2).text("a").end_row().is_err());
        let mut writer = RowWriter::new(file, tables, "t", &["id", "k"], None)?.ordered();
        writer.integer(1).integer(2).end_row()?;
        assert!(writer.integer(2).integer(1).end_row().is_err());
        assert!(RowWriter::new(file, tables, "none", &["id"], None).is_err());
        assert!(RowWriter::new(file, tables, "t", &["k", "a"], None).is_err());
        Ok(())
    });
}

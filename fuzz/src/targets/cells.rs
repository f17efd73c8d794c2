//! Changes to single values of a database. They reach code that a database with damaged bytes rarely reaches.

use rusqlite::Connection;
use rusqlite::types::Value;

/// Most changes that are made to a database.
const MOST_CHANGES: usize = 16;

/// Makes the changes that `bytes` stand for, nine each, to the tables that are like `pattern`.
pub(super) fn change_all(connection: &Connection, pattern: &str, bytes: &[u8]) {
    connection
        .execute_batch(
            "PRAGMA foreign_keys=OFF; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA ignore_check_constraints=ON;",
        )
        .expect("set");
    let tables = tables(connection, pattern);
    for bytes in bytes.as_chunks::<9>().0.iter().take(MOST_CHANGES) {
        change(connection, &tables, bytes);
    }
}

/// The names of the tables that are like `pattern`.
pub(super) fn tables(connection: &Connection, pattern: &str) -> Vec<String> {
    let mut statement = connection
        .prepare(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE ?1 ORDER BY name",
        )
        .expect("prepared");
    let names = statement
        .query_map([pattern], |row| row.get(0))
        .expect("run");
    names.collect::<Result<_, _>>().expect("names")
}

/// Changes the value of one cell of the database, or removes or duplicates its row. Changes that a constraint forbids
/// have no effect.
fn change(connection: &Connection, tables: &[String], change: &[u8; 9]) {
    let [table, row, column, kind, number @ ..] = *change;
    let table = &tables[usize::from(table) % tables.len()];
    let statement = connection.prepare(&format!("SELECT * FROM \"{table}\" LIMIT 0"));
    let names: Vec<String> = match &statement {
        Ok(statement) => statement.column_names().map(str::to_owned).collect(),
        Err(_) => return,
    };
    let column = &names[usize::from(column) % names.len()];
    let small = i64::from(i32::from_le_bytes([
        number[0], number[1], number[2], number[3],
    ]));
    let value = match kind % 10 {
        0 => Value::Null,
        1 => Value::Integer(small),
        2 => Value::Integer(small << 32),
        3 => Value::Integer(i64::MAX - i64::from(number[0])),
        4 => Value::Integer(i64::MIN + i64::from(number[0])),
        5 => Value::Real(f64::from_bits(u64::from(number[4]) << 56 | 0x7f_ffff)),
        6 => Value::Text(String::from_utf8_lossy(&number).into_owned()),
        7 => Value::Text("{\"a\": [1".repeat(usize::from(number[0]))),
        8 => Value::Blob(number.to_vec()),
        _ => Value::Integer(i64::from(number[0])),
    };
    let place = format!(
        "rowid = (SELECT rowid FROM \"{table}\" LIMIT 1 OFFSET {})",
        row % 8
    );
    let sql = match kind / 10 % 8 {
        0 => format!("DELETE FROM \"{table}\" WHERE {place}"),
        1 => format!("UPDATE \"{table}\" SET \"{column}\" = ?1"),
        _ => format!("UPDATE \"{table}\" SET \"{column}\" = ?1 WHERE {place}"),
    };
    // The deletion has no parameter.
    let _ = if sql.contains("?1") {
        connection.execute(&sql, [value])
    } else {
        connection.execute(&sql, [])
    };
}

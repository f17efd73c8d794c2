//! Line tables of code objects: from the offset of an instruction to the place in the source.
//!
//! Pure functions, for use where stacks are looked at, not where they are captured. The encodings are those of CPython:
//! `co_lnotab` up to 3.9, the `co_linetable` of 3.10, and the location table from 3.11 on, which has columns.

/// A place in a source file. Lines count from 1, columns are byte offsets from 0, as in `co_positions()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Position {
    /// The line, `None` for an instruction that belongs to no line.
    pub line: Option<u32>,
    /// Last line of the expression.
    pub end_line: Option<u32>,
    /// Column where the expression starts.
    pub column: Option<u32>,
    /// The column after the expression, in `end_line`.
    pub end_column: Option<u32>,
}

impl Position {
    fn line(line: i64) -> Position {
        Position {
            line: u32::try_from(line).ok(),
            ..Position::default()
        }
    }
}

/// The place of the instruction at byte offset `lasti` of a code object.
///
/// `version` is the interpreter's `PY_VERSION_HEX`. Version 0 means that the interpreter computed the line when the frame
/// was captured: `lasti` is that line and the table is empty. A table that ends early or is malformed yields no line.
pub fn position(version: u32, table: &[u8], first_line: i32, lasti: i64) -> Position {
    let first_line = i64::from(first_line);
    match version >> 16 {
        0 => Position::line(lasti),
        // Not started: the interpreter itself answers with the first line.
        _ if lasti < 0 => Position::line(first_line),
        0x0300..=0x0309 => lnotab(table, first_line, lasti),
        0x030a => ranges(table, first_line, lasti),
        _ => locations(table, first_line, lasti).unwrap_or_default(),
    }
}

/// Position by pairs of an unsigned step in bytes and a signed step in lines (before 3.10).
fn lnotab(table: &[u8], first_line: i64, lasti: i64) -> Position {
    let (mut offset, mut line) = (0, first_line);
    for &[bytes, lines] in table.as_chunks::<2>().0 {
        offset += i64::from(bytes);
        if offset > lasti {
            break;
        }
        line += i64::from(lines as i8);
    }
    Position::line(line)
}

/// Position by pairs of a length in bytes and a signed step in lines, -128 for instructions without a line (3.10).
fn ranges(table: &[u8], first_line: i64, lasti: i64) -> Position {
    let (mut end, mut line) = (0, first_line);
    for &[bytes, lines] in table.as_chunks::<2>().0 {
        end += i64::from(bytes);
        let lines = lines as i8;
        if lines != -128 {
            line += i64::from(lines);
        }
        if lasti < end {
            return if lines == -128 {
                Position::default()
            } else {
                Position::line(line)
            };
        }
    }
    Position::default()
}

/// Position by the location table of 3.11 and later.
fn locations(table: &[u8], first_line: i64, lasti: i64) -> Option<Position> {
    let mut bytes = table.iter().copied();
    let (mut end, mut line) = (0, first_line);
    while let Some(head) = bytes.next() {
        // The head of an entry has this bit set, all other bytes have not: without it the table is damaged.
        if head & 0x80 == 0 {
            return None;
        }
        let units = i64::from(head & 7) + 1;
        let code = (head >> 3) & 15;
        let mut found = Position::default();
        let column = |value: u8| Some(u32::from(value));
        // Forms of entries as in CPython's `Objects/locations.md`: short, one line, no columns, long, none.
        match code {
            0..=9 => {
                let second = bytes.next()?;
                found = Position::line(line);
                found.end_line = found.line;
                let start = (code << 3) | (second >> 4);
                found.column = column(start);
                found.end_column = column(start + (second & 15));
            }
            10..=12 => {
                line += i64::from(code - 10);
                found = Position::line(line);
                found.end_line = found.line;
                found.column = column(bytes.next()?);
                found.end_column = column(bytes.next()?);
            }
            13 => {
                line += signed(&mut bytes)?;
                found = Position::line(line);
                found.end_line = found.line;
            }
            14 => {
                line += signed(&mut bytes)?;
                found = Position::line(line);
                let lines = unsigned(&mut bytes)?;
                found.end_line = u32::try_from(line + i64::from(lines)).ok();
                // Stored plus one, 0 for none.
                found.column = unsigned(&mut bytes)?.checked_sub(1);
                found.end_column = unsigned(&mut bytes)?.checked_sub(1);
            }
            _ => {}
        }
        // The table counts units of two bytes, the size of an instruction.
        end += 2 * units;
        if lasti < end {
            return Some(found);
        }
    }
    None
}

/// Reads a number of six bits a byte, the lowest first; bit 6 is set if more follow.
fn unsigned(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let (mut value, mut shift) = (0u32, 0);
    loop {
        let byte = bytes.next()?;
        value |= u32::from(byte & 63).checked_shl(shift)?;
        if byte & 64 == 0 {
            return Some(value);
        }
        shift += 6;
    }
}

fn signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let value = i64::from(unsigned(bytes)?);
    Some(if value & 1 == 0 {
        value >> 1
    } else {
        -(value >> 1)
    })
}

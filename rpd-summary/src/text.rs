//! Summary tables as text.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use rpd_core::compat::Compat;
use rpd_core::stats::{StatNames, StatRow, StatTable};

pub use rpd_core::stats::Unit;

/// A time that is a whole number of nanoseconds.
fn integer(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Nsec => value.to_string(),
        _ => shortest(value as f64 / unit.nanoseconds()),
    }
}

/// The shortest decimal that reads back as the same number, with an exponent where that is customary.
fn shortest(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e16).contains(&value) {
        let text = format!("{value:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) => exponent_of_two_digits(digits, exponent),
            None => text,
        };
    }
    format!("{value}")
}

fn exponent_of_two_digits(digits: &str, exponent: &str) -> String {
    let (sign, magnitude) = match exponent.strip_prefix('-') {
        Some(magnitude) => ('-', magnitude),
        None => ('+', exponent),
    };
    format!("{digits}e{sign}{magnitude:0>2}")
}

/// The number with an exponent, such as `2.304e+04`.
fn scientific(value: f64) -> String {
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        Some((digits, exponent)) => exponent_of_two_digits(digits, exponent),
        None => text,
    }
}

/// Letters of a name in one line of its cell. A longer name goes on in the next lines: columns and the widths of
/// formatting have an upper limit, and every row is as wide as the widest.
const LONGEST: usize = 4_096;

/// Header text in the middle of its column, the odd blank on the right.
fn centred(text: &str, width: usize) -> String {
    format!("{text:^width$}")
}

/// The text of a cell, split into lines of at most [`LONGEST`] characters. Names may contain any characters.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for (index, letter) in text.chars().enumerate() {
        if index > 0 && index % LONGEST == 0 {
            cell.push('\n');
        }
        cell.push(if letter.is_control() { ' ' } else { letter });
    }
    cell
}

/// Columns of a table: header, least number of letters of a cell, and alignment.
fn columns(unit: Unit) -> [(String, usize, CellAlignment); 9] {
    let label = unit.label();
    [
        ("NAME".to_owned(), 40, CellAlignment::Left),
        ("DOMAIN".to_owned(), 12, CellAlignment::Left),
        ("CALLS".to_owned(), 15, CellAlignment::Right),
        (format!("DURATION ({label})"), 15, CellAlignment::Right),
        (format!("AVERAGE ({label})"), 15, CellAlignment::Right),
        ("PERCENT (INC)".to_owned(), 13, CellAlignment::Right),
        (format!("MIN ({label})"), 15, CellAlignment::Right),
        (format!("MAX ({label})"), 15, CellAlignment::Right),
        ("STDDEV".to_owned(), 15, CellAlignment::Right),
    ]
}

/// The cells of a row.
fn cells(row: &StatRow, names: &StatNames<'_>, unit: Unit) -> [String; 9] {
    [
        cell(names.get(row.name)),
        row.domain.label().to_owned(),
        row.calls.to_string(),
        integer(unit, row.total),
        scientific(row.average / unit.nanoseconds()),
        format!("{:.6}", row.percentage),
        integer(unit, row.min),
        integer(unit, row.max),
        scientific(row.std_dev / unit.nanoseconds()),
    ]
}

/// Number of rows of a table that are laid out at once.
const ROWS: usize = 1024;

/// The title and the table, with an empty line before, between and after them, and `indent` blanks in front of each line; empty
/// for a table without rows. `names` are those of the table's statistics. `compat` selects the name of the tool in the title.
pub fn render(
    table: &StatTable,
    names: &StatNames<'_>,
    unit: Unit,
    indent: usize,
    compat: Compat,
) -> String {
    let mut text = String::new();
    let taken = render_to(table, names, unit, indent, compat, |piece| {
        text.push_str(piece);
        Ok(())
    });
    // Taking a text into memory does not fail.
    drop(taken);
    text
}

/// Renders a table as [`render`] does, in pieces of whole lines for `take`, so that tables of any length take little
/// memory.
///
/// # Errors
/// Errors of `take`.
pub fn render_to(
    table: &StatTable,
    names: &StatNames<'_>,
    unit: Unit,
    indent: usize,
    compat: Compat,
    mut take: impl FnMut(&str) -> std::io::Result<()>,
) -> std::io::Result<()> {
    if table.rows.is_empty() {
        return Ok(());
    }
    let columns = columns(unit);
    let mut widths: [usize; 9] = std::array::from_fn(|index| columns[index].1);
    // All widths before the first row is printed: the rows are laid out in parts.
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(cells(row, names, unit)) {
            let lines = cell.lines().map(|line| line.chars().count());
            *width = lines.fold(*width, usize::max);
        }
    }
    let margin = " ".repeat(indent);
    let brand = compat.brand();
    let title = match table.title.as_str() {
        "" => format!("{brand} SUMMARY"),
        title => format!("{brand} {title} SUMMARY"),
    };
    take(&format!("\n{margin}{title}:\n\n"))?;
    let mut rows = table.rows.iter().peekable();
    let mut is_first = true;
    while rows.peek().is_some() {
        // A layout of all rows at once would take more memory than the table has.
        let mut printed = Table::new();
        printed
            .load_style(ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled);
        if std::mem::take(&mut is_first) {
            // Names and domains are as wide as the widest, which the numbers' headers do not follow.
            let header = |(index, (header, least, _)): (usize, &(String, usize, _))| {
                centred(header, if index < 2 { widths[index] } else { *least })
            };
            printed.set_header(columns.iter().enumerate().map(header));
        }
        for row in rows.by_ref().take(ROWS) {
            printed.add_row(cells(row, names, unit));
        }
        for (index, ((_, _, alignment), width)) in columns.iter().zip(widths).enumerate() {
            if let Some(column) = printed.column_mut(index) {
                column.set_cell_alignment(*alignment);
                // The constraint counts the blank on either side.
                let width = u16::try_from(width + 2).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
            }
        }
        let mut text = String::new();
        for line in printed.lines() {
            text.push_str(&margin);
            text.push_str(&line);
            text.push('\n');
        }
        take(&text)?;
    }
    take("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::domain::Domain;
    use rpd_core::session::ExtendedStrings;

    #[test]
    fn render_prints_a_name_of_any_length_whole() {
        let row = |name| StatRow {
            name,
            domain: Domain::MarkerApi,
            calls: 1,
            total: 1,
            average: 1.0,
            percentage: 50.0,
            min: 1,
            max: 1,
            std_dev: 0.0,
        };
        for length in [
            LONGEST,
            LONGEST + 1,
            65_533,
            65_534,
            65_535,
            65_536,
            300_000,
        ] {
            let mut names = ExtendedStrings::default();
            let rows =
                ["x".repeat(length), "short".to_owned()].map(|name| row(names.intern(&name)));
            let table = StatTable {
                title: String::new(),
                rows: rows.into_iter().collect(),
            };
            let text = render(&table, &names.into(), Unit::Nsec, 4, Compat::None);
            assert_eq!(text.matches('x').count(), length);
            assert!(text.contains("| short "), "{length}");
            let widest = text.lines().map(str::len).max().unwrap_or(0);
            assert!(widest < LONGEST + 200, "{length}: {widest}");
        }
    }

    #[test]
    fn render_prints_long_tables_under_one_header() {
        let mut names = ExtendedStrings::default();
        let rows = (0..3 * ROWS as u64 + 7).map(|number| StatRow {
            name: names.intern(&format!("name {number}")),
            domain: Domain::MarkerApi,
            calls: number,
            total: 10_u64.pow(19) - number,
            average: 1.0,
            percentage: 0.0,
            min: 1,
            max: 1,
            std_dev: 0.0,
        });
        let table = StatTable {
            title: String::new(),
            rows: rows.collect(),
        };
        let text = render(&table, &names.into(), Unit::Nsec, 4, Compat::None);
        assert_eq!(text.matches("NAME").count(), 1);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('|')).collect();
        assert_eq!(lines.len(), table.rows.len() + 2);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        for (number, line) in lines[2..].iter().enumerate() {
            assert!(line.starts_with(&format!("    | name {number} ")), "{line}");
        }
    }
}

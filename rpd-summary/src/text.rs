//! Summary tables as text.

use comfy_table::presets::ASCII_MARKDOWN;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use rpd_core::compat::Compat;
use rpd_core::stats::StatTable;

pub use rpd_core::stats::Unit;

/// A time that is a whole number of nanoseconds.
fn integer(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Nsec => value.to_string(),
        _ => shortest(value as f64 / unit.nanoseconds()),
    }
}

/// The shortest decimal that reads back the same, with an exponent where that is customary.
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

/// `2.304e+04`.
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

/// Names may hold anything; a table cell holds lines of at most [`LONGEST`] letters.
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

/// The table with its title, `indent` blanks in front of each line, an empty line before, between and after; empty
/// for a table without rows. The table's title stands between the name of the tool that `compat` asks for and `SUMMARY`.
pub fn render(table: &StatTable, unit: Unit, indent: usize, compat: Compat) -> String {
    if table.rows.is_empty() {
        return String::new();
    }
    let width = |text: &str| text.chars().count();
    let names: Vec<String> = table.rows.iter().map(|row| cell(&row.name)).collect();
    let name_width = names
        .iter()
        .flat_map(|name| name.lines().map(width))
        .max()
        .unwrap_or(0)
        .max(40);
    let domain_width = table
        .rows
        .iter()
        .map(|row| width(row.domain.label()))
        .max()
        .unwrap_or(0)
        .max(12);
    let label = unit.label();
    let columns = [
        ("NAME".to_owned(), name_width, CellAlignment::Left),
        ("DOMAIN".to_owned(), domain_width, CellAlignment::Left),
        ("CALLS".to_owned(), 15, CellAlignment::Right),
        (format!("DURATION ({label})"), 15, CellAlignment::Right),
        (format!("AVERAGE ({label})"), 15, CellAlignment::Right),
        ("PERCENT (INC)".to_owned(), 13, CellAlignment::Right),
        (format!("MIN ({label})"), 15, CellAlignment::Right),
        (format!("MAX ({label})"), 15, CellAlignment::Right),
        ("STDDEV".to_owned(), 15, CellAlignment::Right),
    ];

    let mut printed = Table::new();
    printed
        .load_style(ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(
            columns
                .iter()
                .map(|(header, width, _)| centred(header, *width)),
        );
    for (row, name) in table.rows.iter().zip(names) {
        printed.add_row([
            name,
            row.domain.label().to_owned(),
            row.calls.to_string(),
            integer(unit, row.total),
            scientific(row.average / unit.nanoseconds()),
            format!("{:.6}", row.percentage),
            integer(unit, row.min),
            integer(unit, row.max),
            scientific(row.std_dev / unit.nanoseconds()),
        ]);
    }
    for (index, (_, width, alignment)) in columns.iter().enumerate() {
        if let Some(column) = printed.column_mut(index) {
            column.set_cell_alignment(*alignment);
            // The constraint counts the blank on either side.
            let width = u16::try_from(width + 2).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
        }
    }

    let margin = " ".repeat(indent);
    let brand = compat.brand();
    let title = match table.title.as_str() {
        "" => format!("{brand} SUMMARY"),
        title => format!("{brand} {title} SUMMARY"),
    };
    let mut text = format!("\n{margin}{title}:\n\n");
    for line in printed.lines() {
        text.push_str(&margin);
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use rpd_core::domain::Domain;
    use rpd_core::stats::StatRow;

    use super::*;

    #[test]
    fn a_name_of_any_length_is_printed_whole() {
        let row = |name: String| StatRow {
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
            let table = StatTable {
                title: String::new(),
                rows: vec![row("x".repeat(length)), row("short".to_owned())],
            };
            let text = render(&table, Unit::Nsec, 4, Compat::None);
            assert_eq!(text.matches('x').count(), length);
            assert!(text.contains("| short "), "{length}");
            let widest = text.lines().map(str::len).max().unwrap_or(0);
            assert!(widest < LONGEST + 200, "{length}: {widest}");
        }
    }
}

//! The tables of statistics that a recording prints.

use std::io;

use comfy_table::CellAlignment;
use rpd_core::compat::Compat;
use rpd_core::stats::{StatNames, StatRow, StatTable, Unit};

use super::layout::{LaidColumn, Layout, Style, WIDEST, widest_line};
use super::{Column, ColumnKind};

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

/// Header text in the middle of its column, the odd blank on the right.
fn centred(text: &str, width: usize) -> String {
    format!("{text:^width$}")
}

/// The text of a cell, split into lines of at most [`WIDEST`] characters. Names may contain any characters.
fn cell(text: &str) -> String {
    let mut cell = String::with_capacity(text.len());
    for (index, letter) in text.chars().enumerate() {
        if index > 0 && index % WIDEST == 0 {
            cell.push('\n');
        }
        cell.push(if letter.is_control() { ' ' } else { letter });
    }
    cell
}

/// The columns, and the fewest letters of their cells in files and in drop-in mode.
fn columns() -> [(Column, usize); 9] {
    let time = |name: &str| Column::new(ColumnKind::Time, name);
    let number = |name: &str| Column::new(ColumnKind::Number, name);
    [
        (Column::new(ColumnKind::Name, "NAME"), 40),
        (Column::new(ColumnKind::Word, "DOMAIN").detail(3), 12),
        (number("CALLS"), 15),
        (time("DURATION"), 15),
        (time("AVERAGE").detail(1), 15),
        (number("PERCENT (INC)"), 13),
        (time("MIN").detail(2), 15),
        (time("MAX").detail(2), 15),
        (number("STDDEV").detail(4), 15),
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

/// How tables of statistics are shown.
#[derive(Debug, Clone, Copy)]
pub struct StatView<'a> {
    /// Unit of times.
    pub unit: Unit,
    /// Blanks before each line.
    pub indent: usize,
    /// Letters in a line that the tables have to fit; `None` where lines may be of any length.
    pub width: Option<usize>,
    /// The process that the statistics are of, for the title; empty where there is one process only.
    pub process: &'a str,
    /// The tool whose name is in the title.
    pub compat: Compat,
}

/// The title and the table, with an empty line before, between and after them; empty for a table without rows. `names` are those of
/// the table's statistics.
pub fn render(table: &StatTable, names: &StatNames<'_>, view: StatView<'_>) -> String {
    let mut text = String::new();
    let taken = render_to(table, names, view, |piece| {
        text.push_str(piece);
        Ok(())
    });
    // Taking a text into memory does not fail.
    drop(taken);
    text
}

/// As [`render`], in pieces of whole lines, so that tables of any length take little memory. Returns the titles of the columns for
/// which there is no room.
///
/// # Errors
/// Those that `take` returns; it gets the pieces.
pub fn render_to(
    table: &StatTable,
    names: &StatNames<'_>,
    view: StatView<'_>,
    mut take: impl FnMut(&str) -> io::Result<()>,
) -> io::Result<Vec<String>> {
    if table.rows.is_empty() {
        return Ok(Vec::new());
    }
    let columns = columns();
    let mut widths = [0; 9];
    for row in &table.rows {
        for (width, cell) in widths.iter_mut().zip(cells(row, names, view.unit)) {
            *width = widest_line(&cell).max(*width);
        }
    }
    let laid = |(index, (column, least)): (usize, &(Column, usize))| LaidColumn {
        // Names and domains are as wide as the widest, which the numbers' headers do not follow.
        title: if index < 2 {
            centred(&column.title(view.unit), widths[index].max(*least))
        } else {
            centred(&column.title(view.unit), *least)
        },
        alignment: match column.kind() {
            ColumnKind::Name | ColumnKind::Word => CellAlignment::Left,
            _ => CellAlignment::Right,
        },
        width: widths[index],
        is_name: column.kind() == ColumnKind::Name,
        detail: column.level(),
    };
    let laid = columns.iter().enumerate().map(laid);
    let mut layout = Layout::new(Style::Bordered, view.indent, laid.collect());
    let left_out = view.width.map(|width| layout.fit(width));
    let margin = " ".repeat(view.indent);
    let brand = view.compat.brand();
    let title = match table.title.as_str() {
        "" => format!("{brand} SUMMARY"),
        title => format!("{brand} {title} SUMMARY"),
    };
    let process = match view.process {
        "" => String::new(),
        process => format!(" of {process}"),
    };
    take(&format!("\n{margin}{title}{process}:\n\n"))?;
    let rows = table.rows.iter();
    layout.write(
        rows.map(|row| Ok(cells(row, names, view.unit).to_vec())),
        &mut take,
    )?;
    take("\n")?;
    Ok(left_out.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpd_core::domain::Domain;
    use rpd_core::session::ExtendedStrings;

    fn view(width: Option<usize>) -> StatView<'static> {
        StatView {
            unit: Unit::Nsec,
            indent: 4,
            width,
            process: "",
            compat: Compat::None,
        }
    }

    #[test]
    fn a_name_of_any_length_is_printed_whole() {
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
        for length in [WIDEST, WIDEST + 1, 65_533, 65_534, 65_535, 65_536, 300_000] {
            let mut names = ExtendedStrings::default();
            let rows =
                ["x".repeat(length), "short".to_owned()].map(|name| row(names.intern(&name)));
            let table = StatTable {
                title: String::new(),
                rows: rows.into_iter().collect(),
            };
            let text = render(&table, &names.into(), view(None));
            assert_eq!(text.matches('x').count(), length);
            assert!(text.contains("| short "), "{length}");
            let widest = text.lines().map(str::len).max().unwrap_or(0);
            assert!(widest < WIDEST + 200, "{length}: {widest}");
        }
    }

    #[test]
    fn the_rows_of_long_tables_stand_under_one_header() {
        let mut names = ExtendedStrings::default();
        let rows = (0..3 * 1024_u64 + 7).map(|number| StatRow {
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
        let text = render(&table, &names.into(), view(None));
        assert_eq!(text.matches("NAME").count(), 1);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('|')).collect();
        assert_eq!(lines.len(), table.rows.len() + 2);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        for (number, line) in lines[2..].iter().enumerate() {
            assert!(line.starts_with(&format!("    | name {number} ")), "{line}");
        }
    }

    #[test]
    fn a_table_on_a_terminal_fits_it_and_keeps_its_numbers() {
        let mut names = ExtendedStrings::default();
        let name = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)";
        let row = StatRow {
            name: names.intern(name),
            domain: Domain::KernelDispatch,
            calls: 4711,
            total: 123_456_789_012,
            average: 1.5,
            percentage: 99.5,
            min: 1,
            max: 77_777_777_777,
            std_dev: 0.0,
        };
        let table = StatTable {
            title: "KERNEL_DISPATCH".to_owned(),
            rows: [row].into_iter().collect(),
        };
        let names = names.into();
        for (width, left_out) in [
            (300, &[][..]),
            (160, &[]),
            (120, &["STDDEV"]),
            (80, &["STDDEV", "DOMAIN", "MIN (nsec)", "MAX (nsec)"]),
        ] {
            let mut text = String::new();
            let found = render_to(&table, &names, view(Some(width)), |piece| {
                text.push_str(piece);
                Ok(())
            });
            assert_eq!(found.expect("in memory"), left_out, "{text}");
            assert!(
                text.lines().all(|line| line.chars().count() <= width),
                "{width}: {text}"
            );
            for whole in ["4711", "123456789012", "99.500000"] {
                assert!(text.contains(&format!(" {whole} |")), "{width}: {text}");
            }
            assert!(text.contains("| void at::"), "{width}: {text}");
            assert!(text.contains(">>(int) |"), "{width}: {text}");
        }
    }
}

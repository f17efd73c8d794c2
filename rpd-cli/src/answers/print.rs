//! Any answer in every form, from the descriptions of its columns.

mod html;
mod json;
mod texts;

use std::io::Write;

use anyhow::Result;
use clap::ValueEnum;
use rpd_analysis::answer::{Answer, Column, Paragraph, Section, Unit, Value};
use rpd_analysis::records::Facts;
use rpd_formats::destination::Destination;
use rpd_formats::table::{self, Cell, ColumnKind, TableFormat, View};

pub(super) use json::error;
use json::{Envelope, RowObject};
use serde_json::json;
use texts::wrapped;

use super::AnswerOptions;
use crate::commands::tables::note;
use crate::failure::Failure;
use crate::terminal;

/// Letters in a line where there is no terminal that tells.
const WIDTH: usize = 80;

/// Form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Tables for people
    Table,
    /// Comma-separated values of one section
    Csv,
    /// One object with everything
    Json,
    /// The object without rows in the first line, then an object for each row of one section
    Ndjson,
    /// Markdown tables
    #[value(alias = "md")]
    Markdown,
    /// A page for browsers that needs nothing else
    Html,
}

/// A section as it is shown: its columns and rows, in their order.
struct ShownSection<'a> {
    section: &'a Section,
    /// Places of the columns that are shown.
    columns: Vec<usize>,
    rows: Vec<&'a [Value]>,
    /// Rows that there are.
    total: u64,
    /// Time of the rows that are not shown, where the rows are ordered by a time.
    rest: Option<i64>,
}

/// An answer that is about to be written.
pub(super) struct Shown<'a> {
    form: Form,
    units: &'a str,
    is_wide: bool,
    /// Whether one section was asked for.
    is_chosen: bool,
    width: Option<usize>,
    answer: &'a Answer,
    facts: &'a Facts,
    sections: Vec<ShownSection<'a>>,
    main: usize,
}

impl<'a> Shown<'a> {
    pub(super) fn new(
        name: &str,
        options: &'a AnswerOptions,
        answer: &'a Answer,
        facts: &'a Facts,
        output: &Destination,
    ) -> Result<Shown<'a>> {
        let wanted = options.section.as_deref();
        let chosen = |section: &&Section| wanted.is_none_or(|wanted| wanted == section.name);
        let sections: Vec<&Section> = answer.sections.iter().filter(chosen).collect();
        if let Some(wanted) = wanted.filter(|_| sections.is_empty() && !answer.is_empty) {
            let names: Vec<&str> = answer.sections.iter().map(|section| section.name).collect();
            return Err(Failure::usage(format!(
                "{name}: --section '{wanted}': the answer has no such section; choose from {}",
                names.join(", ")
            ))
            .into());
        }
        let main = sections
            .iter()
            .position(|section| section.name == answer.main)
            .unwrap_or(0);
        let one_alone = matches!(options.format, Form::Csv | Form::Ndjson);
        let shown = sections.iter().enumerate().map(|(index, section)| {
            let is_main = index == main;
            ShownSection::new(name, options, section, is_main)
        });
        let mut shown = shown.collect::<Result<Vec<_>>>()?;
        let mut main = main;
        if one_alone && !shown.is_empty() {
            shown = vec![shown.swap_remove(main)];
            main = 0;
        }
        let is_terminal = output.is_standard_output();
        let width = terminal::width(std::io::stdout())
            .filter(|_| is_terminal)
            .unwrap_or(WIDTH);
        Ok(Shown {
            form: options.format,
            units: &options.units,
            is_chosen: wanted.is_some(),
            is_wide: options.tables.is_wide() || !options.columns.is_empty(),
            width: (!options.tables.is_wide()).then_some(width),
            answer,
            facts,
            sections: shown,
            main,
        })
    }

    /// Writes the answer.
    pub(super) fn write(&self, out: &mut dyn Write) -> Result<()> {
        match self.form {
            Form::Table => self.write_tables(TableFormat::Console, out),
            Form::Markdown => self.write_tables(TableFormat::Markdown, out),
            Form::Csv => self.write_csv(out),
            Form::Html => html::write(self, out),
            Form::Json => {
                serde_json::to_writer_pretty(&mut *out, &Envelope(self, true))?;
                writeln!(out)?;
                Ok(())
            }
            Form::Ndjson => self.write_lines(out),
        }
    }

    /// Says on standard error what the form has no place for.
    pub(super) fn notes(&self) {
        if matches!(self.form, Form::Json | Form::Ndjson) {
            return;
        }
        for warning in &self.answer.warnings {
            let is_shown = warning.code == "simulated" && self.form != Form::Csv;
            if !is_shown {
                eprintln!("rpd: {}: {}", warning.level.word(), warning.text);
            }
        }
        if self.form == Form::Csv {
            self.missing()
                .iter()
                .for_each(|line| eprintln!("rpd: {line}"));
        }
    }

    fn write_tables(&self, format: TableFormat, out: &mut dyn Write) -> Result<()> {
        for line in self.head() {
            let line = rpd_core::text::foreign::shown(&line).into_owned();
            match self.width.filter(|_| format == TableFormat::Console) {
                Some(width) => writeln!(out, "{}", table::shortened(&line, width))?,
                None => writeln!(out, "{line}")?,
            }
        }
        for shown in &self.sections {
            let paragraphs = self
                .paragraphs(shown)
                .filter(|_| format == TableFormat::Console);
            if paragraphs.is_some_and(<[Paragraph]>::is_empty) {
                continue;
            }
            let title = match format {
                TableFormat::Markdown => format!("\n## {}\n", shown.section.name),
                _ => format!("\n{}", shown.section.name),
            };
            writeln!(out, "{title}")?;
            if let Some(paragraphs) = paragraphs {
                self.write_paragraphs(paragraphs, out)?;
                continue;
            }
            if shown.rows.is_empty() {
                writeln!(out, "(none)")?;
                continue;
            }
            self.write_table(shown, format, out)?;
            if let Some(rest) = shown.rest_line() {
                writeln!(out, "{rest}")?;
            }
        }
        let is_page = self
            .sections
            .iter()
            .any(|shown| self.paragraphs(shown).is_some());
        let missing = if is_page && format == TableFormat::Console {
            // A page keeps its length: why something is missing stands in the other forms.
            self.affected()
        } else {
            self.missing()
        };
        if !missing.is_empty() {
            writeln!(out)?;
        }
        for line in missing {
            let line = rpd_core::text::foreign::shown(&line).into_owned();
            let lines = match self.width.filter(|_| format == TableFormat::Console) {
                Some(width) => wrapped(&line, width),
                None => vec![line],
            };
            for line in lines {
                writeln!(out, "{line}")?;
            }
        }
        Ok(())
    }

    fn write_table(
        &self,
        shown: &ShownSection<'_>,
        format: TableFormat,
        out: &mut dyn Write,
    ) -> Result<()> {
        let all = &shown.section.columns;
        // What is null in every row says nothing to people, and keys are for programs.
        let is_shown = |index: &&usize| {
            let is_known = shown.rows.iter().any(|row| row[**index] != Value::Null);
            self.is_wide || is_known && all[**index].detail < 7
        };
        let places: Vec<usize> = shown.columns.iter().filter(is_shown).copied().collect();
        let units: Vec<Option<ShownUnit>> = places
            .iter()
            .map(|place| (all[*place].unit == Unit::Nanoseconds).then(|| self.unit(shown, *place)))
            .collect();
        let columns = places
            .iter()
            .zip(&units)
            .map(|(place, unit)| column(&all[*place], *unit));
        let mut view = View::from(format);
        view.width = self.width.filter(|_| format == TableFormat::Console);
        let mut printer = table::Printer::new(&view, columns.collect(), &mut *out)?;
        for row in &shown.rows {
            let cells = places.iter().zip(&units).map(|(place, unit)| {
                let name = format == TableFormat::Markdown && all[*place].unit == Unit::Name;
                cell(&row[*place], all[*place].unit, *unit, name)
            });
            printer.row(cells.collect())?;
        }
        let left_out = printer.finish()?;
        if !self.is_wide
            && !left_out.columns.is_empty()
            && std::io::IsTerminal::is_terminal(&std::io::stdout())
        {
            note(self.answer.command, format, &left_out);
        }
        Ok(())
    }

    /// The unit of a column of times: the greatest in which the median is at least 1.
    fn unit(&self, shown: &ShownSection<'_>, place: usize) -> ShownUnit {
        if let Some(unit) = UNITS.iter().find(|unit| unit.0 == self.units) {
            return *unit;
        }
        let mut values: Vec<f64> = shown
            .rows
            .iter()
            .filter_map(|row| row[place].number())
            .collect();
        values.retain(|value| *value != 0.0);
        unit_of(rpd_analysis::distribution::median(&mut values).unwrap_or(0.0))
    }

    fn write_csv(&self, out: &mut dyn Write) -> Result<()> {
        let Some(shown) = self.sections.get(self.main) else {
            return Ok(());
        };
        let columns = shown.columns.iter().map(|place| {
            let column = &shown.section.columns[*place];
            let title = if self.answer.has_titles {
                column.label
            } else {
                column.name
            };
            table::Column::new(ColumnKind::Any, title)
        });
        let view = View::from(TableFormat::Csv);
        let mut printer = table::Printer::new(&view, columns.collect(), out)?;
        for row in &shown.rows {
            let cells = shown.columns.iter().map(|place| {
                let is_percent =
                    self.answer.has_titles && shown.section.columns[*place].unit == Unit::Share;
                match row[*place].number().filter(|_| is_percent) {
                    // With the title in percent, and one decimal as other tools have it.
                    Some(share) => Cell::Float((share * 1000.0).round() / 10.0),
                    None => plain(&row[*place]),
                }
            });
            printer.row(cells.collect())?;
        }
        printer.finish()?;
        Ok(())
    }

    fn write_lines(&self, out: &mut dyn Write) -> Result<()> {
        serde_json::to_writer(&mut *out, &Envelope(self, false))?;
        writeln!(out)?;
        let mut count = 0;
        if let Some(shown) = self.sections.get(self.main) {
            for row in &shown.rows {
                serde_json::to_writer(&mut *out, &RowObject(shown, row))?;
                writeln!(out)?;
                count += 1;
            }
        }
        // A file without this line was cut.
        writeln!(out, "{}", json!({"end": {"rows": count}}))?;
        Ok(())
    }
}

impl<'a> ShownSection<'a> {
    fn new(
        name: &str,
        options: &AnswerOptions,
        section: &'a Section,
        is_main: bool,
    ) -> Result<ShownSection<'a>> {
        let find = |wanted: &str| {
            section
                .columns
                .iter()
                .position(|column| column.name == wanted)
        };
        let unknown = |option: &str, wanted: &str| {
            let names: Vec<&str> = section.columns.iter().map(|column| column.name).collect();
            Failure::usage(format!(
                "{name}: {option} '{wanted}': the section {} has no such column; choose from {}",
                section.name,
                names.join(", ")
            ))
        };
        // Options about columns are for the main section; the others keep theirs.
        let columns = if options.columns.is_empty() || !is_main {
            (0..section.columns.len()).collect()
        } else {
            let places = options.columns.iter();
            let places =
                places.map(|wanted| find(wanted).ok_or_else(|| unknown("--columns", wanted)));
            places.collect::<Result<Vec<usize>, Failure>>()?
        };
        let mut rows: Vec<&[Value]> = section.rows.iter().map(Vec::as_slice).collect();
        let mut order = section
            .columns
            .iter()
            .position(|column| column.unit == Unit::Nanoseconds && column.detail == 0);
        if let Some(sort) = options.tables.sort().filter(|_| is_main) {
            let (wanted, ascending) = match sort.strip_suffix(":asc") {
                Some(wanted) => (wanted, true),
                None => (sort, false),
            };
            let place = find(wanted).ok_or_else(|| unknown("--sort", wanted))?;
            order = Some(place).filter(|place| section.columns[*place].unit == Unit::Nanoseconds);
            sort_rows(&mut rows, place, find("key"), ascending);
        }
        let limit = options.tables.limit_or(Some(20)).unwrap_or(u64::MAX);
        let all: i64 = order.map_or(0, |place| sum(&rows, place));
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        if is_main && rows.len() > limit {
            // What was added up of many rows stays at the end.
            let is_short =
                |row: &&[Value]| row[0].text().is_some_and(|key| key.starts_with("short|"));
            let last = rows.last().copied().filter(is_short);
            rows.truncate(limit);
            rows.extend(last);
        }
        let shown = order.map_or(0, |place| sum(&rows, place));
        Ok(ShownSection {
            section,
            columns,
            rest: order.map(|_| all - shown),
            rows,
            total: section.total,
        })
    }

    fn rest_line(&self) -> Option<String> {
        let left = self
            .total
            .checked_sub(self.rows.len() as u64)
            .filter(|left| *left > 0)?;
        Some(format!("{left} more rows; --limit 0 shows all"))
    }
}

fn sum(rows: &[&[Value]], place: usize) -> i64 {
    let value = |row: &&[Value]| match &row[place] {
        Value::Integer(value) => *value,
        Value::Null | Value::Number(_) | Value::Text(_) => 0,
    };
    rows.iter().map(value).fold(0, i64::saturating_add)
}

/// Numbers from the largest and texts from A to Z, or the other way round; what is not known comes last, ties by key.
fn sort_rows(rows: &mut [&[Value]], place: usize, key: Option<usize>, ascending: bool) {
    let key = |row: &[Value]| {
        key.and_then(|key| row[key].text())
            .unwrap_or_default()
            .to_owned()
    };
    rows.sort_by(|a, b| {
        let by_value = match (a[place].number(), b[place].number()) {
            (Some(a), Some(b)) => b.total_cmp(&a),
            (Some(_), None) => return std::cmp::Ordering::Less,
            (None, Some(_)) => return std::cmp::Ordering::Greater,
            (None, None) => a[place].text().cmp(&b[place].text()),
        };
        let by_value = if ascending {
            by_value.reverse()
        } else {
            by_value
        };
        by_value.then_with(|| key(a).cmp(&key(b)))
    });
}

/// Name of a unit, and nanoseconds in it.
type ShownUnit = (&'static str, f64);

const UNITS: [ShownUnit; 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The greatest unit in which a time is at least 1.
fn unit_of(time: f64) -> ShownUnit {
    let mut units = UNITS.iter().rev();
    *units.find(|unit| time >= unit.1).unwrap_or(&UNITS[0])
}

/// A time in a unit, with four digits.
fn time(value: f64, unit: ShownUnit) -> (String, f64) {
    let value = rounded(value / unit.1);
    (format!("{value}"), value)
}

/// A number with four digits that count.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 3 - value.abs().log10().floor() as i32;
    let factor = 10_f64.powi(digits);
    // Whole numbers keep their digits.
    if digits < 0 {
        return value.round();
    }
    (value * factor).round() / factor
}

fn column(column: &Column, unit: Option<ShownUnit>) -> table::Column {
    let kind = match column.unit {
        Unit::Key | Unit::Name => ColumnKind::Name,
        Unit::Word => ColumnKind::Word,
        Unit::Count | Unit::Number | Unit::Nanoseconds | Unit::Rate => ColumnKind::Number,
        Unit::Share => ColumnKind::Percent,
        Unit::Bytes => ColumnKind::Bytes,
    };
    // Titles that scripts know have their unit.
    let units = [" (ns)", " (%)", " (B)", " (B/s)"];
    let label = units
        .iter()
        .find_map(|unit| column.label.strip_suffix(unit));
    let label = label.unwrap_or(column.label);
    let title = match (unit, column.unit) {
        (Some((name, _)), _) => format!("{label} ({name})"),
        (None, Unit::Rate) => format!("{label} (GB/s)"),
        (None, _) => label.to_owned(),
    };
    table::Column::new(kind, title).detail(column.detail)
}

/// A cell of a table for people.
fn cell(value: &Value, unit: Unit, shown: Option<ShownUnit>, is_code: bool) -> Cell {
    match (value, unit) {
        (Value::Null, _) => Cell::Float(f64::NAN),
        (Value::Text(text), _) if is_code => Cell::Text(format!("`{}`", text.replace('`', "'"))),
        (Value::Text(text), _) => Cell::Text(text.clone()),
        (_, Unit::Share) => {
            Cell::Float((value.number().unwrap_or(f64::NAN) * 1000.0).round() / 10.0)
        }
        (_, Unit::Rate) => Cell::Float(rounded(value.number().unwrap_or(f64::NAN) / 1e9)),
        (Value::Integer(number), _) => match shown {
            Some((_, size)) if size > 1.0 => Cell::Float(rounded(*number as f64 / size)),
            _ => Cell::Integer(*number),
        },
        (Value::Number(number), _) => {
            Cell::Float(rounded(*number / shown.map_or(1.0, |unit| unit.1)))
        }
    }
}

/// A cell for programs.
fn plain(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Integer(value) => Cell::Integer(*value),
        Value::Number(value) => Cell::Float(*value),
        Value::Text(text) => Cell::Text(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_four_digits() {
        for (value, shown) in [
            (540_123.0, 540_123.0),
            (1.234_56, 1.235),
            (0.000_123_456, 0.000_123_5),
            (0.0, 0.0),
        ] {
            assert_eq!(rounded(value), shown);
        }
    }

    #[test]
    fn unit_is_the_greatest_in_which_a_time_is_at_least_one() {
        for (time, unit) in [
            (0.0, "ns"),
            (999.0, "ns"),
            (1_000.0, "us"),
            (2.5e6, "ms"),
            (1e9, "s"),
        ] {
            assert_eq!(unit_of(time).0, unit);
        }
    }
}

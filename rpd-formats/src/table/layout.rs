//! Lays tables for people out: widths of columns, what is shortened or left out where a terminal is too narrow, and the lines,
//! which comfy-table makes.

use std::io;

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, Width};
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr};

/// Letters of a text up to which the others of its column are aligned with it: one huge text must not make every row as wide
/// as itself.
pub(super) const WIDEST: usize = 4_096;

/// Letters that shortened names keep as long as there are columns that can be left out.
const NAME: usize = 24;

/// Letters that shortened names always keep.
const NAME_LEAST: usize = 8;

/// Rows that are laid out at once, so that a table of any length takes little memory.
const ROWS: usize = 1024;

/// Letters in a line up to which comfy-table, which counts with 16 bits, makes it.
const LINE: usize = 60_000;

/// What is between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A blank.
    Plain,
    /// Lines, also around the table.
    Bordered,
}

/// A column as it is laid out.
#[derive(Debug, Clone)]
pub(super) struct LaidColumn {
    pub(super) title: String,
    pub(super) alignment: CellAlignment,
    /// Columns of the screen that its widest cell takes.
    pub(super) width: usize,
    /// Whether its cells may be shortened.
    pub(super) is_name: bool,
    /// How easily it is left out; 0 is never.
    pub(super) detail: u8,
}

/// A table's columns.
#[derive(Debug)]
pub(super) struct Layout {
    style: Style,
    /// Blanks before each line.
    indent: usize,
    columns: Vec<LaidColumn>,
    /// Indices of the columns that are shown.
    shown: Vec<usize>,
    /// Whether cells of names may be wider than their columns, and are shortened.
    shortens: bool,
}

impl Layout {
    pub(super) fn new(style: Style, indent: usize, columns: Vec<LaidColumn>) -> Layout {
        Layout {
            style,
            indent,
            shown: (0..columns.len()).collect(),
            columns,
            shortens: false,
        }
    }

    /// Makes the table fit `width`: titles are broken at blanks, names shortened, and details left out. Numbers stay whole, even
    /// where the table is too wide then. Returns the titles of the columns that are left out.
    pub(super) fn fit(&mut self, width: usize) -> Vec<String> {
        let mut left_out = Vec::new();
        self.shortens = true;
        if self.line_width() <= width {
            return left_out;
        }
        let titles: Vec<String> = self
            .columns
            .iter()
            .map(|column| column.title.trim().to_owned())
            .collect();
        for column in &mut self.columns {
            column.title = broken(&column.title, column.width);
        }
        while self.narrowest(NAME) > width {
            let shown = self.shown.iter().map(|&index| self.columns[index].detail);
            let easiest = shown.max().unwrap_or(0);
            if easiest == 0 {
                break;
            }
            // Columns that belong together have the same level.
            let columns = &self.columns;
            self.shown.retain(|&index| {
                let stays = columns[index].detail != easiest;
                if !stays {
                    left_out.push(titles[index].clone());
                }
                stays
            });
        }
        // The greatest width of names with which the table fits.
        let mut least = NAME_LEAST;
        while self.narrowest(least + 1) <= width && least < WIDEST {
            least += 1;
        }
        for column in self.columns.iter_mut().filter(|column| column.is_name) {
            column.width = column.width.min(least);
        }
        left_out
    }

    /// The width of a column: what its cells and its title need.
    fn column_width(&self, index: usize) -> usize {
        let column = &self.columns[index];
        let title = widest_line(&column.title);
        // A huge title is treated as a huge text is.
        column.width.max(if title > WIDEST { 0 } else { title })
    }

    fn line_width(&self) -> usize {
        let columns: usize = self
            .shown
            .iter()
            .map(|&index| self.column_width(index))
            .sum();
        columns + self.between()
    }

    /// The width of a line in which no name has more than `name` letters.
    fn narrowest(&self, name: usize) -> usize {
        let column = |&index: &usize| {
            let column = &self.columns[index];
            if column.is_name {
                column.width.min(name).max(widest_line(&column.title))
            } else {
                self.column_width(index)
            }
        };
        self.shown.iter().map(column).sum::<usize>() + self.between()
    }

    /// What stands between columns and around them.
    fn between(&self) -> usize {
        let count = self.shown.len();
        self.indent
            + match self.style {
                Style::Plain => count.saturating_sub(1),
                Style::Bordered => 3 * count + 1,
            }
    }

    /// Hands out the titles and the rows, in pieces of whole lines. Cells are single lines, or several for a cell that goes on.
    ///
    /// # Errors
    /// Those of `rows` and `take`.
    pub(super) fn write(
        &self,
        rows: impl Iterator<Item = io::Result<Vec<String>>>,
        mut take: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        let titles = self.columns.iter().map(|column| column.title.clone());
        let titles = self.chosen(titles.collect());
        if self.line_width() > LINE || !self.fits(&titles) {
            take(&self.by_hand(&titles))?;
            for row in rows {
                take(&self.by_hand(&self.chosen(row?)))?;
            }
            return Ok(());
        }
        let mut table = self.table();
        table.set_header(&titles);
        let mut count = 0;
        for row in rows {
            let row = self.chosen(row?);
            let is_huge = !self.fits(&row);
            if count == ROWS || is_huge {
                self.take_table(std::mem::replace(&mut table, self.table()), &mut take)?;
                count = 0;
            }
            if is_huge {
                take(&self.by_hand(&row))?;
                continue;
            }
            table.add_row(&row);
            count += 1;
        }
        self.take_table(table, &mut take)
    }

    /// The cells of the columns that are shown.
    fn chosen(&self, mut cells: Vec<String>) -> Vec<String> {
        let cell = |&index: &usize| {
            let column = &self.columns[index];
            let text = cells.get_mut(index).map(std::mem::take).unwrap_or_default();
            if column.is_name && self.shortens && text.width() > self.column_width(index) {
                shortened(&text, self.column_width(index))
            } else {
                text
            }
        };
        self.shown.iter().map(cell).collect()
    }

    /// Whether no cell is wider than its column.
    fn fits(&self, cells: &[String]) -> bool {
        let columns = self.shown.iter().zip(cells);
        columns
            .into_iter()
            .all(|(&index, cell)| widest_line(cell) <= self.column_width(index))
    }

    /// An empty table of this style.
    fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_style(match self.style {
                Style::Plain => NOTHING,
                Style::Bordered => ASCII_MARKDOWN,
            })
            .set_content_arrangement(ContentArrangement::Disabled);
        table
    }

    fn take_table(
        &self,
        mut table: Table,
        take: &mut impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<()> {
        if table.is_empty() && table.header().is_none() {
            return Ok(());
        }
        for (place, &index) in self.shown.iter().enumerate() {
            let padding = match (self.style, place) {
                (Style::Bordered, _) => (1, 1),
                (Style::Plain, 0) => (0, 0),
                (Style::Plain, _) => (1, 0),
            };
            let width = self.column_width(index) + usize::from(padding.0 + padding.1);
            if let Some(column) = table.column_mut(place) {
                column.set_padding(padding);
                column.set_cell_alignment(self.columns[index].alignment);
                // The constraint counts the padding.
                let width = u16::try_from(width).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
            }
        }
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(&" ".repeat(self.indent));
            text.push_str(&line);
            text.push('\n');
        }
        take(&text)
    }

    /// A row with a cell that is wider than its column: the others stand where they do in other rows, as far as that is possible.
    fn by_hand(&self, cells: &[String]) -> String {
        let mut line = " ".repeat(self.indent);
        for (place, (&index, cell)) in self.shown.iter().zip(cells).enumerate() {
            if place > 0 {
                line.push(' ');
            }
            let blanks = self.column_width(index).saturating_sub(cell.width());
            line.push_str(&" ".repeat(blanks));
            line.push_str(cell);
        }
        line.push('\n');
        line
    }
}

/// Columns of the screen that the widest line of a text takes.
pub(super) fn widest_line(text: &str) -> usize {
    text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0)
}

/// A title, broken at blanks into lines that are no wider than `width`, or than its longest word.
fn broken(title: &str, width: usize) -> String {
    let longest = title.split(' ').map(UnicodeWidthStr::width).max();
    let width = width.max(longest.unwrap_or(0));
    let mut text = String::new();
    let mut used = 0;
    for word in title.split(' ').filter(|word| !word.is_empty()) {
        let needed = word.width();
        match used {
            0 => {}
            _ if used + 1 + needed <= width => {
                text.push(' ');
                used += 1;
            }
            _ => {
                text.push('\n');
                used = 0;
            }
        }
        text.push_str(word);
        used += needed;
    }
    text
}

/// A text of `width` columns of the screen at most: its beginning, a mark, and its end. What tells names of kernels apart is their
/// beginning, which has the function, and their end, which has the types.
pub fn shortened(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let end_room = room / 2;
    let start = taken(text.chars(), room - end_room);
    let end = taken(text.chars().rev(), end_room);
    let end: String = end.chars().rev().collect();
    format!("{start}…{end}")
}

/// As many letters as take `width` columns of the screen.
fn taken(letters: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    let fit = |letter: &char| {
        used += letter.width().unwrap_or(0);
        used <= width
    };
    letters.take_while(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(title: &str, width: usize, is_name: bool, detail: u8) -> LaidColumn {
        LaidColumn {
            title: title.to_owned(),
            alignment: CellAlignment::Right,
            width,
            is_name,
            detail,
        }
    }

    fn lines(layout: &Layout, rows: &[&[&str]]) -> Vec<String> {
        let rows = rows
            .iter()
            .map(|row| Ok(row.iter().map(|cell| (*cell).to_owned()).collect()));
        let mut text = String::new();
        let taken = layout.write(rows, |piece| {
            text.push_str(piece);
            Ok(())
        });
        taken.expect("in memory");
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn shortening_keeps_beginning_and_end_of_a_name() {
        let name = "void gemm<float, 128, 64>(float const*, float*)";
        assert_eq!(shortened(name, 47), name);
        assert_eq!(shortened(name, 20), "void gemm<…, float*)");
        assert_eq!(shortened("größenordnung", 6), "grö…ng");
        // Letters that take two columns of the screen.
        assert_eq!(shortened("漢字漢字漢字", 7), "漢…字");
        for width in 1..60 {
            assert!(shortened(name, width).width() <= width, "{width}");
        }
    }

    #[test]
    fn a_table_that_fits_is_left_alone() {
        let mut layout = Layout::new(
            Style::Plain,
            0,
            vec![
                column("name", 6, true, 0),
                column("total (nsec)", 3, false, 9),
            ],
        );
        assert!(layout.fit(19).is_empty());
        assert_eq!(
            lines(&layout, &[&["kernel", "353"]]),
            ["  name total (nsec)", "kernel          353"]
        );
    }

    #[test]
    fn titles_are_broken_before_names_are_shortened() {
        let mut layout = Layout::new(
            Style::Plain,
            0,
            vec![
                column("name", 6, true, 0),
                column("total (nsec)", 3, false, 9),
            ],
        );
        assert!(layout.fit(13).is_empty());
        assert_eq!(
            lines(&layout, &[&["kernel", "353"]]),
            ["  name  total", "       (nsec)", "kernel    353"]
        );
    }

    #[test]
    fn details_are_left_out_before_names_become_unreadable() {
        let long = "k".repeat(200);
        let columns = || {
            vec![
                column("name", 200, true, 0),
                column("calls", 10, false, 0),
                column("min", 10, false, 1),
                column("max", 10, false, 2),
            ]
        };
        let rows: &[&[&str]] = &[&[&long, "1234567890", "1", "2"]];
        for (width, left_out, name) in [
            (80, &[][..], 47),
            (50, &["max"], 28),
            (40, &["max", "min"], 29),
            (20, &["max", "min"], 9),
            // Nothing more can be done.
            (5, &["max", "min"], 8),
        ] {
            let mut layout = Layout::new(Style::Plain, 0, columns());
            assert_eq!(layout.fit(width), left_out, "{width}");
            let lines = lines(&layout, rows);
            assert!(lines[1].contains("1234567890"), "{lines:?}");
            let shown = lines[1].split(' ').next().expect("a name");
            assert_eq!(shown.width(), name, "{width}: {lines:?}");
            assert!(
                lines.iter().all(|line| line.width() <= width.max(19)),
                "{lines:?}"
            );
        }
    }
}

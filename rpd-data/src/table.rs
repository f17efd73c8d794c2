//! The format of all tables: comma-separated values below a line of headings.

use std::fmt;
use std::str::FromStr;

/// A row of a table that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MalformedRow {
    table: String,
    line: usize,
    text: String,
    reason: String,
}

impl fmt::Display for MalformedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MalformedRow {
            table,
            line,
            text,
            reason,
        } = self;
        write!(f, "{table}:{line}: `{text}`: {reason}")
    }
}

impl std::error::Error for MalformedRow {}

/// A row of `N` fields.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a, const N: usize> {
    table: &'a str,
    line: usize,
    text: &'a str,
    /// The fields of the row, without quotes.
    pub fields: [&'a str; N],
}

impl<const N: usize> Row<'_, N> {
    /// An error that names this row and the reason.
    pub fn malformed(&self, reason: impl Into<String>) -> MalformedRow {
        MalformedRow {
            table: self.table.to_owned(),
            line: self.line,
            text: self.text.to_owned(),
            reason: reason.into(),
        }
    }

    /// Parses a field as a number.
    ///
    /// # Errors
    /// When it is none, or out of range.
    pub fn number<T: FromStr>(&self, field: &str) -> Result<T, MalformedRow> {
        field
            .parse()
            .map_err(|_| self.malformed(format!("`{field}` is not a number here")))
    }
}

/// The rows of a table of `N` columns, its headings left out. `table` is its name in errors. Fields with commas are
/// quoted; quotes do not occur inside.
pub fn rows<'a, const N: usize>(
    table: &'a str,
    text: &'a str,
) -> impl Iterator<Item = Result<Row<'a, N>, MalformedRow>> {
    text.lines().enumerate().skip(1).map(move |(index, text)| {
        let mut row = Row {
            table,
            // Counted from 1, with the headings, as editors do.
            line: index + 1,
            text,
            fields: [""; N],
        };
        match split(text) {
            Some(fields) => row.fields = fields,
            None => return Err(row.malformed(format!("{N} fields are expected"))),
        }
        Ok(row)
    })
}

/// The fields of a line; `None` when there are more or fewer than `N`.
fn split<const N: usize>(text: &str) -> Option<[&str; N]> {
    let mut fields = [""; N];
    let mut rest = Some(text);
    for field in &mut fields {
        let text = rest?;
        let (found, after) = match text.strip_prefix('"') {
            Some(quoted) => {
                let (found, after) = quoted.split_once('"')?;
                match after {
                    "" => (found, None),
                    _ => (found, Some(after.strip_prefix(',')?)),
                }
            }
            None => match text.split_once(',') {
                Some((found, after)) => (found, Some(after)),
                None => (text, None),
            },
        };
        *field = found;
        rest = after;
    }
    rest.is_none().then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<const N: usize>(text: &str) -> Result<Vec<[&str; N]>, String> {
        rows("t.csv", text)
            .map(|row| row.map(|row| row.fields))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())
    }

    #[test]
    fn quoted_fields_may_contain_commas() {
        let text = "a,b,c\n1,\"f(x, y)\",3\n,,\n\"1\",2,\"\"\n";
        let expected = vec![["1", "f(x, y)", "3"], ["", "", ""], ["1", "2", ""]];
        assert_eq!(fields::<3>(text), Ok(expected));
    }

    #[test]
    fn rows_with_another_number_of_fields_are_refused() {
        for line in ["1", "1,2,3", "\"1,2", "\"1\"x,2"] {
            let expected = format!("t.csv:2: `{line}`: 2 fields are expected");
            assert_eq!(fields::<2>(&format!("a,b\n{line}\n")), Err(expected));
        }
        let row = rows::<1>("t.csv", "a\nx")
            .next()
            .expect("a row")
            .expect("one field");
        let error = row.number::<u32>("x").expect_err("no number");
        assert_eq!(error.to_string(), "t.csv:2: `x`: `x` is not a number here");
    }
}

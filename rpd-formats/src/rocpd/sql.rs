//! Text that goes into SQL statements. Names of tables and columns come from untrusted files, so
//! every one of them passes [`identifier`] and every text that cannot be bound as a parameter passes [`literal`].

/// A name of a database, table, view, index or column, in quotes.
pub(crate) fn identifier(name: &str) -> String {
    quoted(name, '"')
}

/// Quotes a text value.
pub(super) fn literal(text: &str) -> String {
    quoted(text, '\'')
}

fn quoted(text: &str, quote: char) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push(quote);
    for letter in text.chars() {
        match letter {
            // SQLite ends a statement at a NUL.
            '\0' => quoted.push(char::REPLACEMENT_CHARACTER),
            letter if letter == quote => quoted.extend([quote, quote]),
            letter => quoted.push(letter),
        }
    }
    quoted.push(quote);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_cannot_be_left() {
        assert_eq!(
            identifier("a\" FROM x; ATTACH DATABASE '/tmp/x' AS y; --"),
            "\"a\"\" FROM x; ATTACH DATABASE '/tmp/x' AS y; --\""
        );
        assert_eq!(literal("it's\0"), "'it''s\u{fffd}'");
    }
}

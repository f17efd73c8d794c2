//! Views with RPD's names, which show call stacks as files of RPD do.

use super::names::{Names, view_name};
use super::sql;

const STATEMENTS: &str = include_str!("stacks_compat.sql");

/// Names of the views that `stacks_compat.sql` makes.
pub(super) const COMPATIBLE: [&str; 7] = [
    "rpd_frame_text",
    "rpd_stack_text",
    "rocpd_api",
    "rocpd_ustring",
    "rocpd_stackframe",
    "rocpd_stackstrings",
    "stackframe",
];

/// First id in `rocpd_string` of the texts that the views put together.
pub(super) const FIRST_MADE_UP: i64 = 1 << 52;

/// The end of the view `rocpd_string`, which only databases with the views of call stacks have.
const MADE_UP: &str = "\n    UNION ALL SELECT id, guid, string FROM rpd_stack_text";

/// Most recordings whose ids of texts are distinct: these ids are 2^56 apart.
const MOST_RECORDINGS: usize = 126;

/// The statements that make the views of one recording.
pub(super) fn statements(names: &Names) -> String {
    fill_in(names, 0, STATEMENTS)
}

fn fill_in(names: &Names, session: usize, statements: &str) -> String {
    names
        .fill_in(statements)
        .replace("%session%", &session.to_string())
        .replace(
            "%address%",
            &hexadecimal("(coalesce(m.base, 0) + l.rel_pc)"),
        )
        .replace("%size%", &hexadecimal("CAST(a.value AS INTEGER)"))
}

/// The views of call stacks of several recordings in one database.
pub(super) struct Merged {
    /// Statements that make the views.
    pub(super) statements: Vec<String>,
    /// Selections that these views add to the view `rocpd_string`; empty without views.
    pub(super) strings: String,
}

/// The views over the recordings with call stacks of a database that has several: those of each under names of their own, and
/// their union under RPD's names. None for more recordings than have distinct ids.
pub(super) fn merged(recordings: &[Names]) -> Merged {
    let mut merged = Merged {
        statements: Vec::new(),
        strings: String::new(),
    };
    if recordings.is_empty() || recordings.len() > MOST_RECORDINGS {
        return merged;
    }
    merged.strings = MADE_UP.to_owned();
    for (session, names) in (1..).zip(recordings) {
        let own = |name: &str| own_name(names, name);
        for statement in STATEMENTS.split(";\n").map(Names::without_comments) {
            if view_name(statement).is_some_and(|name| COMPATIBLE.contains(&name)) {
                let statement = fill_in(names, session, &with_names(statement, own));
                merged.statements.push(statement);
            }
        }
        let guid = sql::literal(&names.guid);
        let first = (session as i64) << 56;
        merged.strings += &format!(
            " UNION ALL SELECT id, {guid}, string FROM {} UNION ALL SELECT id + {first}, {guid}, string FROM {}",
            own("rocpd_ustring"),
            names.table("rocpd_string"),
        );
    }
    for name in COMPATIBLE {
        let selects =
            (recordings.iter()).map(|names| format!("SELECT * FROM {}", own_name(names, name)));
        let all: Vec<String> = selects.collect();
        let statement = format!("CREATE VIEW {name} AS {}", all.join(" UNION ALL "));
        merged.statements.push(statement);
    }
    merged
}

/// The name of a view of one recording among several. Readers use no tables of such names.
fn own_name(names: &Names, view: &str) -> String {
    names.table(&format!("rpd_own_{view}"))
}

/// Replaces the names of RPD's views in a statement.
fn with_names(statement: &str, name: impl Fn(&str) -> String) -> String {
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut text = String::new();
    let mut rest = statement;
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter| is_of_word(letter) != is_of_word(first));
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        // A name followed by a suffix is a table.
        if COMPATIBLE.contains(&word) && !behind.starts_with('%') {
            text += &name(word)
        } else {
            text += word
        }
        rest = behind;
    }
    text
}

/// The query of a view, without generated texts.
pub(super) fn without_made_up(select: &str) -> &str {
    select.split_once(MADE_UP).map_or(select, |(own, _)| own)
}

/// SQL for the 16 hexadecimal digits of a number. `printf` and `hex` are not among the functions that views may use.
fn hexadecimal(number: &str) -> String {
    let digits: Vec<String> = (0..16)
        .rev()
        .map(|digit| {
            let shift = digit * 4;
            format!("substr('0123456789abcdef', (({number} >> {shift}) & 15) + 1, 1)")
        })
        .collect();
    digits.join(" || ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_sixteen_digits() {
        let connection = rusqlite::Connection::open_in_memory().expect("a connection");
        for (number, text) in [
            ("140042349957451", "00007f5e2685d14b"),
            ("0", "0000000000000000"),
            ("-1", "ffffffffffffffff"),
        ] {
            let sql = format!("SELECT {}", hexadecimal(number));
            let found: String = connection
                .query_row(&sql, [], |row| row.get(0))
                .expect("a row");
            assert_eq!(found, text);
        }
    }

    #[test]
    fn names_of_views_are_replaced_and_others_are_not() {
        let statement =
            "CREATE VIEW stackframe AS SELECT '%guid%' FROM rocpd_api r JOIN rpd_api_stack%suffix%";
        assert_eq!(
            with_names(statement, |name| format!("<{name}>")),
            "CREATE VIEW <stackframe> AS SELECT '%guid%' FROM <rocpd_api> r JOIN rpd_api_stack%suffix%"
        );
    }

    #[test]
    fn every_view_is_named() {
        for name in COMPATIBLE {
            assert!(
                STATEMENTS.contains(&format!("CREATE VIEW {name} AS")),
                "{name}"
            );
        }
        assert_eq!(
            STATEMENTS.matches("CREATE VIEW").count(),
            COMPATIBLE.len() + 1
        );
        assert!(STATEMENTS.contains(MADE_UP));
    }
}

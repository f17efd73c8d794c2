//! The views with RPD's names, which show call stacks as its files do.

use super::names::Names;

const STATEMENTS: &str = include_str!("stacks_compat.sql");

/// Their names. They exist in databases with one recording only.
pub(super) const COMPATIBLE: [&str; 7] = [
    "rpd_frame_text",
    "rpd_stack_text",
    "rocpd_api",
    "rocpd_ustring",
    "rocpd_stackframe",
    "rocpd_stackstrings",
    "stackframe",
];

/// From here on ids of `rocpd_string` are those of texts that the views put together.
pub(super) const FIRST_MADE_UP: i64 = 1 << 52;

/// The end of the view `rocpd_string` that only databases with these views have.
const MADE_UP: &str = "\n    UNION ALL SELECT id, guid, string FROM rpd_stack_text";

/// The statements that make the views of one recording.
pub(super) fn statements(names: &Names) -> String {
    let filled = names.fill_in(STATEMENTS);
    filled
        .replace(
            "%address%",
            &hexadecimal("(coalesce(m.base, 0) + l.rel_pc)"),
        )
        .replace("%size%", &hexadecimal("CAST(a.value AS INTEGER)"))
}

/// What a view selects, without the texts that are made up.
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

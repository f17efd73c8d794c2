//! Names of the tables of one database, and the constants in its statements.

use rpd_core::session::Session;

use super::identity::{self, Node};
use super::sql;

/// The constants of one database.
pub(super) struct Names {
    pub(super) guid: String,
    /// Suffix of table names.
    pub(super) suffix: String,
    pub(super) nid: i64,
    pub(super) pid: i64,
}

impl Names {
    pub(super) fn new(session: &Session, node: &Node) -> Names {
        // A recording that was read from a database keeps its guid.
        let guid = match &session.origin {
            Some(origin) => origin.guid.clone(),
            None => identity::guid(&session.process, node),
        };
        Names {
            suffix: suffix(&guid),
            guid,
            nid: node.id,
            pid: session.process.pid.0.into(),
        }
    }

    /// The real name of a table.
    pub(super) fn table_name(&self, base: &str) -> String {
        format!("{base}{}", self.suffix)
    }

    /// The real name of a table, in quotes.
    pub(super) fn table(&self, base: &str) -> String {
        sql::identifier(&self.table_name(base))
    }

    /// A statement without the comments in front of it.
    pub(super) fn without_comments(statement: &str) -> &str {
        let mut rest = statement.trim_start();
        while rest.starts_with("--") {
            rest = rest
                .split_once('\n')
                .map_or("", |(_, rest)| rest)
                .trim_start();
        }
        rest
    }

    /// A statement of ours with the constants in it.
    pub(super) fn fill_in(&self, statements: &str) -> String {
        statements
            .replace("%suffix%", &self.suffix)
            .replace("'%guid%'", &sql::literal(&self.guid))
            .replace("%nid%", &self.nid.to_string())
            .replace("%pid%", &self.pid.to_string())
    }
}

/// Suffix of the tables of a recording: its guid, with an underscore for each character that a plain name cannot have. A guid that
/// was read from a database may be any text.
pub(super) fn suffix(guid: &str) -> String {
    let plain = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '_'
        }
    };
    format!("_{}", guid.chars().map(plain).collect::<String>())
}

/// The name in a `CREATE VIEW` of ours.
pub(super) fn view_name(statement: &str) -> Option<&str> {
    let rest = statement.strip_prefix("CREATE VIEW ")?;
    rest.split_whitespace().next()
}

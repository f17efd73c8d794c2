//! Limits of statements on a connection: permitted actions, processor time and memory.
//!
//! Databases come from unknown sources, and their views are programs. SQLite calls [`Guard::authorize`] for every action when a
//! statement is compiled, and [`Guard::is_exhausted`] every few instructions while it runs.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

/// Number of instructions of SQLite's machine between two looks at the clock.
const INSTRUCTIONS: i32 = 500;
/// Time between two looks at memory and processor time. A look takes two system calls.
const INTERVAL: Duration = Duration::from_millis(20);
/// Processor time that reading even the smallest database may take, in seconds.
const SECONDS: u64 = 20;
/// Processor time for each MiB of the files, in seconds: a hundred times what reading them takes.
const SECONDS_PER_MIB: u64 = 1;
/// Memory by which the process may grow while even the smallest database is read, in bytes.
const MEMORY: u64 = 1 << 30;
/// Memory for each byte of the files, in bytes.
const MEMORY_PER_BYTE: u64 = 64;
/// The largest value in a database, in bytes. Names and arguments are far smaller.
pub(super) const LARGEST_VALUE: i32 = 64 << 20;
/// Most instructions of a compiled statement. Ten databases of many processes, seen as one, come to some ten thousand.
const LARGEST_PROGRAM: i32 = 5_000_000;

/// Origin of the statements that are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Trust {
    /// A statement of rpd, without anything from a file in it but quoted names.
    Own,
    /// A statement of rpd that reads views of a file: nothing but plain selects.
    Views,
    /// Text from a file that makes tables, indices and views of the main database.
    Schema,
    /// A statement of rpd that writes symbols: into the tables of symbols, and nothing else.
    Symbols,
    /// A statement of the user: anything that stays in memory.
    User,
}

impl Trust {
    const ALL: [Trust; 5] = [
        Trust::Own,
        Trust::Views,
        Trust::Schema,
        Trust::Symbols,
        Trust::User,
    ];
}

/// Functions that views of recordings may use. None of them takes long over a long text.
const FUNCTIONS: &[&str] = &[
    "->",
    "->>",
    "abs",
    "avg",
    "coalesce",
    "count",
    "group_concat",
    "if",
    "ifnull",
    "iif",
    "json",
    "json_array",
    "json_extract",
    "json_object",
    "json_type",
    "json_valid",
    "length",
    "like",
    "lower",
    "ltrim",
    "max",
    "min",
    "nullif",
    "round",
    "rtrim",
    "substr",
    "substring",
    "sum",
    "total",
    "trim",
    "typeof",
    "upper",
];

/// SQL functions that reach outside the database.
const REFUSED_FUNCTIONS: &[&str] = &["load_extension", "fts3_tokenizer"];

/// Pragmas that only read, also when they are given the name of a table, an index or a number of rows.
const PRAGMAS_WITH_NAME: &[&str] = &[
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// Pragmas that only read as long as they are given no value.
const PRAGMAS_WITHOUT_VALUE: &[&str] = &[
    "application_id",
    "cache_size",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "freelist_count",
    "function_list",
    "journal_mode",
    "max_page_count",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "query_only",
    "schema_version",
    "temp_store",
    "trusted_schema",
    "user_version",
];

/// Rules and limits of one connection.
#[derive(Debug)]
pub(super) struct Guard {
    trust: AtomicU8,
    /// The action that was refused last; `None` before the first.
    refused: Mutex<Option<String>>,
    limits: Mutex<Limits>,
    /// Bytes of the files on this connection.
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Limits {
    /// The processor time is unlimited when it is `None`.
    allowed: Option<Duration>,
    /// The thread's processor time when the work began.
    begun: Duration,
    /// The process's memory when the work began, in bytes.
    memory: u64,
    looked: Instant,
    exhausted: Option<Exhausted>,
}

/// The limit that ended a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exhausted {
    /// The limit of processor time, in seconds.
    Time(u64),
    /// The limit of memory, in bytes.
    Memory(u64),
}

impl Guard {
    /// Installs the limits on a connection. Until they are switched on its statements are trusted.
    pub(super) fn watch(connection: &mut Connection) -> Result<Arc<Guard>> {
        let guard = Arc::new(Guard {
            trust: AtomicU8::new(Trust::Own as u8),
            refused: Mutex::new(None),
            limits: Mutex::new(Limits {
                allowed: None,
                begun: Duration::ZERO,
                memory: 0,
                looked: Instant::now(),
                exhausted: None,
            }),
            bytes: AtomicU64::new(0),
        });
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LARGEST_VALUE)?;
        connection.set_limit(Limit::SQLITE_LIMIT_VDBE_OP, LARGEST_PROGRAM)?;
        let asked = Arc::clone(&guard);
        connection.authorizer(Some(move |context: AuthContext<'_>| {
            asked.authorize(&context)
        }))?;
        let asked = Arc::clone(&guard);
        connection.progress_handler(INSTRUCTIONS, Some(move || asked.is_exhausted()))?;
        Ok(guard)
    }

    /// Adds the size of a file to the bytes that the limits depend on.
    pub(super) fn add_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Sets the source of the statements that follow.
    pub(super) fn set_trust(&self, trust: Trust) {
        self.trust.store(trust as u8, Ordering::Relaxed);
    }

    /// Starts the clock for the next statements of this thread, with the limits of reading.
    pub(super) fn begin(&self) {
        let mib = self.bytes.load(Ordering::Relaxed) >> 20;
        self.begin_within(Some(Duration::from_secs(SECONDS + mib * SECONDS_PER_MIB)));
    }

    /// Starts the time limit for the user's SQL, which is longer than the one for reading.
    pub(super) fn begin_for_user(&self) {
        let mib = self.bytes.load(Ordering::Relaxed) >> 20;
        self.begin_within(Some(Duration::from_secs(60 + mib * 10)));
    }

    /// Starts the clock with another limit of processor time, or with none.
    pub(super) fn begin_within(&self, allowed: Option<Duration>) {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.allowed = allowed;
        limits.begun = thread_time();
        limits.memory = resident();
        limits.looked = Instant::now();
        limits.exhausted = None;
        drop(limits);
        self.take_refused();
    }

    /// The action that was refused since the work began: `ATTACH`, for example.
    pub(super) fn take_refused(&self) -> Option<String> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.take()
    }

    /// The limit that ended a statement.
    pub(super) fn exhausted(&self) -> Option<Exhausted> {
        let limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        limits.exhausted
    }

    /// Whether a running statement has to end.
    fn is_exhausted(&self) -> bool {
        let mut limits = self.limits.lock().unwrap_or_else(PoisonError::into_inner);
        if limits.exhausted.is_some() {
            return true;
        }
        if limits.looked.elapsed() < INTERVAL {
            return false;
        }
        limits.looked = Instant::now();
        let bytes = self.bytes.load(Ordering::Relaxed);
        let memory = MEMORY.saturating_add(bytes.saturating_mul(MEMORY_PER_BYTE));
        if resident().saturating_sub(limits.memory) > memory {
            limits.exhausted = Some(Exhausted::Memory(memory));
        } else if let Some(allowed) = limits.allowed
            && thread_time().saturating_sub(limits.begun) > allowed
        {
            limits.exhausted = Some(Exhausted::Time(allowed.as_secs()));
        }
        limits.exhausted.is_some()
    }

    fn authorize(&self, context: &AuthContext<'_>) -> Authorization {
        let trust = self.trust.load(Ordering::Relaxed);
        let trust = Trust::ALL.into_iter().find(|known| *known as u8 == trust);
        let what = match trust {
            Some(Trust::Own) => return Authorization::Allow,
            Some(Trust::Views) => refused_in_view(&context.action),
            Some(Trust::Schema) => refused_in_schema(context),
            Some(Trust::Symbols) => refused_to_symbols(&context.action),
            Some(Trust::User) => refused_to_user(context),
            None => Some("a statement".to_owned()),
        };
        match what {
            None => Authorization::Allow,
            Some(what) => {
                let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
                refused.get_or_insert(what);
                Authorization::Deny
            }
        }
    }
}

/// The action as SQL if a statement that reads views of a file may not do it; `None` permits it.
fn refused_in_view(action: &AuthAction<'_>) -> Option<String> {
    match action {
        AuthAction::Select | AuthAction::Read { .. } => None,
        AuthAction::Function { function_name } => {
            let is_known = FUNCTIONS
                .iter()
                .any(|known| known.eq_ignore_ascii_case(function_name));
            (!is_known).then(|| format!("the function {function_name}"))
        }
        AuthAction::Pragma {
            pragma_name: "table_info",
            ..
        } => None,
        AuthAction::Recursive => Some("recursion".to_owned()),
        other => Some(described(other)),
    }
}

/// The action as SQL if a statement with which a file makes one of its tables may not do it; `None` permits it.
fn refused_in_schema(context: &AuthContext<'_>) -> Option<String> {
    let is_main = context.database_name.is_none_or(|name| name == "main");
    match context.action {
        AuthAction::CreateTable { .. }
        | AuthAction::CreateIndex { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
        | AuthAction::Reindex { .. }
            if is_main =>
        {
            None
        }
        // Views look at other tables than their own only when they are used.
        ref other => refused_in_view(other),
    }
}

/// The tables that symbols are written into, without the suffix of the recording.
const SYMBOL_TABLES: [&str; 4] = [
    "rpd_frame",
    "rpd_stack_frame",
    "rocpd_string",
    "rocpd_metadata",
];

/// The action as SQL if a statement that writes symbols may not do it; `None` permits it.
fn refused_to_symbols(action: &AuthAction<'_>) -> Option<String> {
    match action {
        AuthAction::Insert { table_name } | AuthAction::Delete { table_name }
            if SYMBOL_TABLES
                .iter()
                .any(|base| table_name.starts_with(base))
                // Ids of metadata are counted there.
                || *table_name == "sqlite_sequence" =>
        {
            None
        }
        AuthAction::Update { table_name, .. } if *table_name == "sqlite_sequence" => None,
        AuthAction::Transaction { .. } => None,
        other => refused_in_view(other),
    }
}

/// The action as SQL if a statement of the user may not do it; `None` permits it.
fn refused_to_user(context: &AuthContext<'_>) -> Option<String> {
    let is_memory = matches!(context.database_name, None | Some("main" | "temp"));
    match context.action {
        AuthAction::Select
        | AuthAction::Read { .. }
        | AuthAction::Recursive
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. } => None,
        AuthAction::Function { function_name } => {
            let is_refused = REFUSED_FUNCTIONS
                .iter()
                .any(|refused| refused.eq_ignore_ascii_case(function_name));
            is_refused.then(|| format!("the function {function_name}"))
        }
        AuthAction::Pragma {
            pragma_name,
            pragma_value,
        } => {
            let is_among = |list: &[&str]| {
                list.iter()
                    .any(|known| known.eq_ignore_ascii_case(pragma_name))
            };
            let is_harmless = is_among(PRAGMAS_WITH_NAME)
                || (pragma_value.is_none() && is_among(PRAGMAS_WITHOUT_VALUE));
            (!is_harmless).then(|| match pragma_value {
                Some(value) => format!("PRAGMA {pragma_name} = {value}"),
                None => format!("PRAGMA {pragma_name}"),
            })
        }
        AuthAction::CreateTempIndex { .. }
        | AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempTrigger { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::DropTempIndex { .. }
        | AuthAction::DropTempTable { .. }
        | AuthAction::DropTempTrigger { .. }
        | AuthAction::DropTempView { .. } => None,
        // The main database of the connection is one in memory.
        AuthAction::CreateIndex { .. }
        | AuthAction::CreateTable { .. }
        | AuthAction::CreateTrigger { .. }
        | AuthAction::CreateView { .. }
        | AuthAction::DropIndex { .. }
        | AuthAction::DropTable { .. }
        | AuthAction::DropTrigger { .. }
        | AuthAction::DropView { .. }
        | AuthAction::AlterTable { .. }
        | AuthAction::Reindex { .. }
        | AuthAction::Analyze { .. }
        | AuthAction::Delete { .. }
        | AuthAction::Insert { .. }
        | AuthAction::Update { .. }
            if is_memory =>
        {
            None
        }
        ref other => Some(described(other)),
    }
}

/// Words of SQL for an action.
fn described(action: &AuthAction<'_>) -> String {
    match action {
        // VACUUM INTO attaches the file that it writes.
        AuthAction::Attach { .. } => "ATTACH or VACUUM".to_owned(),
        AuthAction::Detach { .. } => "DETACH".to_owned(),
        AuthAction::Pragma { pragma_name, .. } => format!("PRAGMA {pragma_name}"),
        AuthAction::CreateVtable { table_name, .. } => {
            format!("CREATE VIRTUAL TABLE {table_name}")
        }
        AuthAction::DropVtable { table_name, .. } => format!("DROP TABLE {table_name}"),
        AuthAction::Insert { table_name } => format!("INSERT into {table_name}"),
        AuthAction::Update { table_name, .. } => format!("UPDATE of {table_name}"),
        AuthAction::Delete { table_name } => format!("DELETE from {table_name}"),
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => "a transaction".to_owned(),
        _ => "a change of the schema".to_owned(),
    }
}

/// Processor time of this thread.
fn thread_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

/// Memory of this process in bytes; 0 where the system does not report it.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    let page = page
        .ok()
        .flatten()
        .and_then(|size| u64::try_from(size).ok());
    pages.unwrap_or(0) * page.unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guarded(trust: Trust) -> (Connection, Arc<Guard>) {
        let mut connection = Connection::open_in_memory().expect("a connection");
        connection
            .execute_batch("CREATE TABLE t (a); ATTACH ':memory:' AS db0; CREATE TABLE db0.u (a)")
            .expect("made");
        let guard = Guard::watch(&mut connection).expect("a guard");
        guard.set_trust(trust);
        guard.begin();
        (connection, guard)
    }

    #[track_caller]
    fn refused(trust: Trust, sql: &str, what: &str) {
        let (connection, guard) = guarded(trust);
        assert!(connection.execute_batch(sql).is_err(), "{sql}");
        assert_eq!(guard.take_refused().as_deref(), Some(what), "{sql}");
    }

    #[track_caller]
    fn allowed(trust: Trust, sql: &str) {
        let (connection, _) = guarded(trust);
        if let Err(error) = connection.execute_batch(sql) {
            panic!("{sql}: {error}");
        }
    }

    #[test]
    fn users_reach_nothing_but_memory() {
        for (sql, what) in [
            ("ATTACH '/tmp/x' AS y", "ATTACH or VACUUM"),
            ("DETACH db0", "DETACH"),
            ("VACUUM INTO '/tmp/x'", "ATTACH or VACUUM"),
            ("SELECT load_extension('x')", "the function load_extension"),
            ("INSERT INTO db0.u VALUES (1)", "INSERT into u"),
            ("DROP TABLE db0.u", "DELETE from sqlite_master"),
            ("PRAGMA journal_mode = WAL", "PRAGMA journal_mode = WAL"),
            ("PRAGMA db0.user_version = 3", "PRAGMA user_version = 3"),
            ("PRAGMA hard_heap_limit", "PRAGMA hard_heap_limit"),
            (
                "CREATE VIRTUAL TABLE v USING fts5(a)",
                "CREATE VIRTUAL TABLE v",
            ),
        ] {
            refused(Trust::User, sql, what);
        }
        for sql in [
            "CREATE TEMP VIEW v AS SELECT * FROM db0.u; SELECT * FROM v; DROP VIEW v",
            "CREATE TEMP TABLE x AS SELECT 1 a; INSERT INTO x VALUES (2); UPDATE x SET a = 3; DROP TABLE x",
            "CREATE TABLE x (a); CREATE INDEX i ON x (a); BEGIN; DELETE FROM x; COMMIT; DROP TABLE x",
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 9) SELECT group_concat(n) FROM c",
            "PRAGMA table_info(t); SELECT * FROM pragma_table_info('t'); PRAGMA user_version",
        ] {
            allowed(Trust::User, sql);
        }
    }

    #[test]
    fn views_of_files_only_select() {
        for (sql, what) in [
            ("INSERT INTO t VALUES (1)", "INSERT into t"),
            ("ATTACH '/tmp/x' AS y", "ATTACH or VACUUM"),
            ("SELECT zeroblob(1)", "the function zeroblob"),
            (
                "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT * FROM c",
                "recursion",
            ),
        ] {
            refused(Trust::Views, sql, what);
        }
        allowed(
            Trust::Views,
            "SELECT coalesce(a, '{}'), json_extract(a, '$.x') FROM t ORDER BY a",
        );
    }

    #[test]
    fn schemas_of_files_make_tables_and_nothing_else() {
        allowed(
            Trust::Schema,
            "CREATE TABLE x (a DEFAULT 1); CREATE INDEX i ON x (a)",
        );
        allowed(Trust::Schema, "CREATE VIEW v AS SELECT zeroblob(a) FROM t");
        refused(
            Trust::Schema,
            "CREATE TRIGGER x AFTER INSERT ON t BEGIN SELECT 1; END",
            "a change of the schema",
        );
        refused(
            Trust::Schema,
            "CREATE TABLE db0.x (a)",
            "INSERT into sqlite_master",
        );
    }

    #[test]
    fn endless_statements_end() {
        let (connection, guard) = guarded(Trust::User);
        let count = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c";
        guard.begin_within(Some(Duration::from_millis(100)));
        assert!(connection.query_row(count, [], |_| Ok(())).is_err());
        assert_eq!(guard.exhausted(), Some(Exhausted::Time(0)));
        guard.begin_within(None);
        let swell = "WITH RECURSIVE c(n, b) AS (SELECT 1, zeroblob(1) UNION ALL SELECT n + 1, randomblob(1000000) \
            FROM c) SELECT json_group_array(hex(b)) FROM c";
        // Texts have a greatest length, and it is reached first.
        assert!(connection.query_row(swell, [], |_| Ok(())).is_err());
    }
}

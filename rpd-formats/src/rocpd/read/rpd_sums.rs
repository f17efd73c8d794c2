//! Sums of durations in files of RPD (ROCm/rocmProfileData), whoever wrote them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rpd_core::session::LONGEST_DURATION;
use rpd_core::stats::NamedSum;

use super::rpd::has_tables;
use super::scan::{integer, text};
use super::{Guarded, Problem, ReadError};

/// Tables that every file of RPD has.
const TABLES: [&str; 4] = ["rocpd_api", "rocpd_op", "rocpd_api_ops", "rocpd_string"];

/// Statement of groups of work, by the process that requested it. Kernels have their name as description, copies none.
const WORK: &str = "SELECT p.pid, CASE WHEN t.string LIKE '%Kernel%' THEN 'kernels' ELSE 'memory_copies' END AS kind,
        CASE WHEN coalesce(d.string, '') = '' THEN t.string ELSE d.string END AS name, o.\"end\" - o.start AS duration
    FROM rocpd_op o
        JOIN rocpd_string t ON t.id = o.opType_id
        LEFT JOIN rocpd_string d ON d.id = o.description_id
        LEFT JOIN (SELECT x.op_id, min(a.pid) AS pid FROM rocpd_api_ops x JOIN rocpd_api a ON a.id = x.api_id
            GROUP BY x.op_id) p ON p.op_id = o.id";

/// Statement of groups of calls. `%texts%` has the texts of markers.
const CALLS: &str = "SELECT a.pid, CASE
            WHEN n.string = 'UserMarker' THEN 'markers'
            WHEN n.string LIKE 'hip%' OR n.string LIKE '\\_\\_hip%' ESCAPE '\\' THEN 'hip'
            WHEN n.string LIKE 'hsa\\_%' ESCAPE '\\' THEN 'hsa'
            WHEN n.string LIKE 'nccl%' THEN 'rccl'
            ELSE 'other_calls' END AS kind,
        CASE n.string WHEN 'UserMarker' THEN coalesce(u.string, '') ELSE n.string END AS name,
        a.\"end\" - a.start AS duration
    FROM rocpd_api a
        JOIN rocpd_string n ON n.id = a.apiName_id
        LEFT JOIN %texts% u ON u.id = a.args_id";

/// Statement of the sums over groups, in two steps: the squares of distances need the means.
const SUMS: &str = "WITH record AS MATERIALIZED (SELECT * FROM (%records%) WHERE duration BETWEEN 0 AND %longest%),
        part AS MATERIALIZED (SELECT pid, kind, name, count(*) AS calls, sum(duration) AS total, min(duration) AS least,
            max(duration) AS most, avg(duration) AS mean FROM record GROUP BY pid, kind, name)
    SELECT part.pid, part.kind, part.name, part.calls, part.total, part.least, part.most,
        sum((record.duration - part.mean) * (record.duration - part.mean))
    FROM record JOIN part ON part.pid IS record.pid AND part.kind = record.kind AND part.name = record.name
    GROUP BY part.pid, part.kind, part.name";

/// Counts the records whose times cannot be.
const LEFT_OUT: &str = "SELECT count(*) FROM (SELECT \"end\" - start AS duration FROM rocpd_op
        UNION ALL SELECT \"end\" - start FROM rocpd_api) WHERE duration NOT BETWEEN 0 AND %longest%";

/// Sums over a file of RPD.
#[derive(Debug, Default)]
pub struct RpdSums {
    /// By process, 0 for work that no call is known of. Their tables are `kernels`, `memory_copies`, `markers`, `hip`, `hsa`,
    /// `rccl` and `other_calls`.
    pub of_process: BTreeMap<u64, Vec<NamedSum>>,
    /// Number of records that are in no sum, because their times cannot be.
    pub left_out: u64,
}

/// A file of RPD that is open for reading.
#[derive(Debug)]
pub struct RpdFile {
    path: PathBuf,
    connection: Guarded,
}

impl RpdFile {
    /// Whether a database that was opened is a file of RPD.
    pub(super) fn is_on(connection: &Guarded) -> Result<bool, Problem> {
        has_tables(connection, &TABLES)
    }

    pub(super) fn new(path: &Path, connection: Guarded) -> RpdFile {
        RpdFile {
            path: path.to_owned(),
            connection,
        }
    }

    /// Sums of all durations.
    ///
    /// # Errors
    /// When SQLite finds the file damaged, locked or incomplete.
    pub fn sums(&self) -> Result<RpdSums, ReadError> {
        self.connection.begin();
        let mut sums = RpdSums::default();
        let longest = LONGEST_DURATION.to_string();
        let read = has_tables(&self.connection, &["rocpd_ustring"]).and_then(|has_own_texts| {
            // Before schema 3 all texts are in one table.
            let texts = if has_own_texts {
                "rocpd_ustring"
            } else {
                "rocpd_string"
            };
            for records in [WORK, &CALLS.replace("%texts%", texts)] {
                let sql = SUMS.replace("%records%", records);
                let sql = sql.replace("%longest%", &longest);
                let read = self.read(&sql, &mut sums.of_process);
                read.map_err(|error| self.connection.meaning(&error))?;
            }
            let left_out = LEFT_OUT.replace("%longest%", &longest);
            let left_out = self
                .connection
                .query_row(&left_out, [], |row| Ok(integer(row, 0)));
            let left_out = left_out.map_err(|error| self.connection.meaning(&error))?;
            sums.left_out = left_out.unsigned_abs();
            Ok(())
        });
        read.map_err(|problem| ReadError::new(&self.path, problem))?;
        Ok(sums)
    }

    fn read(&self, sql: &str, sums: &mut BTreeMap<u64, Vec<NamedSum>>) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| u64::try_from(integer(row, column)).unwrap_or(0);
            sums.entry(number(0)).or_default().push(NamedSum {
                table: text(row, 1),
                name: text(row, 2),
                calls: number(3),
                total: number(4),
                min: number(5),
                max: number(6),
                spread: row.get::<_, Option<f64>>(7)?.unwrap_or(0.0),
            });
        }
        Ok(())
    }
}

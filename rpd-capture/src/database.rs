//! The schema of `capture.sqlite`.
//!
//! All integers have 64 bits; unsigned ones are stored with the same bits. The views with capital letters have the tables
//! and columns of HIPTracer, so that queries for its databases run; its table `Code` is the table `code`, because names have no
//! case.

use std::collections::HashMap;
use std::path::Path;

use rpd_spool::regular_file::{self, Links};
use rusqlite::{Connection, params};

use crate::CaptureError;
use crate::pack::{self, Chunk, Hash};

/// SQL that makes the tables.
pub const TABLES: &str = "
CREATE TABLE call (
  seq INTEGER PRIMARY KEY, entry INTEGER, exit INTEGER, tid INTEGER, pid INTEGER, dev INTEGER, stream INTEGER,
  api INTEGER, name TEXT, rc INTEGER, t0 INTEGER, t1 INTEGER, flags INTEGER, args BLOB, items BLOB);
CREATE TABLE object (
  num INTEGER PRIMARY KEY, kind TEXT, created INTEGER, destroyed INTEGER, raw INTEGER, props TEXT);
CREATE TABLE alloc (
  num INTEGER PRIMARY KEY, kind INTEGER, dev INTEGER, va INTEGER, size INTEGER, flags INTEGER, created INTEGER,
  destroyed INTEGER);
CREATE TABLE copy (
  seq INTEGER PRIMARY KEY, kind INTEGER, dst INTEGER, dst_alloc INTEGER, dst_off INTEGER, src INTEGER, src_alloc INTEGER,
  src_off INTEGER, size INTEGER, blob INTEGER, out_blob INTEGER, out_seq INTEGER);
CREATE TABLE launch (
  seq INTEGER PRIMARY KEY, kernel INTEGER, gx INTEGER, gy INTEGER, gz INTEGER, bx INTEGER, by INTEGER, bz INTEGER,
  dyn_lds INTEGER, flags INTEGER, number INTEGER, args BLOB);
CREATE TABLE kernel (
  id INTEGER PRIMARY KEY, code INTEGER, name TEXT, symbol TEXT, kernarg_size INTEGER, explicit_size INTEGER, args TEXT);
CREATE TABLE code (
  id INTEGER PRIMARY KEY, provider_id INTEGER, agent INTEGER, hash BLOB, blob INTEGER, triple TEXT, size INTEGER,
  load_seq INTEGER, load_base INTEGER, load_size INTEGER, path TEXT, error TEXT);
CREATE TABLE arg_ptr (launch INTEGER, offset INTEGER, alloc INTEGER, alloc_off INTEGER, how TEXT);
CREATE TABLE sync (seq INTEGER PRIMARY KEY, kind TEXT, object INTEGER, result INTEGER);
CREATE TABLE output (seq INTEGER, copy INTEGER, address INTEGER, size INTEGER, blob INTEGER);
CREATE TABLE blob (id INTEGER PRIMARY KEY, hash BLOB, size INTEGER, kept INTEGER);
CREATE TABLE blob_part (blob INTEGER, idx INTEGER, chunk INTEGER, PRIMARY KEY (blob, idx)) WITHOUT ROWID;
CREATE TABLE chunk (
  id INTEGER PRIMARY KEY, hash BLOB, pack INTEGER, offset INTEGER, size INTEGER, stored INTEGER, codec INTEGER);
CREATE TABLE note (seq INTEGER, severity TEXT, text TEXT);
CREATE TABLE unsupported (api INTEGER PRIMARY KEY, name TEXT, count INTEGER);
";

/// The names of the tables.
pub(crate) fn table_names() -> impl Iterator<Item = &'static str> {
    let statements = TABLES.split("CREATE TABLE ").skip(1);
    statements.filter_map(|statement| statement.split([' ', '(']).next())
}

/// Indices, made when the tables are full.
pub const INDICES: &str = "
CREATE INDEX launch_kernel ON launch (kernel);
CREATE INDEX output_seq ON output (seq);
CREATE INDEX arg_ptr_launch ON arg_ptr (launch);
";

/// The views for HIPTracer's users. Its event types: 1 device, 2 malloc, 3 memcpy, 4 free, 5 launch, 6 sync, 9 stream, 10
/// code; 0 is what it does not record.
pub const VIEWS: &str = "
CREATE VIEW Events AS SELECT seq AS Id, CASE
    WHEN name IN ('hipSetDevice', 'hipDeviceReset') THEN 1
    WHEN seq IN (SELECT created FROM alloc) THEN 2
    WHEN seq IN (SELECT seq FROM copy) THEN 3
    WHEN name IN ('hipFree', 'hipFreeAsync', 'hipHostFree', 'hipFreeHost') THEN 4
    WHEN seq IN (SELECT seq FROM launch) THEN 5
    WHEN seq IN (SELECT seq FROM sync) THEN 6
    WHEN name LIKE 'hip%StreamCreate%' OR name = 'hipStreamDestroy' THEN 9
    WHEN name LIKE 'hipModule%' THEN 10
    ELSE 0 END AS EventType, name AS Name, rc AS Rc, stream AS Stream FROM call;
CREATE VIEW EventMalloc AS SELECT a.created AS Id, c.stream AS Stream, a.va AS Ptr, a.size AS Size
    FROM alloc a JOIN call c ON c.seq = a.created;
CREATE VIEW EventMemcpy AS SELECT p.seq AS Id, c.stream AS Stream, p.dst AS Dst, p.src AS Src, p.size AS Size,
    p.kind AS Kind, NULL AS HostData FROM copy p JOIN call c ON c.seq = p.seq;
CREATE VIEW EventLaunch AS SELECT l.seq AS Id, c.stream AS Stream, k.name AS KernelName, l.gx AS NumX, l.gy AS NumY,
    l.gz AS NumZ, l.bx AS DimX, l.by AS DimY, l.bz AS DimZ, l.dyn_lds AS SharedMem, l.args AS ArgData
    FROM launch l JOIN call c ON c.seq = l.seq LEFT JOIN kernel k ON k.id = l.kernel;
CREATE VIEW EventFree AS SELECT a.destroyed AS Id, c.stream AS Stream, a.va AS Ptr
    FROM alloc a JOIN call c ON c.seq = a.destroyed;
CREATE VIEW ArgInfo AS SELECT k.id * 4096 + j.key AS Id, k.name AS KernelName, j.key AS Ind,
    json_extract(j.value, '$.address_space') AS AddressSpace, json_extract(j.value, '$.size') AS Size,
    json_extract(j.value, '$.offset') AS Offset, json_extract(j.value, '$.kind') AS ValueKind, NULL AS Access
    FROM kernel k, json_each(k.args) j;
";

/// BLAKE3 of the database's file, in hexadecimal digits.
pub(crate) fn hash(path: &Path) -> Result<String, CaptureError> {
    let mut hasher = blake3::Hasher::new();
    let opened = regular_file::open(path, Links::Follow);
    let (mut file, _) = opened.map_err(CaptureError::file(path))?;
    std::io::copy(&mut file, &mut hasher).map_err(CaptureError::io(path))?;
    Ok(pack::hex(hasher.finalize().as_bytes()))
}

/// Adds the rows of all chunks; their numbers.
pub(crate) fn insert_chunks(
    database: &Connection,
    chunks: &HashMap<Hash, Chunk>,
) -> rusqlite::Result<HashMap<Hash, i64>> {
    let mut statement = database.prepare("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?)")?;
    let mut numbers = HashMap::new();
    for (hash, chunk) in chunks {
        let number = numbers.len() as i64 + 1;
        numbers.insert(*hash, number);
        statement.execute(params![
            number,
            hash,
            chunk.pack,
            chunk.offset as i64,
            chunk.size,
            chunk.stored,
            chunk.codec as i64
        ])?;
    }
    Ok(numbers)
}

/// Adds the rows of data. `parts`: the chunks that they consist of; none when only the hash is kept.
pub(crate) fn insert_blob(
    database: &Connection,
    id: i64,
    hash: &Hash,
    size: u64,
    parts: Option<&[Hash]>,
    numbers: &HashMap<Hash, i64>,
) -> rusqlite::Result<()> {
    database
        .prepare_cached("INSERT INTO blob VALUES (?, ?, ?, ?)")?
        .execute(params![id, hash, size as i64, parts.is_some()])?;
    for (index, part) in parts.unwrap_or_default().iter().enumerate() {
        database
            .prepare_cached("INSERT INTO blob_part VALUES (?, ?, ?)")?
            .execute(params![id, index as i64, numbers.get(part)])?;
    }
    Ok(())
}

//! Sums of all device work, which only databases of light recordings have.

use std::collections::HashMap;

use rpd_core::domain::Kind;
use rpd_core::ids::{KernelId, Nanoseconds};
use rpd_core::session::{DeviceTotal, TotalOf};
use rpd_core::spool::durations::TOTAL_BUCKETS;
use rusqlite::Result;
use rusqlite::types::ValueRef;

use super::super::device_totals::TOTAL;
use super::info::Info;
use super::scan::{Source, bits, integer, word};

/// Reads the sums into `info.session`.
pub(super) fn read(source: &Source<'_>, info: &mut Info) -> Result<()> {
    if !source.has(TOTAL)? {
        return Ok(());
    }
    let mut places: HashMap<i64, usize> = HashMap::new();
    let columns = "id, kernel_id, operation_id, count, total, min, max, spread, bytes, first, last";
    source.each(columns, TOTAL, |row| {
        // The column that is not NULL tells the subject of the row; `bits` reads NULL as 0.
        let has = |column| {
            row.get_ref(column)
                .is_ok_and(|value| value != ValueRef::Null)
        };
        let of = match (has(1), has(2)) {
            (true, _) => TotalOf::Kernel(KernelId(bits(row, 1))),
            (false, true) => {
                let name = info.string(word(row, 2));
                TotalOf::Copy(info.session.add_named_operation(Kind::MemoryCopy, name))
            }
            (false, false) => TotalOf::OtherKernels,
        };
        // A damaged database may have counts of 0 and minima above maxima, which sums do not expect.
        let (min, max) = (bits(row, 5), bits(row, 6));
        let totals = &mut info.session.device_totals;
        places.insert(integer(row, 0), totals.len());
        totals.push(DeviceTotal {
            of,
            count: bits(row, 3).max(1),
            total: bits(row, 4),
            min: min.min(max),
            max,
            spread: row.get::<_, f64>(7).unwrap_or(0.0).max(0.0),
            bytes: bits(row, 8),
            first: Nanoseconds(bits(row, 9)),
            last: Nanoseconds(bits(row, 10)),
            durations: vec![0; TOTAL_BUCKETS],
        });
        Ok(())
    })?;
    source.each("total_id, bucket, count", "rpd_device_duration", |row| {
        let place = places.get(&integer(row, 0));
        let total = place.and_then(|place| info.session.device_totals.get_mut(*place));
        let bucket = usize::try_from(bits(row, 1)).unwrap_or(usize::MAX);
        if let Some(count) = total.and_then(|total| total.durations.get_mut(bucket)) {
            *count = bits(row, 2);
        }
        Ok(())
    })
}

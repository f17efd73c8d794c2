//! The page as one file, with the tiles in it as text.

use std::io::{self, Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::page;
use crate::pyramid::{Error, Key, Part, Pyramid, deflate, keep, lengths};

/// Records that a file has at most, one by one.
pub const MOST_RECORDS: u64 = 2_000_000;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exported {
    /// Records of the recording.
    pub records: u64,
    /// Length in ns of the shortest record that is in the file one by one; `None` when all are.
    pub least: Option<u64>,
}

/// Writes the page with the tiles of a pyramid. Of more than `most` records the longest are in it one by one, and bins of all.
/// `command` opens a view of all of them.
///
/// # Errors
/// The pyramid cannot be read, which is the inner error, or the page cannot be written.
pub fn export(
    pyramid: &Pyramid,
    most: u64,
    command: &str,
    out: &mut dyn Write,
) -> io::Result<Result<Exported, Error>> {
    let read = (|| {
        let records = pyramid.meta()?["records"].as_u64().unwrap_or(0);
        let least = if records > most {
            Some(shortest(pyramid, most)?)
        } else {
            None
        };
        Ok(Exported { records, least })
    })();
    let exported = match read {
        Ok(exported) => exported,
        Err(error) => return Ok(Err(error)),
    };
    let (before, behind) = page::file();
    out.write_all(before.as_bytes())?;
    let about = json!({ "least": exported.least, "command": command }).to_string();
    let about = about.replace('<', "\\u003c");
    writeln!(
        out,
        "<script type=\"application/json\" id=\"about\">{about}</script>"
    )?;
    for key in pyramid.keys() {
        let tile = match kept(pyramid, key, exported.least) {
            Ok(Some(tile)) => tile,
            Ok(None) => continue,
            Err(error) => return Ok(Err(error)),
        };
        let Key {
            part,
            track,
            level,
            number,
        } = key;
        let part = part as u8;
        write!(
            out,
            "<script type=\"text/plain\" id=\"t/{part}/{track}/{level}/{number}\">"
        )?;
        out.write_all(STANDARD.encode(tile).as_bytes())?;
        out.write_all(b"</script>\n")?;
    }
    out.write_all(behind.as_bytes())?;
    Ok(Ok(exported))
}

/// A tile as the file has it; `None` where nothing of it is kept.
fn kept(pyramid: &Pyramid, key: Key, least: Option<u64>) -> Result<Option<Vec<u8>>, Error> {
    let Some(least) = least else {
        return pyramid.stored(key);
    };
    let tile = |part| pyramid.tile(Key { part, ..key });
    match key.part {
        Part::Records => {
            let records = tile(Part::Records)?.unwrap_or_default();
            let (records, _) = keep(&records, None, least);
            // A tile without records is one byte.
            Ok((records.len() > 1).then(|| deflate(&records)))
        }
        Part::Details => {
            let records = tile(Part::Records)?.unwrap_or_default();
            let details = tile(Part::Details)?;
            let (records, details) = keep(&records, details.as_deref(), least);
            let details = details.filter(|_| records.len() > 1);
            Ok(details.map(|details| deflate(&details)))
        }
        Part::Meta | Part::Names | Part::Index | Part::Bins => pyramid.stored(key),
    }
}

/// Bits of a length by which lengths are told apart.
const DIGITS: u32 = 8;

/// The number of a length among all, of which those that are nearly equal share one.
fn class(length: u64) -> usize {
    let bits = u64::BITS - length.leading_zeros();
    let shift = bits.saturating_sub(DIGITS + 1);
    ((shift << DIGITS) as usize) + (length >> shift) as usize
}

/// A length that at most so many records reach.
fn shortest(pyramid: &Pyramid, most: u64) -> Result<u64, Error> {
    // By class: records, and the least length.
    let mut classes = vec![(0_u64, u64::MAX); class(u64::MAX) + 1];
    for key in pyramid.keys().filter(|key| key.part == Part::Records) {
        for length in lengths(&pyramid.tile(key)?.unwrap_or_default()) {
            let (count, least) = &mut classes[class(length)];
            *count += 1;
            *least = length.min(*least);
        }
    }
    let mut kept = 0;
    let mut shortest = u64::MAX;
    for (count, least) in classes.into_iter().rev().filter(|class| class.0 > 0) {
        kept += count;
        if kept > most {
            break;
        }
        shortest = least;
    }
    Ok(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_lengths_are_in_their_order() {
        let mut lengths = vec![0, 1, 2, 255, 256, 257, 511, 512, 513, 1 << 40, u64::MAX];
        lengths.extend((0..60).map(|bit| 3 << bit));
        lengths.sort_unstable();
        let classes: Vec<usize> = lengths.iter().map(|length| class(*length)).collect();
        assert!(classes.is_sorted(), "{classes:?}");
    }
}

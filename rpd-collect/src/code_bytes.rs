//! Bytes of loaded code objects: in memory, or in a file that the URI names.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Larger sizes are taken as damage.
const LARGEST: u64 = 4 << 30;

/// Calls `take` with the bytes: those at `base`, unless it is 0, or those of the file that `uri` names.
///
/// # Errors
/// When they cannot be read; the reason.
///
/// # Safety
///
/// `base` is 0 or the address of `size` bytes.
pub(crate) unsafe fn with_bytes<T>(
    base: u64,
    size: u64,
    uri: &[u8],
    take: impl FnOnce(&[u8]) -> T,
) -> Result<T, String> {
    if base != 0 {
        if size == 0 || size > LARGEST {
            return Err(format!("its size is given as {size}"));
        }
        let start = std::ptr::with_exposed_provenance::<u8>(base as usize);
        // SAFETY: as this function demands.
        let bytes = unsafe { std::slice::from_raw_parts(start, size as usize) };
        return Ok(take(bytes));
    }
    let place = FilePart::from_uri(uri).ok_or("its URI names no file")?;
    let file = File::open(&place.path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let size = match place.size {
        Some(size) => size,
        None => length.saturating_sub(place.offset),
    };
    // The URI is the provider's. A range beyond the file would be cut short without a word.
    if size == 0
        || size > LARGEST
        || place
            .offset
            .checked_add(size)
            .is_none_or(|end| end > length)
    {
        return Err(format!("its file has {length} bytes only"));
    }
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, place.offset)
        .map_err(|error| error.to_string())?;
    Ok(take(&bytes))
}

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
struct FilePart {
    path: PathBuf,
    offset: u64,
    /// Number of bytes; `None` for all up to the end of the file.
    size: Option<u64>,
}

impl FilePart {
    /// `file://PATH#offset=N&size=N`, with escapes such as `%20` in the path.
    fn from_uri(uri: &[u8]) -> Option<FilePart> {
        let rest = uri.strip_prefix(b"file://")?;
        let split = rest.iter().rposition(|&byte| byte == b'#' || byte == b'?');
        let (path, range) = match split {
            Some(at) => (&rest[..at], &rest[at + 1..]),
            None => (rest, &b""[..]),
        };
        let mut place = FilePart {
            path: PathBuf::from(OsString::from_vec(unescaped(path))),
            offset: 0,
            size: None,
        };
        for part in range
            .split(|&byte| byte == b'&')
            .filter(|part| !part.is_empty())
        {
            let (key, value) = str::from_utf8(part).ok()?.split_once('=')?;
            let value = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok()?,
                None => value.parse().ok()?,
            };
            match key {
                "offset" => place.offset = value,
                "size" => place.size = Some(value),
                _ => return None,
            }
        }
        Some(place)
    }
}

fn unescaped(path: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind
            .get(..2)
            .and_then(|digits| str::from_utf8(digits).ok());
        let escape = digits
            .filter(|_| byte == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(escape.unwrap_or(byte));
        rest = match escape {
            Some(_) => &behind[2..],
            None => behind,
        };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_part_is_read_from_uris() {
        let place = |path: &str, offset, size| {
            Some(FilePart {
                path: path.into(),
                offset,
                size,
            })
        };
        for (uri, expected) in [
            ("file:///a/b", place("/a/b", 0, None)),
            (
                "file:///a%20b%25#offset=8192&size=16",
                place("/a b%", 8192, Some(16)),
            ),
            (
                "file:///a#b#offset=0x10&size=0x20",
                place("/a#b", 16, Some(32)),
            ),
            ("file:///a?offset=1", place("/a", 1, None)),
            ("file:///a%2", place("/a%2", 0, None)),
            ("file:///a#offset=x", None),
            ("memory://7#offset=1&size=2", None),
        ] {
            assert_eq!(FilePart::from_uri(uri.as_bytes()), expected, "{uri}");
        }
    }

    /// Checks thread-trace-54.
    #[test]
    fn the_bytes_of_a_file_and_of_memory_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("code object");
        std::fs::write(&path, b"0123456789").expect("written");
        let read = |base: u64, size: u64, range: &str| {
            let uri = format!("file://{}{range}", path.display());
            // SAFETY: 0, or an array of that many bytes.
            unsafe { with_bytes(base, size, uri.as_bytes(), <[u8]>::to_vec) }
        };
        assert_eq!(read(0, 0, "#offset=2&size=3"), Ok(b"234".to_vec()));
        assert_eq!(read(0, 0, "#offset=8"), Ok(b"89".to_vec()));
        assert_eq!(
            read(0, 0, "#offset=8&size=3"),
            Err("its file has 10 bytes only".to_owned())
        );
        let memory = [1_u8, 2, 3];
        assert_eq!(read(memory.as_ptr() as u64, 3, ""), Ok(vec![1, 2, 3]));
        assert_eq!(
            read(memory.as_ptr() as u64, 0, ""),
            Err("its size is given as 0".to_owned())
        );
    }
}

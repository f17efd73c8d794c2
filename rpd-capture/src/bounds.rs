//! Bounds of the numbers in a capture. They are checked where calls and memory are read, so that arithmetic on them needs no checks.

use rpd_spool::capture::{DataHeader, data_use};

use crate::Call;

/// Addresses of processes are below this.
const ADDRESSES: u64 = 1 << 57;

/// Checks that a range of addresses can be memory of a process; the reason if it cannot.
pub(crate) fn range(base: u64, size: u64) -> Result<(), String> {
    let end = base.checked_add(size);
    if end.is_some_and(|end| end <= ADDRESSES) {
        Ok(())
    } else {
        Err(format!("{size} bytes at {base:#x} cannot be memory"))
    }
}

/// Bytes from the first to after the last that data lie in; `None` when there cannot be as many.
pub fn span(data: &DataHeader) -> Option<u64> {
    if data.width == 0 || data.size == 0 {
        return Some(data.size);
    }
    let slice = data.width.checked_mul(data.rows)?;
    // Rows of a slice that is not whole would lie behind the last one.
    if !data.size.is_multiple_of(slice) {
        return None;
    }
    let slices = data.size / slice;
    let rows = (slices - 1)
        .checked_mul(data.slice_rows)?
        .checked_add(data.rows)?;
    (rows - 1)
        .checked_mul(data.pitch)?
        .checked_add(data.width)
        .filter(|span| *span <= ADDRESSES)
}

/// Checks the numbers of a call; the reason if they are impossible.
pub(crate) fn call(call: &Call) -> Result<(), String> {
    let context = |reason: String| format!("call {}: {reason}", call.seq);
    if let Some(made) = call.allocation() {
        range(made.base, made.size).map_err(context)?;
    }
    for data in call.data() {
        let is_array = matches!(data.purpose, data_use::ARRAY | data_use::ARRAY_RESULT);
        // Arrays have a handle in the place of an address.
        let base = if is_array { 0 } else { data.address };
        let span = span(&data)
            .ok_or_else(|| context(format!("{} bytes of data cannot be in memory", data.size)))?;
        range(base, span.max(data.size)).map_err(context)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use zerocopy::FromZeros as _;

    use super::*;

    #[test]
    fn range_refuses_numbers_that_no_memory_has() {
        assert!(range(0x7f00_0000_0000, 1 << 40).is_ok());
        for (base, size) in [(0, 1 << 62), (u64::MAX, 2), (1 << 57, 1)] {
            assert!(range(base, size).is_err(), "{base:#x} {size}");
        }
        let mut data = DataHeader::new_zeroed();
        (
            data.size,
            data.width,
            data.rows,
            data.slice_rows,
            data.pitch,
        ) = (64, 8, 4, 4, 16);
        assert_eq!(span(&data), Some(7 * 16 + 8));
        data.size = 72;
        assert_eq!(span(&data), None);
        (data.size, data.pitch) = (64, 1 << 62);
        assert_eq!(span(&data), None);
        (data.pitch, data.rows) = (16, 0);
        assert_eq!(span(&data), None);
        data.rows = 4;
        (data.pitch, data.width) = (16, 1 << 62);
        assert_eq!(span(&data), None);
    }
}

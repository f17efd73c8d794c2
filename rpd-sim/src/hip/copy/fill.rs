//! Memset: rows of a repeated pattern, by a kernel on the stream.

use crate::hip::error::{HipResult, code};
use crate::hip::memory;
use crate::hip::stream::Stream;

/// A fill of rows with a repeated element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FillOp {
    pub(crate) dst: usize,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
    /// Bytes of a row.
    pub(crate) width: usize,
    pub(crate) rows: usize,
    pub(crate) value: u32,
    /// Bytes of the element: 1, 2 or 4.
    pub(crate) element: usize,
}

impl FillOp {
    pub(crate) fn linear(dst: usize, width: usize, value: u32, element: usize) -> Self {
        Self {
            dst,
            pitch: width,
            width,
            rows: 1,
            value,
            element,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0 || self.rows == 0
    }

    /// The pattern as a word at an address divisible by four, for rows that begin at address `first`.
    pub(crate) fn word(&self, first: usize) -> u32 {
        let word = match self.element {
            1 => (self.value & 0xff) * 0x0101_0101,
            2 => (self.value & 0xffff) * 0x0001_0001,
            _ => self.value,
        };
        word.rotate_left(8 * (first as u32 & 3))
    }
}

/// Checks a fill without carrying it out.
pub(crate) fn check(op: &FillOp) -> HipResult {
    if op.is_empty() {
        return Ok(());
    }
    if op.rows > 1 && op.width > op.pitch {
        return Err(code::INVALID_PITCH_VALUE);
    }
    if !op.dst.is_multiple_of(op.element) {
        return Err(code::INVALID_VALUE);
    }
    let place = memory::find(op.dst)?.ok_or(code::INVALID_VALUE)?;
    let span = op
        .pitch
        .checked_mul(op.rows - 1)
        .and_then(|n| n.checked_add(op.width));
    match span {
        Some(span) if place.holds(op.dst, span) => Ok(()),
        _ => Err(code::INVALID_VALUE),
    }
}

/// Carries a checked fill out on a stream.
pub(crate) fn run(stream: &Stream, op: &FillOp) -> HipResult {
    if op.is_empty() {
        return Ok(());
    }
    let place = memory::find(op.dst)?.ok_or(code::INVALID_VALUE)?;
    let mut seen = FillOp {
        dst: place.address,
        ..*op
    };
    if seen.rows > 1 && seen.pitch == seen.width {
        seen = FillOp {
            width: seen.width * seen.rows,
            rows: 1,
            ..seen
        };
    }
    let mut step = stream.step()?;
    step.blit()?.fill(&mut step, &seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fill_pattern_is_rotated_by_the_address() {
        let at = |dst, value, element| FillOp::linear(dst, 8, value, element).word(dst);
        assert_eq!(at(1, 0xab, 1), 0xabab_abab);
        assert_eq!(at(2, 0x1234, 2), 0x1234_1234);
        assert_eq!(at(0, 0x0403_0201, 4), 0x0403_0201);
        // Bytes 01 02 03 04 from address 1 on: the word at 4 holds 04 01 02 03.
        assert_eq!(FillOp::linear(1, 8, 0x0403_0201, 4).word(1), 0x0302_0104);
    }
}

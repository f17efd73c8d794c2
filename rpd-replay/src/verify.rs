//! Compares what a replay computed with what was captured.

use rpd_capture::{Capture, pack};
use rpd_spool::capture::DataHeader;
use serde::Serialize;

use crate::error::ReplayError;

/// How results are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verify {
    /// Byte by byte.
    Exact,
    /// As 32-bit floating-point numbers: largest absolute and relative error.
    Tolerance(f64, f64),
    /// Not at all.
    Off,
}

/// A result that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mismatch {
    /// The call that copied it.
    pub copy: u64,
    /// The call after which it was compared.
    pub seq: u64,
    /// Address in the capture.
    pub address: u64,
    /// Number of compared bytes.
    pub size: u64,
    /// The first byte that differs, and how many 32-bit elements differ; only where the content was captured.
    pub first: Option<(u64, u64)>,
    /// Largest absolute and relative error, taken as 32-bit floating-point numbers.
    pub error: Option<(f64, f64)>,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "call {}: {} bytes at {:#x} differ from the capture",
            self.copy, self.size, self.address
        )?;
        if let Some((offset, elements)) = self.first {
            write!(
                f,
                ", first at byte {offset}, {elements} 32-bit elements in all"
            )?;
        }
        if let Some((absolute, relative)) = self.error {
            write!(
                f,
                ", as floats by at most {absolute:.3e} absolute and {relative:.3e} relative"
            )?;
        }
        Ok(())
    }
}

/// Compares the bytes of a result; `None` when they are equal or close enough.
pub(crate) fn compare(
    capture: &mut Capture,
    verify: Verify,
    seq: u64,
    data: &DataHeader,
    bytes: &[u8],
) -> Result<Option<Mismatch>, ReplayError> {
    let known = capture.data(data.offset as i64)?;
    if verify == Verify::Off || pack::hash_bytes(bytes) == known.hash {
        return Ok(None);
    }
    let mut mismatch = Mismatch {
        copy: if data.copy == 0 { seq } else { data.copy },
        seq,
        address: data.address,
        size: data.size,
        first: None,
        error: None,
    };
    if !known.kept {
        if matches!(verify, Verify::Tolerance(..)) {
            return Err(ReplayError::failed(
                "--verify tol needs the results themselves: capture with --outputs full",
            ));
        }
        return Ok(Some(mismatch));
    }
    let expected = capture.bytes(data.offset as i64)?;
    let first = expected.iter().zip(bytes).position(|(a, b)| a != b);
    let (left, right) = (expected.as_chunks::<4>().0, bytes.as_chunks::<4>().0);
    let different = left.iter().zip(right).filter(|(a, b)| a != b).count();
    mismatch.first = Some((first.unwrap_or(0) as u64, different as u64));
    let (mut absolute, mut relative, mut close) = (0f64, 0f64, true);
    for (a, b) in left.iter().zip(right).filter(|(a, b)| a != b) {
        let (a, b) = (
            f64::from(f32::from_le_bytes(*a)),
            f64::from(f32::from_le_bytes(*b)),
        );
        let error = (a - b).abs();
        let share = error / a.abs().max(f64::MIN_POSITIVE);
        if let Verify::Tolerance(most, most_relative) = verify {
            close &= error <= most || share <= most_relative;
        }
        if error.is_finite() {
            absolute = absolute.max(error);
            relative = relative.max(share);
        }
    }
    mismatch.error = Some((absolute, relative));
    let tolerated = matches!(verify, Verify::Tolerance(..)) && close;
    Ok((!tolerated).then_some(mismatch))
}

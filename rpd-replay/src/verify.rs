//! Comparison of the results of a replay with those of the capture.

use rpd_capture::{Capture, pack};
use rpd_spool::capture::DataHeader;
use serde::Serialize;

use crate::error::ReplayError;

/// Way of comparing results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verify {
    /// Results are compared byte by byte.
    Exact,
    /// Results are compared as 32-bit floating-point numbers: largest absolute and relative error.
    Tolerance(f64, f64),
    /// Byte by byte; a result that differs from that of another replay ([`crate::Repeat`]) with a tolerance.
    Repeated(f64, f64),
    /// Results are not compared.
    Off,
}

/// A result that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mismatch {
    /// Number of the call that copied the result.
    pub copy: u64,
    /// Number of the call after which the result was compared.
    pub seq: u64,
    /// Address in the capture; 0 for a variable.
    pub address: u64,
    /// The device variable that is the result, if it is one.
    pub variable: Option<String>,
    /// Number of compared bytes.
    pub size: u64,
    /// The first byte that differs, and how many 32-bit elements differ; only where the content was captured.
    pub first: Option<(u64, u64)>,
    /// Largest absolute and relative error, taken as 32-bit floating-point numbers.
    pub error: Option<(f64, f64)>,
    /// Whether two replays have different results, too.
    pub varies: bool,
}

/// A result that differs from replay to replay, within the tolerance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Varying {
    /// Number of the call that copied the result.
    pub copy: u64,
    /// Address of the result in the capture; 0 for a variable.
    pub address: u64,
    /// The device variable that is the result, if it is one.
    pub variable: Option<String>,
    /// Size of the result in bytes.
    pub size: u64,
    /// Largest absolute and relative error, taken as 32-bit floating-point numbers.
    pub error: (f64, f64),
    /// The last launch before: number of its call, and its kernel.
    pub launch: Option<(u64, String)>,
}

/// Text for a result: its address or variable.
fn place(address: u64, variable: Option<&str>) -> String {
    match variable {
        Some(name) => format!("of the variable {name}"),
        None => format!("at {address:#x}"),
    }
}

impl std::fmt::Display for Varying {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (absolute, relative) = self.error;
        write!(
            f,
            "call {}: {} bytes {} differ from replay to replay, as floats by at most {absolute:.3e} absolute and {relative:.3e} relative",
            self.copy,
            self.size,
            place(self.address, self.variable.as_deref())
        )?;
        match &self.launch {
            Some((seq, name)) => write!(f, "; the last launch before is call {seq}, {name}"),
            None => Ok(()),
        }
    }
}

/// Result of a comparison.
pub(crate) enum Outcome {
    Equal,
    Varies(Varying),
    Differs(Mismatch),
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "call {}: {} bytes {} differ from the capture{}",
            self.copy,
            self.size,
            place(self.address, self.variable.as_deref()),
            if self.varies {
                " and from replay to replay"
            } else {
                ""
            }
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

/// Difference of two results of the same size.
struct Difference {
    /// The first byte that differs, and how many 32-bit elements differ.
    first: (u64, u64),
    /// Largest absolute and relative error, taken as 32-bit floating-point numbers.
    error: (f64, f64),
    /// Whether every element is within the tolerance.
    close: bool,
}

fn difference(expected: &[u8], bytes: &[u8], tolerance: (f64, f64)) -> Difference {
    let first = expected.iter().zip(bytes).position(|(a, b)| a != b);
    let (left, right) = (expected.as_chunks::<4>(), bytes.as_chunks::<4>());
    let differing = || left.0.iter().zip(right.0).filter(|(a, b)| a != b);
    let (mut absolute, mut relative, mut close) = (0f64, 0f64, left.1 == right.1);
    for (a, b) in differing() {
        let (a, b) = (
            f64::from(f32::from_le_bytes(*a)),
            f64::from(f32::from_le_bytes(*b)),
        );
        let error = (a - b).abs();
        let share = error / a.abs().max(f64::MIN_POSITIVE);
        close &= error <= tolerance.0 || share <= tolerance.1;
        if error.is_finite() {
            absolute = absolute.max(error);
            relative = relative.max(share);
        }
    }
    Difference {
        first: (first.unwrap_or(0) as u64, differing().count() as u64),
        error: (absolute, relative),
        close,
    }
}

/// Compares the bytes of a result with those of the capture, and with `other`, those of another replay.
pub(crate) fn compare(
    capture: &mut Capture,
    verify: Verify,
    seq: u64,
    data: &DataHeader,
    bytes: &[u8],
    other: Option<&[u8]>,
) -> Result<Outcome, ReplayError> {
    // Equal hashes are equal data, whose bytes need not be read.
    let known = capture.data(data.offset as i64)?;
    if verify == Verify::Off || pack::hash_bytes(bytes) == known.hash {
        return Ok(Outcome::Equal);
    }
    let copy = if data.copy == 0 { seq } else { data.copy };
    let varies = other.is_some_and(|other| other != bytes);
    let mut mismatch = Mismatch {
        copy,
        seq,
        address: data.address,
        variable: None,
        size: data.size,
        first: None,
        error: None,
        varies,
    };
    // With the hash alone nothing can be said but that the data differ, unless another replay has them.
    let expected = match (known.kept, other) {
        (true, _) => capture.data_bytes(data)?,
        (false, Some(other)) if varies => other.to_vec(),
        (false, _) if matches!(verify, Verify::Tolerance(..)) => {
            return Err(ReplayError::failed(
                "--verify tol needs the results themselves: capture with --outputs full",
            ));
        }
        (false, _) => return Ok(Outcome::Differs(mismatch)),
    };
    // A tolerance is only for results that chance decides; others have to be exact.
    let tolerance = match verify {
        Verify::Tolerance(absolute, relative) => Some((absolute, relative)),
        Verify::Repeated(absolute, relative) if varies => Some((absolute, relative)),
        Verify::Repeated(..) | Verify::Exact | Verify::Off => None,
    };
    let found = difference(&expected, bytes, tolerance.unwrap_or_default());
    if tolerance.is_none() || !found.close {
        mismatch.first = Some(found.first);
        mismatch.error = Some(found.error);
        return Ok(Outcome::Differs(mismatch));
    }
    if !varies {
        return Ok(Outcome::Equal);
    }
    Ok(Outcome::Varies(Varying {
        copy,
        address: data.address,
        variable: None,
        size: data.size,
        error: found.error,
        launch: capture.launch_before(copy)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    #[test]
    fn difference_is_measured_as_floats() {
        let found = difference(
            &bytes(&[1.0, 2.0, 100.0]),
            &bytes(&[1.0, 2.5, 101.0]),
            (0.6, 0.01),
        );
        assert_eq!(found.first, (6, 2));
        assert_eq!(found.error, (1.0, 0.25));
        assert!(found.close);
        let strict = difference(&bytes(&[100.0]), &bytes(&[102.0]), (1.0, 0.01));
        assert!(!strict.close);
    }

    #[test]
    fn difference_with_nan_is_never_within_the_tolerance() {
        let found = difference(&bytes(&[1.0]), &bytes(&[f32::NAN]), (1e9, 1e9));
        assert!(!found.close);
        // Bytes after the last whole element have to be equal.
        let found = difference(&[0, 0, 0, 0, 1], &[0, 0, 0, 0, 2], (1e9, 1e9));
        assert!(!found.close);
        assert_eq!(found.first, (4, 0));
    }
}

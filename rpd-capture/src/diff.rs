//! Compares two captures of a program.

use std::collections::HashMap;

use rpd_spool::capture::{data_use, item};

use crate::pack::Hash;
use crate::{Call, Capture, CaptureError};

/// First difference of two captures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The call in the first and in the second capture.
    pub calls: (u64, u64),
    /// Description of the difference.
    pub text: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (left, right) = self.calls;
        match left == right {
            true => write!(f, "call {left}: {}", self.text),
            false => write!(
                f,
                "call {left} of the first, {right} of the second: {}",
                self.text
            ),
        }
    }
}

/// A call as far as it can be compared: addresses and handles differ from run to run.
struct Shape {
    seq: u64,
    api: u32,
    text: String,
    /// Hashes of what the call reads and of what was written, with the copies that wrote it.
    reads: Vec<Hash>,
    writes: Vec<(u64, Hash)>,
    kernel: Option<(Vec<u8>, Vec<u8>)>,
}

fn shape(capture: &Capture, call: &Call) -> Result<Shape, CaptureError> {
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for data in call.data() {
        if data.offset == 0 {
            continue;
        }
        let hash = capture.data(data.offset as i64)?.hash;
        match data.purpose {
            data_use::OUTPUT => {
                let copy = if data.copy == 0 { call.seq } else { data.copy };
                writes.push((copy, hash));
            }
            _ => reads.push(hash),
        }
    }
    let kernel = call
        .items()
        .find(|item| item.kind == item::KERNEL)
        .map(|item| {
            let name = item.payload.get(8..).unwrap_or_default().to_vec();
            let code = item.payload.get(..8).unwrap_or_default().to_vec();
            (name, code)
        });
    Ok(Shape {
        seq: call.seq,
        api: call.api,
        text: call
            .operation()
            .map_or(String::new(), |found| found.name().to_owned()),
        reads,
        writes,
        kernel,
    })
}

/// The calls of each thread, threads in the order of their first call.
fn threads(capture: &Capture) -> Result<Vec<Vec<Shape>>, CaptureError> {
    let mut order: HashMap<u32, usize> = HashMap::new();
    let mut all: Vec<Vec<Shape>> = Vec::new();
    capture.calls(1, u64::MAX, |call| -> Result<bool, CaptureError> {
        let index = *order.entry(call.tid).or_insert_with(|| {
            all.push(Vec::new());
            all.len() - 1
        });
        all[index].push(shape(capture, &call)?);
        Ok(true)
    })?;
    Ok(all)
}

/// The first call at which two captures differ: in what is called, in the data that are read, or in the results, which
/// are named with the last launch before they were copied.
///
/// # Errors
/// When one of them cannot be read.
pub fn diff(left: &Capture, right: &Capture) -> Result<Option<Difference>, CaptureError> {
    let mut first: Option<Difference> = None;
    let mut keep = |found: Difference| {
        if first
            .as_ref()
            .is_none_or(|first| found.calls.0 < first.calls.0)
        {
            first = Some(found);
        }
    };
    let (lefts, rights) = (threads(left)?, threads(right)?);
    for (one, other) in lefts.iter().zip(&rights) {
        let mut launch: Option<(u64, u64, String)> = None;
        let mut launches: Vec<(u64, String)> = Vec::new();
        let mut found = None;
        for (a, b) in one.iter().zip(other) {
            let calls = (a.seq, b.seq);
            let text = if a.api != b.api {
                Some(format!("{} in the first, {} in the second", a.text, b.text))
            } else if a.kernel.as_ref().map(|(name, _)| name)
                != b.kernel.as_ref().map(|(name, _)| name)
            {
                let name = |shape: &Shape| {
                    let name = shape.kernel.as_ref().map(|(name, _)| name.clone());
                    String::from_utf8_lossy(&name.unwrap_or_default()).into_owned()
                };
                Some(format!(
                    "launches {} in the first, {} in the second",
                    name(a),
                    name(b)
                ))
            } else if a.reads != b.reads {
                Some(format!("{} reads other data", a.text))
            } else {
                None
            };
            if let Some((name, _)) = &a.kernel {
                let name = String::from_utf8_lossy(name).into_owned();
                launches.push((a.seq, name.clone()));
                launch = Some((a.seq, b.seq, name));
            }
            if let Some(text) = text {
                found = Some(Difference { calls, text });
                break;
            }
            let differs = a.writes.iter().zip(&b.writes).find(|(x, y)| x.1 != y.1);
            if let Some(((copy, _), _)) = differs {
                let before = launches.iter().rev().find(|(seq, _)| seq < copy);
                let after = match (before, &launch) {
                    (Some((seq, name)), _) => {
                        format!("; the last launch before it is call {seq}, {name}")
                    }
                    (None, _) => String::new(),
                };
                found = Some(Difference {
                    calls,
                    text: format!("the result of call {copy} differs{after}"),
                });
                break;
            }
        }
        if found.is_none() && one.len() != other.len() {
            let at = one.len().min(other.len());
            let seq = |shapes: &[Shape]| shapes.get(at).map_or(0, |shape| shape.seq);
            found = Some(Difference {
                calls: (seq(one), seq(other)),
                text: format!(
                    "a thread makes {} calls in the first, {} in the second",
                    one.len(),
                    other.len()
                ),
            });
        }
        if let Some(found) = found {
            keep(found);
        }
    }
    if first.is_none() && lefts.len() != rights.len() {
        return Ok(Some(Difference {
            calls: (0, 0),
            text: format!(
                "{} threads in the first, {} in the second",
                lefts.len(),
                rights.len()
            ),
        }));
    }
    Ok(first)
}

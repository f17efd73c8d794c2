//! Compares two captures of a program.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use rpd_spool::capture::{data_use, item};

use crate::pack::Hash;
use crate::{Capture, CaptureError};

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
        if left == right {
            write!(f, "call {left}: {}", self.text)
        } else {
            write!(
                f,
                "call {left} of the first, {right} of the second: {}",
                self.text
            )
        }
    }
}

/// A call as far as it can be compared: addresses and handles differ from run to run.
#[derive(Default)]
struct Shape {
    seq: u64,
    api: u32,
    text: &'static str,
    /// Hashes of the data that the call reads, and of the data that the work it adds wrote.
    reads: Vec<Hash>,
    writes: Vec<Hash>,
    /// Content of memory that launches may read. With several threads it depends on chance which of them is the first that finds it
    /// changed.
    updates: Vec<Hash>,
    kernel: Option<Vec<u8>>,
}

impl Shape {
    /// Whether two calls are the same as far as that does not depend on data.
    fn is_like(&self, other: &Shape) -> bool {
        self.api == other.api && self.kernel == other.kernel
    }

    fn kernel_name(&self) -> String {
        String::from_utf8_lossy(self.kernel.as_deref().unwrap_or_default()).into_owned()
    }
}

/// The calls of each thread, threads in the order of their first call.
fn threads(capture: &Capture) -> Result<Vec<Vec<Shape>>, CaptureError> {
    let mut order: HashMap<u32, usize> = HashMap::new();
    let mut all: Vec<Vec<Shape>> = Vec::new();
    // Where each call is, for results: another thread may be the one that waits for them.
    let mut places: HashMap<u64, (usize, usize)> = HashMap::new();
    let mut results: Vec<(u64, Hash)> = Vec::new();
    capture.calls(1, u64::MAX, |call| -> Result<bool, CaptureError> {
        let index = *order.entry(call.tid).or_insert_with(|| {
            all.push(Vec::new());
            all.len() - 1
        });
        let mut shape = Shape {
            seq: call.seq,
            api: call.api,
            text: call.operation().map_or("", |found| found.name()),
            ..Shape::default()
        };
        for data in call.data().filter(|data| data.offset != 0) {
            let hash = capture.data(data.offset as i64)?.hash;
            // A result belongs to the call that made the copy, which may be one that was seen before.
            match data.purpose {
                data_use::OUTPUT => {
                    let copy = if data.copy == 0 { call.seq } else { data.copy };
                    results.push((copy, hash));
                }
                data_use::UPDATE => shape.updates.push(hash),
                _ => shape.reads.push(hash),
            }
        }
        let kernel = call.items().find(|item| item.kind == item::KERNEL);
        shape.kernel = kernel.map(|item| item.payload.get(8..).unwrap_or_default().to_vec());
        places.insert(call.seq, (index, all[index].len()));
        all[index].push(shape);
        Ok(true)
    })?;
    // Assigned afterwards, because the waiting thread's calls may come before those of the copying one.
    for (copy, hash) in results {
        if let Some((thread, call)) = places.get(&copy) {
            all[*thread][*call].writes.push(hash);
        }
    }
    Ok(all)
}

/// Likeness of two threads: the number of calls that are the same from the first on, and of those among them that have
/// the same data and results.
fn likeness(one: &[Shape], other: &[Shape]) -> (usize, usize) {
    let same = one.iter().zip(other).take_while(|(a, b)| a.is_like(b));
    same.fold((0, 0), |(calls, data), (a, b)| {
        let is_equal = a.reads == b.reads && a.writes == b.writes;
        (calls + 1, data + usize::from(is_equal))
    })
}

/// Pairs of threads, the most alike first: in which order threads begin is chance.
fn pairs(lefts: &[Vec<Shape>], rights: &[Vec<Shape>]) -> Vec<(usize, usize)> {
    let mut all: Vec<((usize, usize), bool, usize, usize)> = Vec::new();
    for (left, one) in lefts.iter().enumerate() {
        for (right, other) in rights.iter().enumerate() {
            all.push((likeness(one, other), one.len() == other.len(), left, right));
        }
    }
    // With equal likeness in the order of their first calls.
    all.sort_by_key(|(likeness, same_length, left, right)| {
        (Reverse(*likeness), Reverse(*same_length), *left, *right)
    });
    let (mut used_left, mut used_right) = (HashSet::new(), HashSet::new());
    let mut pairs = Vec::new();
    for (_, _, left, right) in all {
        if !used_left.contains(&left) && !used_right.contains(&right) {
            used_left.insert(left);
            used_right.insert(right);
            pairs.push((left, right));
        }
    }
    pairs
}

/// The first difference of two threads.
fn difference(one: &[Shape], other: &[Shape], alone: bool) -> Option<Difference> {
    let mut launch: Option<&Shape> = None;
    // In the order in which one thing leads to another: a different call makes different data, not the other way round.
    for (a, b) in one.iter().zip(other) {
        let text = if a.api != b.api {
            Some(format!("{} in the first, {} in the second", a.text, b.text))
        } else if a.kernel != b.kernel {
            Some(format!(
                "launches {} in the first, {} in the second",
                a.kernel_name(),
                b.kernel_name()
            ))
        } else if a.reads != b.reads || alone && a.updates != b.updates {
            Some(format!("{} reads other data", a.text))
        } else if a.writes.iter().zip(&b.writes).any(|(x, y)| x != y) {
            // The launch before is what the result most likely depends on; a launch that has results needs no hint.
            let launch = launch.filter(|_| a.kernel.is_none());
            let after = launch.map_or(String::new(), |launch| {
                format!(
                    "; the last launch before it is call {}, {}",
                    launch.seq,
                    launch.kernel_name()
                )
            });
            Some(format!("the result of call {} differs{after}", a.seq))
        } else {
            None
        };
        if let Some(text) = text {
            let calls = (a.seq, b.seq);
            return Some(Difference { calls, text });
        }
        if a.kernel.is_some() {
            launch = Some(a);
        }
    }
    if one.len() == other.len() {
        return None;
    }
    let at = one.len().min(other.len());
    let seq = |shapes: &[Shape]| shapes.get(at).map_or(0, |shape| shape.seq);
    Some(Difference {
        calls: (seq(one), seq(other)),
        text: format!(
            "a thread makes {} calls in the first, {} in the second",
            one.len(),
            other.len()
        ),
    })
}

/// The first call at which two captures differ: in what is called, in the data that are read, or in the results, which
/// are named with the last launch before they were copied.
///
/// # Errors
/// When one of them cannot be read.
pub fn diff(left: &Capture, right: &Capture) -> Result<Option<Difference>, CaptureError> {
    let (lefts, rights) = (threads(left)?, threads(right)?);
    let alone = lefts.len() == 1 && rights.len() == 1;
    let found = pairs(&lefts, &rights)
        .into_iter()
        .filter_map(|(one, other)| difference(&lefts[one], &rights[other], alone));
    let first = found.min_by_key(|found| found.calls);
    if first.is_some() || lefts.len() == rights.len() {
        return Ok(first);
    }
    Ok(Some(Difference {
        calls: (0, 0),
        text: format!(
            "{} threads in the first, {} in the second",
            lefts.len(),
            rights.len()
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(calls: &[(u32, u8)]) -> Vec<Shape> {
        let shape = |(seq, (api, data)): (usize, &(u32, u8))| Shape {
            seq: seq as u64 + 1,
            api: *api,
            reads: vec![[*data; 32]],
            ..Shape::default()
        };
        calls.iter().enumerate().map(shape).collect()
    }

    #[test]
    fn pairs_match_threads_by_their_calls() {
        let main = [(1, 0), (2, 0), (3, 9)];
        let (first, second) = ([(1, 0), (5, 1)], [(1, 0), (5, 2)]);
        let lefts = [thread(&main), thread(&first), thread(&second)];
        let rights = [thread(&second), thread(&main), thread(&first)];
        let mut found = pairs(&lefts, &rights);
        found.sort_unstable();
        assert_eq!(found, [(0, 1), (1, 2), (2, 0)]);
        for (left, right) in found {
            assert_eq!(difference(&lefts[left], &rights[right], false), None);
        }
    }

    #[test]
    fn pairs_match_a_changed_thread_with_the_most_similar_one() {
        let lefts = [thread(&[(1, 0), (2, 0)]), thread(&[(1, 0), (5, 1), (6, 1)])];
        let rights = [thread(&[(1, 0), (5, 1), (7, 1)]), thread(&[(1, 0), (2, 0)])];
        let found = pairs(&lefts, &rights);
        assert_eq!(found, [(0, 1), (1, 0)]);
        let found = difference(&lefts[1], &rights[0], false).expect("a difference");
        assert_eq!(found.calls, (3, 3));
    }
}

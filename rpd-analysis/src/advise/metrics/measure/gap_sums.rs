//! Sums over the gaps of a recording.

use std::collections::BTreeMap;

use super::{KernelKey, LATE_WAKING, PARTS, SHORT_SIMULATED, kernel_key};
use crate::advise::metrics::streams::Waits;
use crate::answer::Window;
use crate::classes::{Calls, Doing};
use crate::gaps;
use crate::records::{NONE, Records};

/// What gaps say, by GPU and by function.
#[derive(Default)]
pub(super) struct GapSums {
    pub(super) starved: BTreeMap<u32, (u64, u64, Vec<gaps::Gap>)>,
    pub(super) inner_copy: BTreeMap<u32, u64>,
    pub(super) after: BTreeMap<u32, u64>,
    pub(super) launching: u64,
    /// Host parts in calls that allocate, of the gaps whose longest call is one of these, and their launch parts.
    pub(super) allocating: u64,
    pub(super) loading: u64,
    pub(super) host_functions: u64,
    /// Host and launch parts of gaps that a graph ends.
    pub(super) before_graphs: u64,
    /// Time of gaps by the kernel that ends them.
    pub(super) before: BTreeMap<KernelKey, u64>,
    /// Of simulated GPUs: time in each part of the window in which the interpreter had not come to what was requested.
    pub(super) lulls: BTreeMap<u32, Vec<f64>>,
}

/// Gaps of the window, and what they say of functions. Gaps before the first launch of a kernel are left out: code is loaded in them.
pub(super) fn add_up(
    records: &dyn Records,
    window: &Window,
    waits: &Waits,
) -> (gaps::Gaps, GapSums) {
    let facts = records.facts();
    let doing = Calls::default().of_all(&facts.names);
    let mut of = GapSums::default();
    let mut seen: Vec<bool> = vec![false; facts.names.len()];
    for op in records.ops().take_while(|op| op.start <= window.start) {
        seen[op.name as usize] |= op.start < window.start;
    }
    let least = 1_000_000.max(window.length() / 200);
    let options = gaps::Options {
        window: Some((window.start, window.end)),
        limit: Some(0),
        ..gaps::Options::default()
    };
    let mut is_first = |name: u32| !std::mem::replace(&mut seen[name as usize], true);
    let found = gaps::find_each(records, &options, |gap| {
        let Some(op) = gap.opener else {
            return;
        };
        let parts = &gap.parts;
        if op.is_kernel && gap.closer != NONE {
            *of.inner_copy.entry(op.gpu).or_default() += parts.copy;
        }
        let is_simulated = facts.gpus[op.gpu as usize].is_simulated;
        let requested = parts.wait + parts.turnaround;
        if is_simulated {
            // Why an interpreter on a busy machine comes late is unknown where the calls are.
            let late_waking = parts.host[Doing::Sync as usize];
            let lull = requested + parts.graph + parts.unrecorded + late_waking;
            let lulls = of
                .lulls
                .entry(op.gpu)
                .or_insert_with(|| vec![0.0; PARTS as usize]);
            spread(lulls, window, (gap.start, gap.end), lull);
        }
        of.launching += parts.launch + parts.host[Doing::Launch as usize];
        if is_simulated && op.is_kernel && op.length() < SHORT_SIMULATED {
            of.launching += requested;
        }
        if op.is_kernel {
            *of.before.entry(kernel_key(&op)).or_default() += gap.length();
        }
        if op.launch.is_some_and(|launch| launch.is_graph) {
            of.before_graphs += parts.host_time() + parts.launch;
        }
        if waits
            .after_host_function
            .contains(&(op.process, op.is_kernel, op.id))
        {
            of.host_functions += requested;
        }
        let host = parts.host_time();
        let in_calls = host - parts.host[Doing::Program as usize];
        if let Some(call) = gap.call {
            let function = facts.name(call.name);
            let is_copy = function.contains("Memcpy") || function.contains("Memset");
            let after = in_calls + parts.launch;
            *of.after.entry(call.name).or_default() += if is_simulated && !is_copy {
                after.min(LATE_WAKING)
            } else {
                after
            };
            if doing.get(call.name as usize) == Some(&Doing::Alloc) {
                of.allocating += in_calls + parts.launch;
            }
        }
        let is_first = is_first(op.name);
        let late = if is_simulated {
            host - parts.host[Doing::Sync as usize]
        } else {
            host
        };
        if !is_first {
            of.loading += parts.host[Doing::Load as usize];
        }
        if gap.length() >= least && late * 2 >= gap.length() && !is_first {
            let starved = of.starved.entry(op.gpu).or_default();
            starved.0 += 1;
            starved.1 += gap.length();
            starved.2.push(*gap);
            if starved.2.len() > 64 {
                starved.2.sort_by_key(|gap| std::cmp::Reverse(gap.length()));
                starved.2.truncate(5);
            }
        }
    });
    (found, of)
}

/// Adds a time to the parts of the window that a gap lies in, evenly over its length.
fn spread(parts: &mut [f64], window: &Window, (start, end): (u64, u64), time: u64) {
    let length = window.length() as f64 / parts.len() as f64;
    if time == 0 || end <= start || length <= 0.0 {
        return;
    }
    let each = time as f64 / (end - start) as f64;
    let from = start.saturating_sub(window.start) as f64;
    let to = end.saturating_sub(window.start) as f64;
    let first = (from / length) as usize;
    for (number, part) in parts.iter_mut().enumerate().skip(first) {
        let begin = number as f64 * length;
        if begin >= to {
            break;
        }
        *part += each * (to.min(begin + length) - from.max(begin)).max(0.0);
    }
}

//! Causes of waits: the memory accesses that had not completed by the wait's counters.

use crate::listing::Listing;
use crate::record::Wave;

/// Counters of accesses that are under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counter {
    Vector,
    Scalar,
    VectorStore,
    Load,
    Store,
    Sample,
    Bvh,
    Lds,
    Constant,
    Export,
}

/// A counter's name in the operands or in the mnemonic of a wait.
const NAMES: [(Counter, &str); 10] = [
    (Counter::Vector, "vmcnt"),
    (Counter::Scalar, "lgkmcnt"),
    (Counter::VectorStore, "vscnt"),
    (Counter::Load, "loadcnt"),
    (Counter::Store, "storecnt"),
    (Counter::Sample, "samplecnt"),
    (Counter::Bvh, "bvhcnt"),
    (Counter::Lds, "dscnt"),
    (Counter::Constant, "kmcnt"),
    (Counter::Export, "expcnt"),
];

/// Accesses of one counter, oldest first.
#[derive(Debug, Default, Clone)]
struct Queue {
    lines: Vec<u32>,
    /// Some of them complete out of order: only a wait for all shows that one is complete.
    parallel: bool,
}

/// Effect of an instruction on wait counters.
enum Effect {
    Nothing,
    /// Adds an access to counters; this many times, in parallel with others or not.
    Access(&'static [Counter], usize, bool),
    /// Waits until at most this many are under way.
    Wait(Vec<(Counter, usize)>),
}

/// The number of a counter in a wait's text.
fn limit(text: &str, name: &str) -> Option<usize> {
    let behind = &text[text.find(name)? + name.len()..];
    let digits = behind.trim_start_matches(['(', ' ']);
    // `s_waitcnt_vscnt null, 0x0` has a register before the number.
    let digits = digits.strip_prefix("null, ").unwrap_or(digits);
    let end = digits
        .find(|c: char| !c.is_ascii_alphanumeric())
        .unwrap_or(digits.len());
    match digits[..end].strip_prefix("0x") {
        Some(hex) => usize::from_str_radix(hex, 16).ok(),
        None => digits[..end].parse().ok(),
    }
}

fn effect(text: &str, major: u32) -> Effect {
    let name = text.split(' ').next().unwrap_or_default();
    let begins = |start: &str| name.starts_with(start);
    if begins("s_wait_idle") {
        return Effect::Wait(NAMES.iter().map(|(counter, _)| (*counter, 0)).collect());
    }
    if begins("s_wait") && !begins("s_wait_alu") {
        let waits = NAMES
            .iter()
            .filter_map(|(counter, name)| Some((*counter, limit(text, name)?)));
        return Effect::Wait(waits.collect());
    }
    let store = name.contains("store") || begins("global_wb");
    let twelve = major >= 12;
    if begins("s_load") || begins("s_store") || begins("s_buffer_load") {
        let counter: &[Counter] = if twelve {
            &[Counter::Constant]
        } else {
            &[Counter::Scalar]
        };
        return Effect::Access(counter, 1, true);
    }
    if begins("s_sendmsg") {
        let counter: &[Counter] = if twelve {
            &[Counter::Constant]
        } else {
            &[Counter::Scalar]
        };
        let times = if begins("s_sendmsg_rtn") { 2 } else { 1 };
        return Effect::Access(counter, times, false);
    }
    if twelve && name.contains("_bvh") {
        return Effect::Access(&[Counter::Bvh], 1, false);
    }
    if twelve && begins("image_sample") {
        return Effect::Access(&[Counter::Sample], 1, false);
    }
    if begins("ds_") || begins("lds_") {
        let direct = name.contains("param_load") || name.contains("direct");
        return match (twelve, direct) {
            (true, true) => Effect::Access(&[Counter::Export], 1, false),
            (true, false) => Effect::Access(&[Counter::Lds], 1, false),
            (false, _) => Effect::Access(&[Counter::Scalar], 1, false),
        };
    }
    if begins("flat_") {
        return match (major, store) {
            (..=9, _) | (10 | 11, false) => {
                Effect::Access(&[Counter::Vector, Counter::Scalar], 1, true)
            }
            (10 | 11, true) => Effect::Access(&[Counter::VectorStore, Counter::Scalar], 1, true),
            (_, false) => Effect::Access(&[Counter::Load, Counter::Lds], 1, true),
            (_, true) => Effect::Access(&[Counter::Store, Counter::Lds], 1, true),
        };
    }
    let vector = ["global_", "buffer_", "tbuffer_", "scratch_", "image_"];
    if vector.iter().any(|start| begins(start)) {
        return match (major, store) {
            (..=9, _) | (10 | 11, false) => Effect::Access(&[Counter::Vector], 1, false),
            (10 | 11, true) => Effect::Access(&[Counter::VectorStore], 1, false),
            (_, false) => Effect::Access(&[Counter::Load], 1, false),
            (_, true) => Effect::Access(&[Counter::Store], 1, false),
        };
    }
    Effect::Nothing
}

/// The waits of a wave: the number of the wait's line, and of the lines of the accesses it waited for.
pub fn waits(wave: &Wave<'_>, listing: &Listing, major: u32) -> Vec<(u32, Vec<u32>)> {
    let mut queues: [Queue; NAMES.len()] = Default::default();
    let mut found = Vec::new();
    for instruction in wave.instructions {
        let Some(line) = listing.line(instruction.pc) else {
            continue;
        };
        match effect(&line.text, major) {
            Effect::Nothing => {}
            Effect::Access(counters, times, parallel) => {
                for counter in counters {
                    let queue = &mut queues[*counter as usize];
                    queue.parallel |= parallel;
                    queue.lines.extend(std::iter::repeat_n(line.number, times));
                }
            }
            Effect::Wait(limits) => {
                for (counter, limit) in limits {
                    let queue = &mut queues[counter as usize];
                    if queue.parallel && limit > 0 {
                        continue;
                    }
                    queue.parallel = false;
                    let done = queue.lines.len().saturating_sub(limit);
                    if done > 0 {
                        found.push((line.number, queue.lines.drain(..done).collect()));
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_waits() {
        let two = "s_waitcnt vmcnt(3) lgkmcnt(0)";
        assert_eq!(limit(two, "vmcnt"), Some(3));
        assert_eq!(limit(two, "lgkmcnt"), Some(0));
        assert_eq!(limit(two, "expcnt"), None);
        assert_eq!(limit("s_waitcnt_vscnt null, 0x2", "vscnt"), Some(2));
        assert_eq!(limit("s_wait_loadcnt 0x1f", "loadcnt"), Some(31));
        assert_eq!(limit("s_wait_loadcnt 12", "loadcnt"), Some(12));
    }
}

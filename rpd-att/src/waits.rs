//! Causes of waits: memory accesses that were under way when a wave waited for their counter.

use crate::listing::Listing;
use crate::record::Wave;

/// Counters of memory accesses that are under way.
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

/// A counter's name in the operands or in the mnemonic of a wait; in the order in which the counters of one wait of
/// GFX10 and later are shown.
const NAMES: [(Counter, &str); 10] = [
    (Counter::VectorStore, "vscnt"),
    (Counter::Vector, "vmcnt"),
    (Counter::Scalar, "lgkmcnt"),
    (Counter::Bvh, "bvhcnt"),
    (Counter::Export, "expcnt"),
    (Counter::Sample, "samplecnt"),
    (Counter::Constant, "kmcnt"),
    (Counter::Store, "storecnt"),
    (Counter::Load, "loadcnt"),
    (Counter::Lds, "dscnt"),
];

/// Accesses that one counter counts, oldest first.
#[derive(Debug, Default, Clone)]
struct Queue {
    lines: Vec<u32>,
    /// Whether accesses complete out of order: only a wait for all of them shows that one is complete.
    parallel: bool,
}

/// Flat accesses. Whether one goes to memory or LDS is known only when it runs, so that it counts on two counters, out
/// of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flat {
    /// A load; on GFX9 a store as well.
    Load,
    Store,
}

impl Flat {
    /// The two counters of an access: that of memory, and that of LDS.
    fn counters(self, major: u32) -> [Counter; 2] {
        let memory = memory_counter(self == Flat::Store, major);
        match major {
            ..=11 => [memory, Counter::Scalar],
            _ => [memory, Counter::Lds],
        }
    }
}

/// The counter of memory accesses by vector instructions.
fn memory_counter(is_store: bool, major: u32) -> Counter {
    match (major, is_store) {
        (..=9, _) | (10 | 11, false) => Counter::Vector,
        (10 | 11, true) => Counter::VectorStore,
        (_, false) => Counter::Load,
        (_, true) => Counter::Store,
    }
}

/// Effect of an instruction on wait counters.
enum Effect {
    Nothing,
    /// Adds an access to a counter: the counter, the number of times, and whether it is in parallel with others.
    Access(Counter, usize, bool),
    /// Adds a flat access.
    Flat(Flat),
    /// Waits until at most a number of accesses are under way, for each of these counters.
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
    let scalar = if twelve {
        Counter::Constant
    } else {
        Counter::Scalar
    };
    if begins("s_load") || begins("s_store") || begins("s_buffer_load") {
        return Effect::Access(scalar, 1, true);
    }
    if begins("s_sendmsg") {
        let times = if begins("s_sendmsg_rtn") { 2 } else { 1 };
        return Effect::Access(scalar, times, false);
    }
    if twelve && name.contains("_bvh") {
        return Effect::Access(Counter::Bvh, 1, false);
    }
    if twelve && begins("image_sample") {
        return Effect::Access(Counter::Sample, 1, false);
    }
    if begins("ds_") || begins("lds_") {
        let direct = name.contains("param_load") || name.contains("direct");
        return match (twelve, direct) {
            (true, true) => Effect::Access(Counter::Export, 1, false),
            (true, false) => Effect::Access(Counter::Lds, 1, false),
            (false, _) => Effect::Access(Counter::Scalar, 1, false),
        };
    }
    if begins("flat_") {
        let is_store = store && major > 9;
        return Effect::Flat(if is_store { Flat::Store } else { Flat::Load });
    }
    let vector = ["global_", "buffer_", "tbuffer_", "scratch_", "image_"];
    if vector.iter().any(|start| begins(start)) {
        return Effect::Access(memory_counter(store, major), 1, false);
    }
    Effect::Nothing
}

/// The waits of a wave: the number of the wait's line, and the numbers of the lines whose accesses it waited for.
pub fn waits(wave: &Wave<'_>, listing: &Listing, major: u32) -> Vec<(u32, Vec<u32>)> {
    let lines = wave.instructions.iter();
    let lines = lines.filter_map(|instruction| listing.line(instruction.pc));
    waits_of(lines.map(|line| (line.number, line.text.as_str())), major)
}

/// The waits among executed lines, which are given as numbers and texts.
fn waits_of<'a>(
    executed: impl Iterator<Item = (u32, &'a str)>,
    major: u32,
) -> Vec<(u32, Vec<u32>)> {
    let mut pending = Pending::default();
    let mut found = Vec::new();
    for (number, text) in executed {
        match effect(text, major) {
            Effect::Nothing => {}
            Effect::Access(counter, times, parallel) => {
                let queue = &mut pending.queues[counter as usize];
                queue.parallel |= parallel;
                queue.lines.extend(std::iter::repeat_n(number, times));
            }
            Effect::Flat(flat) => {
                for counter in flat.counters(major) {
                    pending.queues[counter as usize].parallel = true;
                }
                pending.flat[flat as usize].push(number);
            }
            Effect::Wait(mut limits) => {
                if major <= 9 {
                    limits.reverse();
                }
                for (counter, limit) in limits {
                    let ended = pending.wait(counter, limit, major);
                    if !ended.is_empty() {
                        found.push((number, ended));
                    }
                }
            }
        }
    }
    found
}

/// Accesses that are under way, by counter.
#[derive(Debug, Default)]
struct Pending {
    queues: [Queue; NAMES.len()],
    /// Lines of flat loads and of flat stores. The first wait for one of their counters takes them.
    flat: [Vec<u32>; 2],
}

impl Pending {
    /// Lines of the accesses that a wait for a counter ends.
    fn wait(&mut self, counter: Counter, limit: usize, major: u32) -> Vec<u32> {
        let queue = &mut self.queues[counter as usize];
        if queue.parallel && limit > 0 {
            return Vec::new();
        }
        queue.parallel = false;
        let done = queue.lines.len().saturating_sub(limit);
        let mut ended = Vec::new();
        for flat in [Flat::Load, Flat::Store] {
            if flat.counters(major).contains(&counter) {
                ended.append(&mut self.flat[flat as usize]);
            }
        }
        ended.extend(queue.lines.drain(..done));
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits_in(code: &[&str], major: u32) -> Vec<(u32, Vec<u32>)> {
        waits_of((1..).zip(code.iter().copied()), major)
    }

    #[test]
    fn flat_accesses_end_at_the_first_wait_for_one_of_their_counters() {
        let code = [
            "flat_load_dword v4, v[2:3]",
            "global_load_dword v5, v[0:1], off",
            "s_waitcnt vmcnt(0) lgkmcnt(0)",
        ];
        // GFX9 shows LDS's counter first.
        assert_eq!(waits_in(&code, 9), [(3, vec![1]), (3, vec![2])]);
        assert_eq!(waits_in(&code, 11), [(3, vec![1, 2])]);
        // Which of them completed does not follow from a wait for fewer than all.
        let some = ["flat_load_dword v4, v[2:3]", "s_waitcnt lgkmcnt(1)"];
        assert!(waits_in(&some, 9).is_empty());
        let stored = [
            "flat_store_b32 v[0:1], v2",
            "ds_load_b32 v3, v4",
            "s_wait_dscnt 0x0",
            "s_wait_storecnt 0x0",
        ];
        assert_eq!(waits_in(&stored, 12), [(3, vec![1, 2])]);
        let apart = [
            "flat_store_dword v[0:1], v2",
            "s_waitcnt_vscnt null, 0x0",
            "s_waitcnt lgkmcnt(0)",
        ];
        assert_eq!(waits_in(&apart, 10), [(2, vec![1])]);
    }

    #[test]
    fn limit_reads_the_counters_of_wait_instructions() {
        let two = "s_waitcnt vmcnt(3) lgkmcnt(0)";
        assert_eq!(limit(two, "vmcnt"), Some(3));
        assert_eq!(limit(two, "lgkmcnt"), Some(0));
        assert_eq!(limit(two, "expcnt"), None);
        assert_eq!(limit("s_waitcnt_vscnt null, 0x2", "vscnt"), Some(2));
        assert_eq!(limit("s_wait_loadcnt 0x1f", "loadcnt"), Some(31));
        assert_eq!(limit("s_wait_loadcnt 12", "loadcnt"), Some(12));
    }
}

//! Clocks of hosts, shifted so that they show the same time.
//!
//! Each recording has times of its host's clock, which counts from the start of that machine. An operation in which all ranks
//! wait for one another bounds how two clocks differ: it ends nowhere before it has begun everywhere. With many such
//! operations the bounds come close to each other; half of their distance is what the shift can be wrong by.

use std::collections::HashMap;

use crate::member::Member;
use crate::waits::tied;

/// Nanoseconds by which the time of day minus the clock may differ among recordings of one clock: it is set while they run.
const SAME_CLOCK: i64 = 1_000_000_000;

/// The source of the shift of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The clock that the others are shifted to.
    Reference,
    /// Operations in which ranks of several hosts waited for one another.
    Collectives {
        /// Number of operations.
        operations: usize,
        /// The shift is wrong by this many nanoseconds at most.
        error: u64,
        /// Whether no shift agrees with all operations: the clocks run at different speeds, or records are missing. `error` is
        /// then half of the contradiction.
        contradict: bool,
    },
    /// The time of day of both hosts. It is not known what that is wrong by.
    TimeOfDay,
    /// Nothing: the clock is not shifted.
    Unknown,
}

/// The clock of a host since one start of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlignedClock {
    /// Name of the host.
    pub host: String,
    /// Number of recordings with times of this clock.
    pub members: usize,
    /// Nanoseconds to add to its times.
    pub shift: i64,
    /// Source of the shift.
    pub basis: Basis,
    /// Nanoseconds by which the time of day was set or ran differently during the recordings, at most; `None` when it is not
    /// known.
    pub drift: Option<u64>,
    /// Time of day minus the clock in nanoseconds; `None` when it is not known.
    offset: Option<i64>,
}

/// The clocks of some recordings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Alignment {
    /// The clocks, that of the reference first, then by host.
    pub clocks: Vec<AlignedClock>,
    /// The clock of each recording.
    pub of: Vec<usize>,
}

impl Alignment {
    /// Finds the clocks of recordings and their shifts.
    pub fn new(members: &[Member]) -> Alignment {
        let mut alignment = Alignment::default();
        alignment.find_clocks(members);
        alignment.by_collectives(members);
        alignment.by_time_of_day();
        alignment
    }

    /// Nanoseconds to add to the times of a recording.
    pub fn shift(&self, member: usize) -> i64 {
        let clock = self.of.get(member).and_then(|of| self.clocks.get(*of));
        clock.map_or(0, |clock| clock.shift)
    }

    /// Nanoseconds to add to the times of each recording.
    pub fn shifts(&self) -> Vec<i64> {
        (0..self.of.len())
            .map(|member| self.shift(member))
            .collect()
    }

    /// A sentence about each clock that is not the only one.
    pub fn sentences(&self) -> Vec<String> {
        let [reference, others @ ..] = &self.clocks[..] else {
            return Vec::new();
        };
        let sentence = |clock: &AlignedClock| {
            let host = host_name(clock);
            let drift = match clock.drift {
                Some(drift) if drift > 0 => {
                    format!("; its time of day drifted by up to {}", time(drift))
                }
                _ => String::new(),
            };
            match clock.basis {
                Basis::Reference => format!("times are those of {host}{drift}"),
                Basis::Collectives {
                    operations,
                    error,
                    contradict: false,
                } => format!(
                    "clock of {host} aligned by {operations} collective operations: remaining error at most {}{drift}",
                    time(error)
                ),
                Basis::Collectives {
                    operations, error, ..
                } => format!(
                    "clock of {host} aligned by {operations} collective operations that contradict one another by {}: \
                    the clocks drift, or records are missing{drift}",
                    time(error.saturating_mul(2))
                ),
                Basis::TimeOfDay => format!(
                    "clock of {host} aligned by the time of day of both hosts: remaining error unknown{drift}"
                ),
                Basis::Unknown => format!(
                    "clock of {host} not aligned: neither a collective operation nor the time of day of both hosts is recorded"
                ),
            }
        };
        let reference = (!others.is_empty()).then(|| sentence(reference));
        reference
            .into_iter()
            .chain(others.iter().map(sentence))
            .collect()
    }

    /// Recordings of one host whose clocks are equally far from the time of day have one clock.
    fn find_clocks(&mut self, members: &[Member]) {
        let mut order: Vec<usize> = (0..members.len()).collect();
        order.sort_by_key(|number| {
            let member = &members[*number];
            (&member.host, member.offsets.first, *number)
        });
        self.of = vec![0; members.len()];
        for number in order {
            let member = &members[number];
            let own = member.offsets.first;
            // In this order the last clock is the only one that it can be.
            let last = self.clocks.last().filter(|clock| clock.host == member.host);
            let is_same = last.is_some_and(|clock| match (clock.offset, own) {
                (Some(a), Some(b)) => a.abs_diff(b) <= SAME_CLOCK.unsigned_abs(),
                _ => true,
            });
            if !is_same {
                self.clocks.push(AlignedClock {
                    host: member.host.clone(),
                    members: 0,
                    shift: 0,
                    basis: Basis::Unknown,
                    drift: None,
                    offset: own,
                });
            }
            let place = self.clocks.len() - 1;
            let clock = &mut self.clocks[place];
            clock.members += 1;
            clock.offset = clock.offset.or(own);
            if let (Some(first), Some(last)) = (own, member.offsets.last) {
                let drift = first.abs_diff(last);
                clock.drift = Some(clock.drift.unwrap_or(0).max(drift));
            }
            self.of[number] = place;
        }
        // The clock of most recordings is the reference, and comes first.
        let clocks = self.clocks.iter().enumerate();
        let most = clocks.max_by_key(|(place, clock)| (clock.members, std::cmp::Reverse(*place)));
        if let Some((reference, _)) = most {
            self.clocks[..=reference].rotate_right(1);
            self.clocks[0].basis = Basis::Reference;
            for of in &mut self.of {
                *of = match *of {
                    of if of == reference => 0,
                    of if of < reference => of + 1,
                    of => of,
                };
            }
        }
    }

    /// Shifts the clocks that collective operations tie to the reference, directly or through others.
    fn by_collectives(&mut self, members: &[Member]) {
        if self.clocks.len() < 2 {
            return;
        }
        let tied = tied(members, |of| of.on_device && of.synchronises());
        // Of each operation and clock: the latest start and the earliest end.
        let mut operations: Vec<Vec<(usize, u64, u64)>> = Vec::new();
        for parts in tied.values() {
            let mut by_clock: HashMap<usize, (u64, u64)> = HashMap::new();
            for (member, part) in parts {
                let (start, end) = by_clock
                    .entry(self.of[*member])
                    .or_insert((part.start, part.end));
                *start = (*start).max(part.start);
                *end = (*end).min(part.end);
            }
            if by_clock.len() > 1 {
                let bounds = by_clock.into_iter();
                operations.push(
                    bounds
                        .map(|(clock, (start, end))| (clock, start, end))
                        .collect(),
                );
            }
        }
        loop {
            // Clocks that are found in this round are anchors of the next: errors add up along the way.
            let bounds = self.bounds(&operations);
            if bounds.is_empty() {
                return;
            }
            for (clock, (low, high, count)) in bounds {
                let shift = low + (high - low) / 2;
                let error = (high - low).unsigned_abs().div_ceil(2);
                let clock = &mut self.clocks[clock];
                clock.shift = i64::try_from(shift).unwrap_or(0);
                clock.basis = Basis::Collectives {
                    operations: count,
                    error: u64::try_from(error).unwrap_or(u64::MAX),
                    contradict: high < low,
                };
            }
        }
    }

    /// The least and the greatest shift of each clock that is not aligned and takes part in an operation with one that is, and
    /// the number of these operations.
    fn bounds(&self, operations: &[Vec<(usize, u64, u64)>]) -> HashMap<usize, (i128, i128, usize)> {
        let mut bounds: HashMap<usize, (i128, i128, usize)> = HashMap::new();
        for parts in operations {
            for (own, start, end) in parts {
                if self.clocks[*own].basis != Basis::Unknown {
                    continue;
                }
                let (start, end) = (i128::from(*start), i128::from(*end));
                let mut is_tied = false;
                for (anchor, anchor_start, anchor_end) in parts {
                    let anchor = &self.clocks[*anchor];
                    let error = match anchor.basis {
                        Basis::Reference => 0,
                        Basis::Collectives { error, .. } => i128::from(error),
                        Basis::TimeOfDay | Basis::Unknown => continue,
                    };
                    let shift = i128::from(anchor.shift);
                    // It ends nowhere before it has begun everywhere.
                    let high = i128::from(*anchor_end) + shift - start + error;
                    let low = i128::from(*anchor_start) + shift - end - error;
                    let bound = bounds.entry(*own).or_insert((low, high, 0));
                    bound.0 = bound.0.max(low);
                    bound.1 = bound.1.min(high);
                    is_tied = true;
                }
                if let (true, Some(bound)) = (is_tied, bounds.get_mut(own)) {
                    bound.2 += 1;
                }
            }
        }
        bounds
    }

    fn by_time_of_day(&mut self) {
        let Some(reference) = self.clocks.first().and_then(|clock| clock.offset) else {
            return;
        };
        for clock in &mut self.clocks {
            if let (Basis::Unknown, Some(offset)) = (clock.basis, clock.offset) {
                clock.shift = offset.saturating_sub(reference);
                clock.basis = Basis::TimeOfDay;
            }
        }
    }
}

fn host_name(clock: &AlignedClock) -> &str {
    match &*clock.host {
        "" => "an unknown host",
        host => host,
    }
}

/// A time for people.
fn time(nanoseconds: u64) -> String {
    match nanoseconds {
        0..10_000 => format!("{nanoseconds} ns"),
        10_000..10_000_000 => format!("{} us", nanoseconds.div_ceil(1_000)),
        10_000_000..10_000_000_000 => format!("{} ms", nanoseconds.div_ceil(1_000_000)),
        _ => format!("{} s", nanoseconds.div_ceil(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::tests::all_reduce;
    use crate::member::ClockOffsets;

    /// A recording whose clock is `ahead` of the true time, with operations that this rank comes to at `starts` and that end at
    /// `ends`, both in true time.
    fn member(host: &str, ahead: i64, times: &[(u64, u64)]) -> Member {
        let own = |time: u64| time.saturating_add_signed(ahead);
        let all = (0..).zip(times);
        Member {
            host: host.to_owned(),
            collectives: all
                .map(|(n, (start, end))| all_reduce(1, n, own(*start), end - start))
                .collect(),
            ..Member::default()
        }
    }

    fn with_offset(offset: i64, member: Member) -> Member {
        Member {
            offsets: ClockOffsets {
                first: Some(offset),
                last: None,
            },
            ..member
        }
    }

    #[test]
    fn clocks_are_aligned_by_collectives_within_the_stated_error() {
        // The first comes last in one operation, the second in the other: the bounds are close on both sides.
        let a = member("a", 0, &[(10_000, 20_100), (40_000, 50_050)]);
        let b = member("b", 7_000_000, &[(20_000, 20_080), (30_000, 50_060)]);
        let alignment = Alignment::new(&[a.clone(), a, b]);
        assert_eq!(alignment.of, [0, 0, 1]);
        let clock = &alignment.clocks[1];
        let Basis::Collectives {
            operations,
            error,
            contradict,
        } = clock.basis
        else {
            panic!("{clock:?}");
        };
        assert_eq!((operations, contradict), (2, false));
        assert!(
            (clock.shift + 7_000_000).unsigned_abs() <= error,
            "{clock:?}"
        );
        assert!(error <= 10_100, "{error}");
        let said = alignment.sentences().join("\n");
        assert!(
            said.contains("clock of b aligned by 2 collective operations: remaining error at most"),
            "{said}"
        );
    }

    #[test]
    fn clocks_that_only_share_operations_with_another_are_aligned_through_it() {
        let mut a = member("a", 0, &[(100, 210), (300, 410)]);
        let mut b = member("b", 5_000, &[(200, 205), (250, 405)]);
        let of_second = |start: u64| all_reduce(2, 0, start, 100);
        b.collectives.push(of_second(5_600));
        let mut c = member("c", 90_000, &[]);
        c.collectives.push(of_second(90_650));
        a.collectives.truncate(2);
        let alignment = Alignment::new(&[a.clone(), a, b, c]);
        let clock = &alignment.clocks[2];
        assert_eq!(clock.host, "c");
        let Basis::Collectives { error, .. } = clock.basis else {
            panic!("{clock:?}");
        };
        assert!((clock.shift + 90_000).unsigned_abs() <= error, "{clock:?}");
    }

    #[test]
    fn clocks_that_contradict_are_said_to() {
        // Between the two operations the clock of b has run ahead by 1 ms.
        let a = member("a", 0, &[(100, 200), (10_000_000, 10_000_100)]);
        let b = member("b", 0, &[(100, 200), (11_000_000, 11_000_100)]);
        let alignment = Alignment::new(&[a, b]);
        let Basis::Collectives {
            error, contradict, ..
        } = alignment.clocks[1].basis
        else {
            panic!("{alignment:?}");
        };
        assert!(contradict && error > 400_000, "{error}");
        assert!(alignment.sentences()[1].contains("contradict one another"));
    }

    #[test]
    fn clocks_without_collectives_are_aligned_by_the_time_of_day_with_unknown_error() {
        let a = with_offset(1_000_000_000_000, member("a", 0, &[]));
        let b = with_offset(1_000_000_500_000, member("b", 0, &[]));
        let alignment = Alignment::new(&[a.clone(), b]);
        assert_eq!(alignment.shifts(), [0, 500_000]);
        assert_eq!(alignment.clocks[1].basis, Basis::TimeOfDay);
        assert!(alignment.sentences()[1].ends_with("remaining error unknown"));
        let unknown = Alignment::new(&[a, member("c", 0, &[])]);
        assert_eq!(unknown.clocks[1].basis, Basis::Unknown);
        assert!(unknown.sentences()[1].contains("not aligned"));
    }

    #[test]
    fn recordings_of_a_host_before_and_after_a_restart_have_different_clocks() {
        let before = with_offset(1_000_000_000_000, member("a", 0, &[]));
        let after = with_offset(5_000_000_000_000, member("a", 0, &[]));
        let alignment = Alignment::new(&[before.clone(), after, before]);
        assert_eq!(alignment.of, [0, 1, 0]);
        assert_eq!(alignment.shift(1), 4_000_000_000_000);
    }

    #[test]
    fn recordings_of_one_clock_need_no_sentence() {
        let alignment = Alignment::new(&[member("a", 0, &[]), member("a", 0, &[])]);
        assert!(alignment.sentences().is_empty());
        assert!(Alignment::new(&[]).sentences().is_empty());
    }
}

//! Who waits for whom in collective operations.

use std::collections::HashMap;

use crate::collectives::{Collective, operation_name};
use crate::member::Member;

/// What a recording waited in collective operations until the last rank had come.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Waits {
    /// Number of operations in which the recording is tied to others.
    pub operations: u64,
    /// Number of operations in which it came last of all.
    pub last: u64,
    /// Sum of the times from its coming to that of the last, in nanoseconds.
    pub total: u64,
    /// Longest time from its coming to that of the last, in nanoseconds.
    pub longest: u64,
    /// The recording that it waited for most, and how long in all, in nanoseconds; `None` when it never waited.
    pub mostly_for: Option<(usize, u64)>,
    /// The operation in which it waited most, by name; empty when it never waited.
    pub mostly_in: &'static str,
}

/// The operations that several recordings took part in, by communicator and number.
pub(crate) fn tied(
    members: &[Member],
    wanted: impl Fn(&Collective) -> bool,
) -> HashMap<(u64, u32), Vec<(usize, &Collective)>> {
    let mut tied: HashMap<(u64, u32), Vec<(usize, &Collective)>> = HashMap::new();
    for (number, member) in members.iter().enumerate() {
        for collective in member.collectives.iter().filter(|of| wanted(of)) {
            let key = (collective.communicator, collective.ordinal);
            tied.entry(key).or_default().push((number, collective));
        }
    }
    tied.retain(|_, parts| {
        let first = parts[0];
        let is_several = parts.iter().any(|part| part.0 != first.0);
        // The n-th operation of all ranks is the same, unless records are missing.
        let is_same = parts
            .iter()
            .all(|part| part.1.operation == first.1.operation);
        is_several && is_same
    });
    tied
}

/// The waits of each recording; `shifts` are added to its times. Operations that no rank waits in for all others are left out.
pub fn waits(members: &[Member], shifts: &[i64]) -> Vec<Waits> {
    let mut waits = vec![Waits::default(); members.len()];
    let mut for_whom: HashMap<(usize, usize), u64> = HashMap::new();
    let mut in_what: HashMap<(usize, u8), u64> = HashMap::new();
    for parts in tied(members, |of| of.synchronises()).values() {
        let came = |part: &(usize, &Collective)| {
            let shift = shifts.get(part.0).copied().unwrap_or(0);
            i128::from(part.1.start) + i128::from(shift)
        };
        let Some((at, last)) = parts.iter().map(|part| (came(part), part.0)).max() else {
            continue;
        };
        for part in parts {
            let own = &mut waits[part.0];
            own.operations += 1;
            if part.0 == last {
                own.last += 1;
                continue;
            }
            let wait = u64::try_from(at - came(part)).unwrap_or(u64::MAX);
            own.total = own.total.saturating_add(wait);
            own.longest = own.longest.max(wait);
            *for_whom.entry((part.0, last)).or_default() += wait;
            *in_what.entry((part.0, part.1.operation)).or_default() += wait;
        }
    }
    for ((waiter, last), time) in for_whom {
        let most = &mut waits[waiter].mostly_for;
        // Of equal ones the first recording, so that the result is always the same.
        let key = |of: (usize, u64)| (of.1, std::cmp::Reverse(of.0));
        if time > 0 && most.is_none_or(|most| key((last, time)) > key(most)) {
            *most = Some((last, time));
        }
    }
    let mut longest: HashMap<usize, (u64, std::cmp::Reverse<u8>)> = HashMap::new();
    for ((waiter, operation), time) in in_what {
        let own = (time, std::cmp::Reverse(operation));
        let most = longest.entry(waiter).or_insert(own);
        *most = own.max(*most);
    }
    for (waiter, (time, operation)) in longest {
        if time > 0 {
            waits[waiter].mostly_in = operation_name(operation.0);
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectives::tests::all_reduce;

    fn member(starts: &[u64]) -> Member {
        let all = (0..).zip(starts);
        Member {
            collectives: all
                .map(|(n, start)| all_reduce(7, n, *start, 1000))
                .collect(),
            ..Member::default()
        }
    }

    #[test]
    fn waits_name_the_rank_that_came_last() {
        let members = [
            member(&[100, 200, 300]),
            member(&[110, 290, 300]),
            member(&[105, 205, 900]),
        ];
        let waits = waits(&members, &[0, 0, 0]);
        assert_eq!((waits[0].operations, waits[0].last), (3, 0));
        assert_eq!((waits[0].total, waits[0].longest), (10 + 90 + 600, 600));
        assert_eq!(waits[0].mostly_for, Some((2, 600)));
        assert_eq!(waits[0].mostly_in, "ncclAllReduce");
        assert_eq!((waits[1].last, waits[1].total), (2, 600));
        assert_eq!((waits[2].last, waits[2].mostly_for), (1, Some((1, 90))));
    }

    #[test]
    fn waits_shift_the_clocks_first() {
        let members = [member(&[100]), member(&[5_000_100])];
        let shifted = waits(&members, &[0, -5_000_050]);
        assert_eq!((shifted[0].total, shifted[0].last), (0, 1));
        assert_eq!(shifted[1].total, 50);
    }

    #[test]
    fn waits_leave_out_operations_of_one_recording_and_those_that_differ() {
        let alone = waits(&[member(&[100])], &[0]);
        assert_eq!(alone, [Waits::default()]);
        let mut other = member(&[100]);
        other.collectives[0].operation += 1;
        let differing = waits(&[member(&[100]), other], &[0, 0]);
        assert!(differing.iter().all(|of| of.operations == 0));
    }
}

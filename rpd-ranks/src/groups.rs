//! Recordings grouped by rank or by host.

use std::collections::{BTreeMap, BTreeSet};

use crate::member::Member;

/// What recordings are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Rank: a rank with the processes that it started is one group.
    Rank,
    /// Host.
    Host,
}

/// Recordings that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// Host of all of them.
    pub host: String,
    /// Rank of all of them; `None` for a host, and for a process without a rank.
    pub rank: Option<u64>,
    /// Process id of the first of them.
    pub pid: u32,
    /// Indices of the recordings.
    pub members: Vec<usize>,
    /// Whether all of them ended in good order.
    pub ended: bool,
    /// Number of their records.
    pub records: usize,
}

impl Group {
    /// The group in a few words: `rank 3 on node1`, `node1`, or `process 42 on node1`.
    pub fn label(&self, by: By) -> String {
        match (by, self.rank) {
            (By::Host, _) => self.host.clone(),
            (By::Rank, Some(rank)) => format!("rank {rank} on {}", self.host),
            (By::Rank, None) => format!("process {} on {}", self.pid, self.host),
        }
    }
}

/// All groups of some recordings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// The groups, ordered by rank, then host, then process id.
    pub list: Vec<Group>,
    /// The group of each recording.
    pub of: Vec<usize>,
    /// Ranks of which there is no recording, for all launchers that tell how many there are.
    pub missing: Vec<u64>,
}

impl Groups {
    /// Groups recordings.
    pub fn new(members: &[Member], by: By) -> Groups {
        // A rank on two hosts is two groups: each is one of a program of its own.
        let key = |member: &Member| match by {
            By::Host => (0, 0, member.host.clone(), 0),
            By::Rank => match member.rank {
                Some(rank) => (0, rank, member.host.clone(), 0),
                None => (1, 0, member.host.clone(), member.pid),
            },
        };
        let mut keys: BTreeMap<_, Group> = BTreeMap::new();
        for (index, member) in members.iter().enumerate() {
            let group = keys.entry(key(member)).or_insert_with(|| Group {
                host: member.host.clone(),
                rank: member.rank.filter(|_| by == By::Rank),
                pid: member.pid,
                members: Vec::new(),
                ended: true,
                records: 0,
            });
            group.members.push(index);
            group.ended &= member.ended;
            group.records += member.records;
        }
        let list: Vec<Group> = keys.into_values().collect();
        let mut of = vec![0; members.len()];
        for (number, group) in list.iter().enumerate() {
            for member in &group.members {
                of[*member] = number;
            }
        }
        Groups {
            list,
            of,
            missing: missing(members),
        }
    }

    /// Whether the totals of each group are compared with those of the others: those of a process that was killed are
    /// shorter than they would have been. All are compared where none ended in good order.
    pub fn compared(&self) -> Vec<bool> {
        let any = self.list.iter().any(|group| group.ended);
        self.list.iter().map(|group| group.ended || !any).collect()
    }
}

/// The ranks below the number of ranks that no recording has.
fn missing(members: &[Member]) -> Vec<u64> {
    /// Greatest number of ranks that is believed: a variable may hold anything.
    const MOST: u64 = 1 << 24;
    let sizes = members.iter().filter_map(|member| member.size);
    let size = sizes.max().unwrap_or(0).min(MOST);
    let present: BTreeSet<u64> = members.iter().filter_map(|member| member.rank).collect();
    (0..size).filter(|rank| !present.contains(rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(host: &str, rank: Option<u64>, pid: u32) -> Member {
        Member {
            host: host.to_owned(),
            rank,
            size: rank.map(|_| 4),
            pid,
            ended: true,
            records: 10,
            ..Member::default()
        }
    }

    #[test]
    fn groups_by_rank_join_the_processes_of_a_rank_and_list_missing_ones() {
        let mut members = vec![
            member("b", Some(2), 7),
            member("a", Some(0), 5),
            member("a", Some(0), 6),
            member("a", None, 9),
        ];
        members[2].ended = false;
        let groups = Groups::new(&members, By::Rank);
        let labels: Vec<String> = groups.list.iter().map(|of| of.label(By::Rank)).collect();
        assert_eq!(labels, ["rank 0 on a", "rank 2 on b", "process 9 on a"]);
        assert_eq!(groups.of, [1, 0, 0, 2]);
        assert_eq!(groups.missing, [1, 3]);
        assert_eq!(groups.list[0].records, 20);
        assert_eq!(groups.compared(), [false, true, true]);
    }

    #[test]
    fn groups_by_host_have_no_rank() {
        let members = [member("b", Some(2), 7), member("a", Some(0), 5)];
        let groups = Groups::new(&members, By::Host);
        let labels: Vec<String> = groups.list.iter().map(|of| of.label(By::Host)).collect();
        assert_eq!(labels, ["a", "b"]);
        assert!(groups.list.iter().all(|group| group.rank.is_none()));
    }

    #[test]
    fn groups_that_were_all_killed_are_compared() {
        let killed = Member {
            ended: false,
            ..member("a", Some(0), 1)
        };
        assert_eq!(Groups::new(&[killed], By::Rank).compared(), [true]);
    }
}

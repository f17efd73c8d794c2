//! Creation of communicators. Steps that wait for other ranks come after the steps that other ranks wait for, so that a
//! thread can have several ranks.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::communicator::Communicator;
use super::error::{Failure, Outcome};
use super::segment::{self, MAX_RANKS, Segment};
use super::{hip, launch};
use crate::api::types::UniqueId;

/// Address to which a new handle is written.
#[derive(Clone, Copy)]
pub(super) struct HandlePlace(pub(super) *mut usize);

/// A communicator that is created at the end of the group.
pub(super) struct NewCommunicator {
    pub(super) device: i32,
    pub(super) place: HandlePlace,
    pub(super) source: Source,
}

/// Origin of a new communicator, which determines its ranks.
pub(super) enum Source {
    /// A unique id that all ranks were given.
    Id { id: UniqueId, ranks: u32, rank: u32 },
    /// The ranks of another communicator with the same color, ordered by key; none for a negative color.
    Split {
        parent: Arc<Communicator>,
        color: i32,
        key: i32,
    },
}

/// Converts both numbers; fails if `ranks` is out of range or there is no such `rank`.
pub(super) fn check_rank(ranks: i32, rank: i32) -> Outcome<(u32, u32)> {
    if !(1..=MAX_RANKS as i32).contains(&ranks) {
        let text = format!("{ranks} ranks; there can be 1 to {MAX_RANKS}");
        return Err(Failure::argument(text));
    }
    if !(0..ranks).contains(&rank) {
        return Err(Failure::argument(format!("rank {rank} of {ranks}")));
    }
    Ok((ranks as u32, rank as u32))
}

/// Participation of one rank in a split, with the number of the split.
struct Part<'w> {
    parent: &'w Communicator,
    number: u32,
    color: i32,
}

impl<'w> Part<'w> {
    /// Passes color and key of this rank to the other ranks.
    fn announce(parent: &'w Communicator, color: i32, key: i32) -> Self {
        let mut state = parent.state();
        state.splits += 1;
        let number = state.splits;
        // Two places in turn: no rank can be two splits ahead, because each waits for all others.
        let own = &parent.segment.member(parent.segment.rank).splits[number as usize % 2];
        own.color.store(color, Ordering::Relaxed);
        own.key.store(key, Ordering::Relaxed);
        // Published last: others read color and key when they see the number.
        own.number.store(number, Ordering::Release);
        Self {
            parent,
            number,
            color,
        }
    }

    fn split_of(&self, rank: u32) -> &segment::Split {
        &self.parent.segment.member(rank).splits[self.number as usize % 2]
    }

    /// Waits for the colors of the other ranks; returns the ranks that have the same color, in their new order.
    fn ranks(&self) -> Outcome<Vec<u32>> {
        let all = 0..self.parent.segment.ranks;
        self.parent.segment.wait(|| {
            all.clone()
                .all(|rank| self.split_of(rank).number.load(Ordering::Acquire) == self.number)
        })?;
        let mut ranks: Vec<u32> = all
            .filter(|&rank| self.split_of(rank).color.load(Ordering::Relaxed) == self.color)
            .collect();
        ranks.sort_by_key(|&rank| self.split_of(rank).key.load(Ordering::Relaxed));
        Ok(ranks)
    }
}

/// Makes communicators one after the other, up to the first failure.
pub(super) fn make(wanted: &[NewCommunicator]) -> Outcome {
    // First all announcements: a thread with several ranks would wait for its own otherwise.
    let parts = wanted.iter().map(|wanted| match &wanted.source {
        Source::Id { .. } => None,
        Source::Split { parent, color, key } => Some(Part::announce(parent, *color, *key)),
    });
    let parts: Vec<Option<Part<'_>>> = parts.collect();
    // The first rank of each new communicator makes its id.
    let mut orders = Vec::new();
    for part in &parts {
        let order = part.as_ref().filter(|part| part.color >= 0);
        let order = order.map(|part| part.ranks().map(|ranks| (part, ranks)));
        let order = order.transpose()?;
        // Every process computes the same order, so that they agree without a message about who makes the id.
        if let Some((part, ranks)) = &order
            && ranks[0] == part.parent.segment.rank
        {
            let id = segment::make_id()?;
            part.split_of(ranks[0]).publish(part.number, &id);
        }
        orders.push(order);
    }
    let mut joined = Vec::new();
    for (wanted, order) in wanted.iter().zip(&orders) {
        let (id, ranks, rank) = match (&wanted.source, order) {
            (Source::Id { id, ranks, rank }, _) => (*id, *ranks, *rank),
            (Source::Split { .. }, None) => {
                joined.push(None);
                continue;
            }
            (Source::Split { parent, .. }, Some((part, order))) => {
                let mut id = None;
                parent.segment.wait(|| {
                    id = part.split_of(order[0]).published(part.number);
                    id.is_some()
                })?;
                let rank = order.iter().position(|&r| r == parent.segment.rank);
                let missing = || Failure::argument("the split lacks this rank");
                let (id, rank) = id.zip(rank).ok_or_else(missing)?;
                (id, order.len() as u32, rank as u32)
            }
        };
        // The kernel is loaded before the rank joins, which takes long and can fail: others would wait.
        hip::on_device(wanted.device, || launch::kernel(wanted.device))?;
        joined.push(Some(Segment::join(&id, ranks, rank, wanted.device)?));
    }
    // All ranks of this thread have joined before it waits for the first.
    for segment in joined.iter().flatten() {
        segment.complete()?;
    }
    for (wanted, segment) in wanted.iter().zip(joined) {
        let handle = segment.map_or(0, |segment| Communicator::make(segment, wanted.device));
        // SAFETY: the program's place, which was checked for null; it waits for this.
        unsafe { wanted.place.0.write(handle) };
    }
    Ok(())
}

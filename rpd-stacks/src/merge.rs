//! Python frames among native frames.
//!
//! Each activation of the evaluator keeps something on its native stack that the interpreter's structures point to, its
//! anchor. The native frame whose part of the stack contains the anchor of a group of Python frames is the one that runs
//! them: the group stands directly inside it. No names are compared, so that stripped, split or replaced evaluators
//! are matched as well. 3.8 and 3.9 have no anchors; there the frames of the evaluator are recognised by their addresses, and
//! are taken in order if there are as many as Python frames.

use crate::facts::{LocationKind, Sink};
use crate::flags;
use crate::interner::NoNumber;
use crate::native::frames::Frame;
use crate::path::Path;
use crate::python::{Placing, PlacingRule, ThreadPython};
use crate::region::Region;
use crate::tree::Tree;

/// Groups that a stack can have: as many as frames.
const GROUPS: usize = 1 << 16;
/// Stands for no native frame.
const NOWHERE: u32 = u32::MAX;

/// Native frame of each group, the groups innermost first, the frames counted from the outermost.
pub(crate) struct Places {
    native: Region<u32>,
    /// The native frame of the innermost group, [`NOWHERE`] unless all groups of the last merge have one.
    innermost: u32,
}

/// Result of placing the groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placed {
    All,
    Some,
    /// The Python frames are not those of the native stack.
    Contradiction,
}

impl Places {
    /// Reserves room for the groups of a thread.
    pub(crate) fn reserve() -> Places {
        Places {
            native: Region::reserve(GROUPS),
            innermost: NOWHERE,
        }
    }

    /// Whether its memory could be reserved.
    pub(crate) fn usable(&self) -> bool {
        !self.native.is_empty()
    }

    /// Finds the native frame of each group.
    #[inline]
    fn find(&mut self, native: &[Frame], python: &ThreadPython, placing: Placing<'_>) -> Placed {
        let groups = python.groups();
        let Some(places) = self.native.get_mut(..groups.len()) else {
            return Placed::Contradiction;
        };
        let activations = || evaluator_frames(native, |pc| placing.is_activation(pc));
        let anchors = groups.iter().map(|group| group.anchor as u64);
        match placing.rule {
            PlacingRule::Anchors => by_anchor(native, anchors, places),
            PlacingRule::AnchorsAndCount => {
                if activations().count() == groups.len() {
                    by_anchor(native, anchors, places)
                } else {
                    Placed::Contradiction
                }
            }
            PlacingRule::Count | PlacingRule::ExactCount => {
                let mut count = 0;
                for frame in activations() {
                    if let Some(place) = places.get_mut(count) {
                        *place = frame as u32;
                    }
                    count += 1;
                }
                if placing.rule == PlacingRule::ExactCount && count != groups.len() {
                    return Placed::Contradiction;
                }
                if count < groups.len() {
                    places.fill(NOWHERE);
                    return Placed::Some;
                }
                Placed::All
            }
        }
    }

    /// Whether the groups of the last merge keep their places, given that the groups, the rule and the `unchanged`
    /// outermost native frames are the same: all groups are in those frames, and none belongs to a frame further in.
    #[inline]
    pub(crate) fn stay(&self, native: &[Frame], unchanged: usize, placing: Placing<'_>) -> bool {
        let further_in = &native[unchanged..];
        (self.innermost as usize) < unchanged
            && match placing.rule {
                // Anchors lie where the stack of the unchanged frames is.
                PlacingRule::Anchors => true,
                PlacingRule::Count => !further_in
                    .iter()
                    .any(|frame| placing.is_activation(frame.pc)),
                PlacingRule::AnchorsAndCount | PlacingRule::ExactCount => false,
            }
    }

    /// Puts native frames (outermost first) and Python frames into the path, which has been begun. Returns bits of
    /// [`flags`].
    #[inline]
    pub(crate) fn merge(
        &mut self,
        native: &[Frame],
        python: &ThreadPython,
        placing: Placing<'_>,
        path: &mut Path,
        tree: &Tree,
        sink: &mut dyn Sink,
    ) -> Result<u32, NoNumber> {
        let groups = python.groups();
        let mut found = 0;
        let placed = self.find(native, python, placing);
        self.innermost = if placed == Placed::All && !groups.is_empty() {
            self.native[0]
        } else {
            NOWHERE
        };
        let mut places = &self.native[..groups.len()];
        let begin_of = |group: usize| group.checked_sub(1).map_or(0, |before| groups[before].end);
        match placed {
            Placed::All => {}
            Placed::Some => {
                // Frames without a place stand in front, further out than a marker: they were on the stack, only where
                // is unknown.
                for (group, &place) in places.iter().enumerate().rev() {
                    if place == NOWHERE {
                        path.extend(python.locations(begin_of(group)..groups[group].end));
                    }
                }
                path.push(tree.location(LocationKind::Unplaced, 0, 0, sink)?);
                found |= flags::UNPLACED_PYTHON;
            }
            Placed::Contradiction => {
                // Python frames of another stack would be a wrong stack: native frames alone are right.
                places = &[];
                found |= flags::PYTHON_UNREADABLE;
            }
        }
        path.add(native.len() + python.frames().len(), |path| {
            let mut native = native.iter();
            let mut locations = python.locations(0..python.frames().len());
            let mut done = 0;
            // The path grows from the outermost frame on, and groups are numbered from the innermost.
            for (group, &place) in places.iter().enumerate().rev() {
                let inside = locations.by_ref().take(groups[group].end - begin_of(group));
                if place == NOWHERE {
                    inside.for_each(drop);
                    continue;
                }
                let around = native.by_ref().take((place + 1 - done) as usize);
                around.for_each(|frame| path.push(frame.location));
                inside.for_each(|location| path.push(location));
                done = place + 1;
            }
            native.for_each(|frame| path.push(frame.location));
        });
        Ok(found)
    }
}

/// The frames of the evaluator, innermost first.
fn evaluator_frames<'a>(
    native: &'a [Frame],
    is_evaluator: impl Fn(u64) -> bool + 'a,
) -> impl Iterator<Item = usize> + 'a {
    (0..native.len())
        .rev()
        .filter(move |&frame| is_evaluator(native[frame].pc))
}

/// For each anchor, innermost first, the native frame whose part of the stack contains it. How far that of the outermost
/// frame reaches is not known, so it contains none.
#[inline(always)]
fn by_anchor(native: &[Frame], anchors: impl Iterator<Item = u64>, places: &mut [u32]) -> Placed {
    let holds =
        |frame: usize, anchor: u64| native[frame].sp <= anchor && anchor < native[frame - 1].sp;
    let mut from = native.len().saturating_sub(1);
    let mut placed = Placed::All;
    for (anchor, place) in anchors.zip(places) {
        let mut frame = from;
        while frame > 0 && !holds(frame, anchor) {
            frame -= 1;
        }
        if frame > 0 {
            *place = frame as u32;
            from = frame;
        } else {
            *place = NOWHERE;
            placed = Placed::Some;
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(anchors: &[u64]) -> (Vec<u32>, Placed) {
        let native = [0x1400, 0x1300, 0x1100, 0x1040, 0x1000].map(|sp| {
            let mut frame = Frame::default();
            frame.sp = sp;
            frame
        });
        let mut places = vec![7; anchors.len()];
        let placed = by_anchor(&native, anchors.iter().copied(), &mut places);
        (places, placed)
    }

    #[test]
    fn anchor_is_placed_in_the_frame_that_contains_it() {
        assert_eq!(places(&[0x1040, 0x12ff]), (vec![3, 2], Placed::All));
        assert_eq!(
            places(&[0x1000, 0x1000, 0x1300]),
            (vec![4, 4, 1], Placed::All)
        );
    }

    #[test]
    fn anchor_in_no_frame_is_placed_nowhere_and_moves_no_other() {
        assert_eq!(
            places(&[0x1050, 0xfff, 0x1310, 0, 0x1410]),
            (vec![3, NOWHERE, 1, NOWHERE, NOWHERE], Placed::Some)
        );
    }

    #[test]
    fn anchor_further_in_than_the_one_before_is_placed_nowhere() {
        assert_eq!(places(&[0x1310, 0x1050]), (vec![1, NOWHERE], Placed::Some));
    }
}

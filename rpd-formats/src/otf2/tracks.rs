//! Locations of an archive, and the events on them.

use rpd_core::ids::Nanoseconds;
use zerocopy::{Immutable, IntoBytes};

use super::library::{Archive, Events, Failure, LocationType};

/// Properties that the locations of a track share.
#[derive(Clone, Copy)]
pub(super) struct Description {
    /// Reference of the name's string.
    pub(super) name: u32,
    pub(super) kind: LocationType,
    /// Number of the group.
    pub(super) group: u32,
}

/// A location definition. Its number is its position in the list, from 1.
pub(super) struct Location {
    pub(super) description: Description,
    pub(super) events: u64,
}

/// A period of time on a location, with a name.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
pub(super) struct Slice {
    pub(super) start: Nanoseconds,
    pub(super) end: Nanoseconds,
    /// Number of its region.
    pub(super) region: u32,
    /// Reference of the name's string.
    pub(super) category: u32,
}

/// A location that is being written.
struct Lane<'a> {
    events: Events<'a>,
    /// Index in the list of locations.
    location: usize,
    count: u64,
    /// Time of the last event.
    time: u64,
    /// Slices that have not ended, each within the one before it: end and region.
    open: Vec<(u64, u32)>,
}

impl Lane<'_> {
    /// Ends slices that end at `time` or before: at equal times a region is left before the next is entered.
    #[inline]
    fn advance(&mut self, time: u64) -> Result<(), Failure> {
        while let Some(&(end, region)) = self.open.last()
            && end <= time
        {
            self.open.pop();
            self.events.leave(end, region)?;
            self.time = end;
        }
        Ok(())
    }

    /// Whether a slice nests here.
    #[inline]
    fn takes(&self, start: u64, end: u64) -> bool {
        self.time <= start && self.open.last().is_none_or(|&(outer, _)| end <= outer)
    }

    #[inline]
    fn begin(&mut self, slice: Slice, end: u64) -> Result<(), Failure> {
        self.events
            .enter(slice.start.0, slice.region, slice.category)?;
        self.time = slice.start.0;
        self.count += 2;
        self.open.push((end, slice.region));
        Ok(())
    }
}

/// Writes a track: slices by start, outer ones first. What would cross another goes to a further location of the same
/// description, because regions of a location must nest and times are not to be changed. A track without slices is
/// one location without events.
pub(super) fn write(
    archive: &Archive<'_>,
    locations: &mut Vec<Location>,
    description: Description,
    slices: impl Iterator<Item = Slice>,
) -> Result<(), Failure> {
    let mut add = || {
        locations.push(Location {
            description,
            events: 0,
        });
        Ok(Lane {
            events: archive.events(locations.len() as u64)?,
            location: locations.len() - 1,
            count: 0,
            time: 0,
            open: Vec::new(),
        })
    };
    let mut lanes = vec![add()?];
    for slice in slices {
        let start = slice.start.0;
        let end = slice.end.0.max(start);
        let mut chosen = None;
        for (index, lane) in lanes.iter_mut().enumerate() {
            lane.advance(start)?;
            if lane.takes(start, end) {
                chosen = Some(index);
                break;
            }
        }
        let index = match chosen {
            Some(index) => index,
            None => {
                lanes.push(add()?);
                lanes.len() - 1
            }
        };
        lanes[index].begin(slice, end)?;
    }
    for mut lane in lanes {
        lane.advance(u64::MAX)?;
        locations[lane.location].events = lane.count;
        lane.events.close()?;
    }
    Ok(())
}

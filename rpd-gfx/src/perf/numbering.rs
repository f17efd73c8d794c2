//! Translation of event numbers. Devices count the same events as gfx90a under other numbers, which their tables of
//! counters contain.

use super::catalogue;
use crate::device::{DEVICES, Device};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Number of each event on gfx90a, by its block and number on a device. `None` when both have the same numbers.
#[derive(Debug)]
pub(super) struct Numbering(Option<HashMap<(&'static str, u32), u32>>);

/// The events in a device's table of counters: block, number and name.
fn events(device: &'static Device) -> impl Iterator<Item = (&'static str, u32, &'static str)> {
    device.counters.lines().filter_map(|line| {
        let mut fields = line.split(';');
        let (name, block, event) = (fields.next()?, fields.next()?, fields.next()?);
        Some((block, event.parse().ok()?, name))
    })
}

impl Numbering {
    fn new(device: &'static Device) -> Self {
        if device.name == "gfx90a" {
            return Self(None);
        }
        let mut known: HashMap<(&str, &str), u32> = HashMap::new();
        known.extend(
            catalogue::determined_events().map(|(block, number, name)| ((block, name), number)),
        );
        known
            .extend(catalogue::later_events().map(|(block, number, name)| ((block, name), number)));
        known.extend(
            catalogue::SQ_LEVELS
                .iter()
                .map(|level| (("SQ", level.name), level.number)),
        );
        let numbers = events(device).filter_map(|(block, event, name)| {
            // Later devices number the interfaces to memory: `TCC_EA0_`.
            let name = name.replacen("TCC_EA0_", "TCC_EA_", 1);
            let number = known.get(&(block, name.as_str()))?;
            Some(((block, event), *number))
        });
        Self(Some(numbers.collect()))
    }

    /// The translation for a device.
    pub(super) fn from_device(device: &Device) -> &'static Self {
        static ALL: OnceLock<Vec<Numbering>> = OnceLock::new();
        let all = ALL.get_or_init(|| DEVICES.iter().map(Numbering::new).collect());
        let at = DEVICES.iter().position(|known| known.name == device.name);
        &all[at.unwrap_or(0)]
    }

    /// Number of a device's event in the catalogue; `None` if the catalogue does not have the event.
    pub(super) fn event(&self, block: &str, event: u32) -> Option<u32> {
        match &self.0 {
            None => Some(event),
            Some(numbers) => {
                let block = catalogue::BLOCKS.into_iter().find(|name| *name == block)?;
                numbers.get(&(block, event)).copied()
            }
        }
    }
}

/// Whether the simulator yields a value for an event of a hardware block (`SQ`, `TCC`, ...), by its number on the
/// device.
pub fn determined(device: &Device, block: &str, event: u32) -> bool {
    let event = Numbering::from_device(device).event(block, event);
    event.is_some_and(|event| catalogue::has(block, event))
}

/// Whether the simulator yields the accumulated level of an event: the level added up over all cycles, which the
/// event that is selected after it reads (`SQ_ACCUM_PREV`, `SQ_ACCUM_PREV_HIRES`). The level itself has no value:
/// between dispatches nothing is outstanding.
pub fn accumulates(device: &Device, block: &str, event: u32) -> bool {
    let event = Numbering::from_device(device).event(block, event);
    event.is_some_and(|event| catalogue::has_level(block, event))
}

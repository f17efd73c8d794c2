//! Addresses in code objects that lie in memory and in variables: of functions, and of variables in tables of the program.
//!
//! A replay cannot choose where code is loaded, so that excerpts have these addresses as they were in the capture.

use std::ffi::CString;

use rpd_capture::Call;
use rpd_spool::capture::item;

use crate::error::ReplayError;
use crate::player::Player;

/// Range in which a code object lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodePlace {
    /// Load address in the capture.
    captured: u64,
    /// Load address in the replay.
    now: u64,
    /// Size of the range in bytes.
    size: u64,
}

impl Player {
    /// Finds the places of the code objects that are loaded, and of those that have variables of the call.
    pub(crate) fn find_code(&mut self, call: &Call) -> Result<(), ReplayError> {
        let variables = call.items().filter(|item| item.kind == item::VARIABLE);
        let heads = variables.filter_map(|item| Some(item.variable()?.0));
        let mut keys: Vec<(i64, i32)> = heads
            .map(|head| (head.code, i32::try_from(head.device).unwrap_or(-1)))
            .chain(self.modules.keys().copied())
            .filter(|key| !self.code_places.contains_key(key))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let device = self.device;
        for (code, on) in keys {
            let place = self.code_place(code, on)?;
            self.code_places.insert((code, on), place);
        }
        if device == self.device {
            Ok(())
        } else {
            self.set_device(device)
        }
    }

    /// Address of a code object on a device, if the address of one of its variables is known.
    fn code_place(&mut self, code: i64, device: i32) -> Result<Option<CodePlace>, ReplayError> {
        let row = self.codes.iter().find(|row| row.id == code);
        let Some((blob, (captured, size))) = row.map(|row| (row.blob, row.load)) else {
            return Ok(None);
        };
        if size == 0 {
            return Ok(None);
        }
        let variables = rpd_capture::variables(&mut self.capture, blob)?;
        for (name, offset) in variables {
            let Ok(name) = CString::new(name) else {
                continue;
            };
            self.set_device(device)?;
            let module = self.module(code)?;
            if let Ok((address, _)) = self.variable(module, &name) {
                return Ok(address.checked_sub(offset).map(|now| CodePlace {
                    captured,
                    now,
                    size,
                }));
            }
        }
        Ok(None)
    }

    /// Replaces the words of `bytes` that are addresses in code objects of the capture by those of the replay.
    pub(crate) fn translate_code(&self, bytes: &mut [u8]) {
        self.move_code(bytes, |place| (place.captured, place.now));
    }

    /// Replaces the words of `bytes` that are addresses in code objects of the replay by those of the capture.
    pub(crate) fn restore_code(&self, bytes: &mut [u8]) {
        self.move_code(bytes, |place| (place.now, place.captured));
    }

    fn move_code(&self, bytes: &mut [u8], ends: impl Fn(&CodePlace) -> (u64, u64)) {
        if !self.options.guess {
            return;
        }
        let places = self.code_places.values().flatten();
        let mut moved: Vec<(u64, u64, u64)> = places
            .map(|place| (ends(place), place.size))
            .map(|((from, to), size)| (from, to, size))
            .filter(|(from, to, _)| from != to)
            .collect();
        if moved.is_empty() {
            return;
        }
        moved.sort_unstable();
        for word in bytes.as_chunks_mut::<8>().0 {
            let value = u64::from_le_bytes(*word);
            let after = moved.partition_point(|(from, ..)| *from <= value);
            if let Some((from, to, size)) = after.checked_sub(1).and_then(|at| moved.get(at))
                && value - from < *size
            {
                *word = (to + (value - from)).to_le_bytes();
            }
        }
    }
}

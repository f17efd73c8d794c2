//! Addresses that a program reserves itself, and the physical memory that it maps there.
//!
//! At the addresses of the capture all memory is there from the start, and these calls have nothing left to do. At other addresses
//! they are made again.

use rpd_capture::Call;
use rpd_spool::capture::{HandleKind, Operation, number as n};

use crate::arguments::{input, out_word, set_word, word};
use crate::error::ReplayError;
use crate::hip::word_of;
use crate::player::Player;

/// Bytes of `hipMemAccessDesc`: kind of location, device, flags.
const ACCESS: usize = 12;

/// Addresses that were reserved.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservedRange {
    /// First address in the capture.
    pub(crate) base: u64,
    /// Size of the range in bytes.
    pub(crate) size: u64,
    /// First address in the replay.
    pub(crate) now: u64,
}

impl Player {
    /// Makes a call about addresses or physical memory.
    pub(crate) fn virtual_memory(
        &mut self,
        call: &Call,
        operation: &'static Operation,
    ) -> Result<(), ReplayError> {
        // All ranges are there, at the addresses of the capture: the call only changes what has memory.
        if self.same {
            return self.follow_mappings(call, operation);
        }
        match call.api {
            n::hipMemAddressReserve => self.reserve(call),
            n::hipMemAddressFree => {
                let base = call.argument("devPtr");
                let Some(now) = self.reserved_at(base) else {
                    return Ok(());
                };
                self.reserved.retain(|known| known.base != base);
                let size = call.argument("size");
                self.hip.check("hipMemAddressFree", &[now, size])
            }
            n::hipMemCreate => self.create(call, operation),
            n::hipMemMap => self.map(call),
            n::hipMemSetAccess => self.set_access(call),
            // The handle is found by an address inside the memory, not by an earlier handle.
            n::hipMemRetainAllocationHandle => {
                let address = call.argument("addr");
                let Some(now) = self.translation.find(address) else {
                    return Err(ReplayError::damaged(format!(
                        "the capture has no memory at {address:#x}"
                    )));
                };
                let mut found = 0u64;
                self.hip
                    .check("hipMemRetainAllocationHandle", &[word_of(&mut found), now])?;
                if let Some(old) = out_word(call, 0) {
                    self.handles.insert((HandleKind::Physical, old), found);
                }
                Ok(())
            }
            n::hipMemUnmap => {
                let (base, size) = (call.argument("ptr"), call.argument("size"));
                let now = self.reserved_at(base);
                // Forgotten even if the runtime's call fails: the program believes it unmapped.
                self.translation.remove_all(base, size);
                match now {
                    Some(now) => self.hip.check("hipMemUnmap", &[now, size]),
                    None => Ok(()),
                }
            }
            _ => self.generic(call, operation),
        }
    }

    /// Follows which addresses of the capture have memory, in a replay at the same addresses.
    fn follow_mappings(&mut self, call: &Call, operation: &Operation) -> Result<(), ReplayError> {
        match (call.api, call.allocation()) {
            (n::hipMemMap, Some(made)) => {
                self.reuse(call, operation, made.base, made.size)?;
                self.translation.insert(made.base, made.size, made.base);
            }
            (n::hipMemUnmap, _) => {
                self.wait_for_all()?;
                let (base, size) = (call.argument("ptr"), call.argument("size"));
                self.translation.remove_all(base, size);
            }
            _ => self.report.skipped += 1,
        }
        Ok(())
    }

    /// Address in the replay of a reserved one.
    fn reserved_at(&self, address: u64) -> Option<u64> {
        let mut reserved = self.reserved.iter();
        let found = reserved.find(|one| address.wrapping_sub(one.base) < one.size)?;
        Some(found.now + (address - found.base))
    }

    fn reserve(&mut self, call: &Call) -> Result<(), ReplayError> {
        let (size, alignment) = (call.argument("size"), call.argument("alignment"));
        let mut now = 0u64;
        let words = [word_of(&mut now), size, alignment, 0, 0];
        self.hip.check("hipMemAddressReserve", &words)?;
        if let Some(base) = out_word(call, 0) {
            self.reserved.push(ReservedRange { base, size, now });
        }
        Ok(())
    }

    /// Makes physical memory, on the device that the replay has for that of the capture.
    fn create(&mut self, call: &Call, operation: &'static Operation) -> Result<(), ReplayError> {
        let (Some(properties), Some(old)) = (input(call), out_word(call, 0)) else {
            return self.generic(call, operation);
        };
        let mut properties = properties.to_vec();
        // The second word: kind of location, device.
        let location = word(&properties, 1);
        let device = self.place((location >> 32) as i32).cast_unsigned();
        let location = location & 0xffff_ffff | u64::from(device) << 32;
        set_word(&mut properties, 1, location);
        let mut made = 0u64;
        let at = properties.as_ptr() as u64;
        let words = [
            word_of(&mut made),
            call.argument("size"),
            at,
            call.argument("flags"),
        ];
        self.hip.check("hipMemCreate", &words)?;
        self.handles.insert((HandleKind::Physical, old), made);
        Ok(())
    }

    fn map(&mut self, call: &Call) -> Result<(), ReplayError> {
        let (base, size) = (call.argument("ptr"), call.argument("size"));
        let now = match self.reserved_at(base) {
            Some(now) => {
                let handle = self.handle(HandleKind::Physical, call.argument("handle"))?;
                let (offset, flags) = (call.argument("offset"), call.argument("flags"));
                self.hip
                    .check("hipMemMap", &[now, size, offset, handle, flags])?;
                // The call that does this may be about more than an excerpt has.
                self.allow(now, size)?;
                now
            }
            // An excerpt has the memory without the reservation.
            None => {
                let mut now = 0u64;
                self.hip.check("hipMalloc", &[word_of(&mut now), size])?;
                now
            }
        };
        self.translation.insert(base, size, now);
        Ok(())
    }

    /// Lets the current device access memory.
    fn allow(&mut self, now: u64, size: u64) -> Result<(), ReplayError> {
        const DEVICE: u32 = 1;
        const READ_WRITE: u32 = 3;
        let device = self.place(self.device).cast_unsigned();
        let access = [DEVICE, device, READ_WRITE];
        let words = [now, size, access.as_ptr() as u64, 1];
        self.hip.check("hipMemSetAccess", &words)
    }

    fn set_access(&mut self, call: &Call) -> Result<(), ReplayError> {
        let Some(now) = self.reserved_at(call.argument("ptr")) else {
            return Ok(());
        };
        let mut list = input(call).unwrap_or_default().to_vec();
        for access in list.chunks_exact_mut(ACCESS) {
            let (_, rest) = access.split_at_mut(4);
            let (device, _) = rest.split_at_mut(4);
            if let Ok(old) = <[u8; 4]>::try_from(&*device) {
                let now = self.place(i32::from_le_bytes(old));
                device.copy_from_slice(&now.to_le_bytes());
            }
        }
        let count = (list.len() / ACCESS) as u64;
        let words = [now, call.argument("size"), list.as_ptr() as u64, count];
        self.hip.check("hipMemSetAccess", &words)
    }
}

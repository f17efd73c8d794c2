//! Addresses of captured memory in the replay.
//!
//! At the same addresses: every range that the capture ever used is held before the runtime is loaded, then handed to it as
//! virtual memory, and kept until the replay ends; allocations and frees change nothing. Otherwise memory is allocated as
//! the calls say, and addresses are translated by range.

use std::collections::BTreeMap;

use rpd_capture::Memory;
use rpd_spool::capture::memory_kind;

use crate::error::{ReplayError, Status};
use crate::hip::{Hip, word_of};

/// A range of addresses that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) base: u64,
    pub(crate) size: u64,
    pub(crate) host: bool,
    pub(crate) device: i32,
}

/// The ranges that the memory of a capture needs, each rounded outwards to whole pages.
pub(crate) fn regions(memory: &[Memory]) -> Vec<Region> {
    const PAGE: u64 = 4096;
    let mut all: Vec<Region> = memory
        .iter()
        .map(|one| {
            let base = one.base / PAGE * PAGE;
            let end = one.base.saturating_add(one.size).next_multiple_of(PAGE);
            Region {
                base,
                size: end - base,
                host: memory_kind::is_host_visible(one.kind),
                device: one.device,
            }
        })
        .collect();
    all.sort_by_key(|region| region.base);
    let mut merged: Vec<Region> = Vec::new();
    for region in all {
        match merged.last_mut() {
            Some(last) if region.base < last.base + last.size => {
                let end = (region.base + region.size).max(last.base + last.size);
                last.size = end - last.base;
                // Memory that was of both kinds at different times must be accessible to both sides.
                last.host |= region.host;
            }
            _ => merged.push(region),
        }
    }
    merged
}

fn map(base: u64, size: u64, protection: i32, fixed: i32) -> Result<(), std::io::Error> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    // SAFETY: MAP_FIXED_NOREPLACE replaces nothing; MAP_FIXED is only used on ranges that are held already.
    let made = unsafe {
        libc::mmap(
            base as *mut libc::c_void,
            size as usize,
            protection,
            flags,
            -1,
            0,
        )
    };
    if made == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    if made as u64 != base {
        unmap(made as u64, size);
        return Err(std::io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(())
}

fn unmap(base: u64, size: u64) {
    // SAFETY: only ranges that this module has mapped.
    unsafe { libc::munmap(base as *mut libc::c_void, size as usize) };
}

/// Mapping that occupies a range, from the list of this process' mappings.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
fn occupant(base: u64, size: u64) -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        let end = u64::from_str_radix(end, 16).ok()?;
        let overlaps = start < base + size && end > base;
        overlaps.then(|| words.nth(4).unwrap_or("memory of this process").to_owned())
    })
}

/// Ranges of addresses that are held so that nothing else takes them.
#[derive(Debug, Default)]
pub(crate) struct HeldRanges {
    regions: Vec<Region>,
}

impl HeldRanges {
    /// Holds the regions; the reason when one cannot be had.
    pub(crate) fn hold(regions: Vec<Region>) -> Result<HeldRanges, String> {
        let mut held = HeldRanges::default();
        for region in regions {
            if map(
                region.base,
                region.size,
                libc::PROT_NONE,
                libc::MAP_FIXED_NOREPLACE,
            )
            .is_err()
            {
                let who = occupant(region.base, region.size);
                held.release();
                return Err(format!(
                    "addresses {:#x} to {:#x} are taken by {}",
                    region.base,
                    region.base + region.size,
                    who.unwrap_or_else(|| "something that is not listed".to_owned())
                ));
            }
            held.regions.push(region);
        }
        Ok(held)
    }

    /// Gives all addresses back.
    pub(crate) fn release(&mut self) {
        for region in self.regions.drain(..) {
            unmap(region.base, region.size);
        }
    }

    /// Puts memory of the runtime at the addresses. The reason when that is impossible; what was done until then is undone
    /// as far as the runtime lets it.
    pub(crate) fn occupy(
        mut self,
        hip: &mut Hip,
        device: impl Fn(i32) -> i32,
    ) -> Result<(), String> {
        let regions = std::mem::take(&mut self.regions);
        let mut failed = None;
        for (index, region) in regions.iter().enumerate() {
            let done = if region.host {
                occupy_host(hip, region)
            } else {
                occupy_device(hip, region, device(region.device))
            };
            if let Err(reason) = done {
                failed = Some((index, reason));
                break;
            }
        }
        match failed {
            None => Ok(()),
            Some((index, reason)) => {
                for region in &regions[index + 1..] {
                    unmap(region.base, region.size);
                }
                Err(reason)
            }
        }
    }
}

fn occupy_host(hip: &mut Hip, region: &Region) -> Result<(), String> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    map(region.base, region.size, access, libc::MAP_FIXED)
        .map_err(|error| format!("host memory at {:#x}: {error}", region.base))?;
    hip.check("hipHostRegister", &[region.base, region.size, 0])
        .map_err(|error| error.message)
}

fn occupy_device(hip: &mut Hip, region: &Region, device: i32) -> Result<(), String> {
    const PINNED: u32 = 1;
    const DEVICE: u32 = 1;
    let text = |error: ReplayError| error.message;
    // type, handle types, location (kind, number), then what is not used.
    let mut properties = [0u32; 16];
    properties[0] = PINNED;
    properties[2] = DEVICE;
    properties[3] = device.cast_unsigned();
    let mut granularity = 0u64;
    hip.check(
        "hipMemGetAllocationGranularity",
        &[word_of(&mut granularity), word_of(&mut properties), 0],
    )
    .map_err(text)?;
    if granularity == 0 || !region.base.is_multiple_of(granularity) {
        return Err(format!(
            "memory at {:#x} cannot be placed in units of {granularity} bytes",
            region.base
        ));
    }
    let size = region.size.next_multiple_of(granularity);
    // The range is held by a mapping of this process, which has to go before the runtime can have it.
    unmap(region.base, region.size);
    let mut got = 0u64;
    hip.check(
        "hipMemAddressReserve",
        &[word_of(&mut got), size, 0, region.base, 0],
    )
    .map_err(text)?;
    if got != region.base {
        // Success alone proves nothing: runtimes answer with other addresses where the wanted ones are taken.
        let _ = hip.call("hipMemAddressFree", &[got, size]);
        return Err(format!(
            "the runtime reserved {got:#x} where {:#x} was requested",
            region.base
        ));
    }
    let mut handle = 0u64;
    hip.check(
        "hipMemCreate",
        &[word_of(&mut handle), size, word_of(&mut properties), 0],
    )
    .map_err(text)?;
    hip.check("hipMemMap", &[region.base, size, 0, handle, 0])
        .map_err(text)?;
    // All devices get access: the program's peer access is not a call of its own here.
    const READ_WRITE: u32 = 3;
    let mut count = 0i32;
    hip.check("hipGetDeviceCount", &[word_of(&mut count)])
        .map_err(text)?;
    let mut access: Vec<[u32; 3]> = vec![[DEVICE, device.cast_unsigned(), READ_WRITE]];
    access.extend(
        (0..count)
            .filter(|other| *other != device)
            .map(|other| [DEVICE, other.cast_unsigned(), READ_WRITE]),
    );
    // Devices that cannot reach each other's memory: the own one alone.
    let all = hip
        .call(
            "hipMemSetAccess",
            &[
                region.base,
                size,
                access.as_ptr() as u64,
                access.len() as u64,
            ],
        )
        .map_err(text)?;
    if all != crate::hip::SUCCESS {
        hip.check(
            "hipMemSetAccess",
            &[region.base, size, access.as_ptr() as u64, 1],
        )
        .map_err(text)?;
    }
    Ok(())
}

/// Live memory of the capture and where it lies now.
#[derive(Debug, Default)]
pub(crate) struct Translation {
    /// Live memory by its base in the capture: size in bytes, and base now.
    live: BTreeMap<u64, (u64, u64)>,
    /// Number of translated words that are addresses for certain; `probable`: that only look like addresses.
    pub(crate) certain: u64,
    pub(crate) probable: u64,
}

impl Translation {
    pub(crate) fn insert(&mut self, base: u64, size: u64, now: u64) {
        self.live.insert(base, (size, now));
    }

    pub(crate) fn remove(&mut self, base: u64) -> Option<(u64, u64)> {
        self.live.remove(&base)
    }

    /// Removes all memory that begins in a range.
    pub(crate) fn remove_all(&mut self, base: u64, size: u64) {
        let end = base.saturating_add(size);
        self.live.retain(|at, _| !(base..end).contains(at));
    }

    /// Address in the replay of memory that is allocated there. The address right after an allocation counts as part
    /// of it, where no other allocation begins.
    pub(crate) fn find(&self, address: u64) -> Option<u64> {
        let (&base, &(size, now)) = self.live.range(..=address).next_back()?;
        (address - base <= size).then(|| now + (address - base))
    }

    /// The live memory that an address lies in: captured base, bytes, base now.
    pub(crate) fn memory(&self, address: u64) -> Option<(u64, u64, u64)> {
        let (&base, &(size, now)) = self.live.range(..=address).next_back()?;
        (address - base < size).then_some((base, size, now))
    }

    /// All live memory: base in the capture, size in bytes, base now.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.live
            .iter()
            .map(|(base, (size, now))| (*base, *size, *now))
    }

    /// Replaces the words of `bytes` that are addresses of live memory in the replay by those of the capture.
    pub(crate) fn restore_words(&self, bytes: &mut [u8]) {
        let by_place: BTreeMap<u64, (u64, u64)> = self
            .all()
            .map(|(base, size, now)| (now, (size, base)))
            .collect();
        for word in bytes.as_chunks_mut::<8>().0 {
            let value = u64::from_le_bytes(*word);
            let found = by_place.range(..=value).next_back();
            if let Some((now, (_, base))) = found.filter(|(now, (size, _))| value - **now < *size) {
                *word = (base + (value - now)).to_le_bytes();
            }
        }
    }

    /// Replaces the words of `bytes` that are addresses of live memory; how many were.
    pub(crate) fn translate_words(&self, bytes: &mut [u8]) -> u64 {
        let mut found = 0;
        let (words, _) = bytes.as_chunks_mut::<8>();
        for word in words {
            let value = u64::from_le_bytes(*word);
            // One past the end is not evidence in data.
            if let Some((base, _, now)) = self.memory(value)
                && value != 0
            {
                *word = (now + (value - base)).to_le_bytes();
                found += 1;
            }
        }
        found
    }
}

/// The error for memory that cannot be at its address in the capture, with the reason.
pub(crate) fn refused(reason: &str) -> ReplayError {
    ReplayError::new(
        Status::Failed,
        format!(
            "memory cannot have the addresses of the capture: {reason} (--va remap uses others)"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(base: u64, size: u64, kind: u32) -> Memory {
        Memory {
            number: 1,
            kind,
            device: 0,
            base,
            size,
            flags: 0,
            life: (1, None),
        }
    }

    /// Checks capture-31.
    #[test]
    fn regions_join_memory_in_one_page() {
        let all = [
            memory(0x10_0000, 100, memory_kind::DEVICE),
            memory(0x10_0800, 100, memory_kind::DEVICE),
            memory(0x20_0000, 4097, memory_kind::HOST),
        ];
        let found = regions(&all);
        let shape: Vec<_> = found
            .iter()
            .map(|one| (one.base, one.size, one.host))
            .collect();
        assert_eq!(shape, [(0x10_0000, 4096, false), (0x20_0000, 8192, true)]);
    }

    /// Checks capture-28.
    #[test]
    fn translation_maps_addresses_by_range() {
        let mut translation = Translation::default();
        translation.insert(1000, 100, 5000);
        translation.insert(1100, 100, 9000);
        assert_eq!(translation.find(1000), Some(5000));
        assert_eq!(translation.find(1050), Some(5050), "inside");
        assert_eq!(translation.find(1100), Some(9000), "the start of the next");
        assert_eq!(translation.find(1200), Some(9100), "one past the end");
        assert_eq!(translation.find(1201), None);
        assert_eq!(translation.find(999), None);
        let mut bytes = Vec::new();
        for word in [1001u64, 7, 1200] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        assert_eq!(translation.translate_words(&mut bytes), 1);
        assert_eq!(bytes[..8], 5001u64.to_le_bytes());
        translation.restore_words(&mut bytes);
        assert_eq!(
            bytes[..16],
            [1001u64.to_le_bytes(), 7u64.to_le_bytes()].concat()
        );
    }

    /// Checks capture-30.
    #[test]
    fn hold_names_the_mapping_in_a_taken_range() {
        let here = main_address() / 4096 * 4096;
        let region = Region {
            base: here,
            size: 4096,
            host: true,
            device: 0,
        };
        let reason = HeldRanges::hold(vec![region]).expect_err("taken");
        assert!(reason.contains("are taken by /"), "{reason}");
    }

    fn main_address() -> u64 {
        main_address as fn() -> u64 as usize as u64
    }
}

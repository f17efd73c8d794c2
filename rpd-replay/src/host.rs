//! Host memory of the program: the replay's pinned and managed memory, and buffers for the rest.

use std::collections::{HashMap, HashSet};

use rpd_spool::capture::DataHeader;

use crate::addresses::Translation;
use crate::error::ReplayError;

/// Bytes of the address space that a window stands for. What a program has of it lies in few of them.
const WINDOW: u64 = 1 << 42;

/// Bytes of a window that are made accessible at once.
const UNIT: u64 = 1 << 20;

/// Memory that stands for host memory that the program did not get from the runtime. What stands for an address never moves: work
/// under way and graphs refer to it. It is kept until the process ends, for the same reason.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    /// Addresses of the windows, by the number of the window.
    windows: HashMap<u64, u64>,
    /// Numbers of the units that can be accessed.
    ready: HashSet<u64>,
}

impl HostMemory {
    /// Address now of `len` bytes at a captured host address.
    pub(crate) fn locate(
        &mut self,
        translation: &Translation,
        address: u64,
        len: u64,
    ) -> Result<u64, ReplayError> {
        match translation.memory(address) {
            Some((base, size, now)) if len <= size - (address - base) => Ok(now + (address - base)),
            Some((base, size, _)) => Err(ReplayError::damaged(format!(
                "{len} bytes at {address:#x} do not fit into the {size} bytes of memory at {base:#x}"
            ))),
            None => self.buffer(address, len),
        }
    }

    /// Address of the buffer that stands for `len` bytes at a captured host address.
    pub(crate) fn buffer(&mut self, address: u64, len: u64) -> Result<u64, ReplayError> {
        let failed = |why: &str| {
            ReplayError::failed(format!(
                "no memory for {len} bytes of the program at {address:#x}: {why}"
            ))
        };
        let number = address / WINDOW;
        let last = address.checked_add(len.max(1) - 1);
        let Some(last) = last.filter(|last| last / WINDOW == number) else {
            return Err(failed("they are not in one part of its address space"));
        };
        if len > physical_memory() {
            return Err(failed("this machine has less memory"));
        }
        let window = match self.windows.get(&number) {
            Some(window) => *window,
            None => {
                let window = reserve(WINDOW).map_err(|error| failed(&error.to_string()))?;
                self.windows.insert(number, window);
                window
            }
        };
        let at = |address: u64| window + address % WINDOW;
        for unit in address / UNIT..=last / UNIT {
            if self.ready.insert(unit) {
                make_accessible(at(unit * UNIT), UNIT)
                    .map_err(|error| failed(&error.to_string()))?;
            }
        }
        Ok(at(address))
    }
}

/// Bytes of memory of this machine; all where that is not known.
fn physical_memory() -> u64 {
    // SAFETY: no pointers are passed.
    let (pages, page) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    match (u64::try_from(pages), u64::try_from(page)) {
        (Ok(pages), Ok(page)) if pages > 0 => pages.saturating_mul(page),
        _ => u64::MAX,
    }
}

/// Reserves addresses without memory.
fn reserve(size: u64) -> std::io::Result<u64> {
    // SAFETY: a new mapping.
    let made = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size as usize,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    match made {
        libc::MAP_FAILED => Err(std::io::Error::last_os_error()),
        made => Ok(made as u64),
    }
}

fn make_accessible(base: u64, size: u64) -> std::io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: part of a mapping of this module.
    match unsafe { libc::mprotect(base as *mut libc::c_void, size as usize, access) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Bytes from the first to after the last that data lie in.
pub(crate) fn span(data: &DataHeader) -> u64 {
    // Impossible numbers are refused when the call is read.
    rpd_capture::span(data).unwrap_or(u64::MAX)
}

/// Address and length of the pieces that data consist of, from `start` on.
fn pieces(data: &DataHeader, start: u64) -> impl Iterator<Item = (u64, usize)> {
    let (width, rows) = match data.width {
        0 => (data.size, 1),
        width => (width, data.rows.max(1)),
    };
    let count = data.size.checked_div(width).unwrap_or(0);
    let (pitch, slice_rows) = (data.pitch, data.slice_rows);
    (0..count).map(move |index| {
        let before = index / rows * slice_rows + index % rows;
        (start + before * pitch, width as usize)
    })
}

/// Writes the bytes of data to where they are now.
///
/// # Safety
/// The span of the data at `start` can be written.
pub(crate) unsafe fn scatter(data: &DataHeader, start: u64, bytes: &[u8]) {
    let mut at = 0;
    for (address, len) in pieces(data, start) {
        let Some(part) = bytes.get(at..at + len) else {
            return;
        };
        // SAFETY: by the contract of this function.
        unsafe { std::ptr::copy_nonoverlapping(part.as_ptr(), address as *mut u8, len) };
        at += len;
    }
}

/// Reads the bytes of data from where they are now.
///
/// # Safety
/// The span of the data at `start` can be read.
pub(crate) unsafe fn gather(data: &DataHeader, start: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.size as usize);
    for (address, len) in pieces(data, start) {
        // SAFETY: by the contract of this function.
        bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(address as *const u8, len) });
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_buffer_for_a_captured_address_does_not_move() {
        let mut host = HostMemory::default();
        let first = host.buffer(0x7f00_0001_0010, 16).expect("memory");
        // SAFETY: there are that many bytes.
        unsafe { (first as *mut u64).write(77) };
        let wide = host.buffer(0x7f00_0001_0000, 3 << 20).expect("memory");
        assert_eq!(wide + 0x10, first);
        // SAFETY: as above.
        unsafe { ((wide + (3 << 20) - 8) as *mut u64).write(1) };
        // Another window.
        assert_ne!(host.buffer(0x5500_0001_0010, 16).expect("memory"), first);
        let error = host.buffer(0x7fff_ffff_ffff, 2).expect_err("two windows");
        assert!(
            error.message.contains("0x7fffffffffff"),
            "{}",
            error.message
        );
    }
}

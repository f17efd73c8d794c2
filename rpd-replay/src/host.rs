//! Host memory of the program: pinned and managed memory where the replay has it, and buffers for the rest.

use std::collections::BTreeMap;

use rpd_spool::capture::DataHeader;

use crate::addresses::Translation;

/// Buffers that stand for host memory that the program did not get from the runtime.
#[derive(Debug, Default)]
pub(crate) struct HostMemory {
    buffers: BTreeMap<u64, Box<[u64]>>,
    /// Buffers that larger ones have replaced; work under way may still use them.
    replaced: Vec<Box<[u64]>>,
}

fn bytes_of(buffer: &[u64]) -> u64 {
    buffer.len() as u64 * 8
}

impl HostMemory {
    /// Address in the replay of `len` bytes at a captured host address.
    pub(crate) fn locate(&mut self, translation: &Translation, address: u64, len: u64) -> u64 {
        if let Some((base, _, now)) = translation.memory(address) {
            return now + (address - base);
        }
        self.buffer(address, len)
    }

    /// The buffer for `len` bytes at a captured host address.
    pub(crate) fn buffer(&mut self, address: u64, len: u64) -> u64 {
        let len = len.max(1);
        if let Some((&base, buffer)) = self.buffers.range(..=address).next_back()
            && address + len <= base + bytes_of(buffer)
        {
            return buffer.as_ptr() as u64 + (address - base);
        }
        let start = address / 4096 * 4096;
        let end = (address + len).next_multiple_of(4096);
        let overlapping: Vec<u64> = self
            .buffers
            .iter()
            .filter(|(base, buffer)| **base < end && **base + bytes_of(buffer) > start)
            .map(|(base, _)| *base)
            .collect();
        let (mut low, mut high) = (start, end);
        for base in &overlapping {
            low = low.min(*base);
            high = high.max(base + bytes_of(&self.buffers[base]));
        }
        let mut fresh = vec![0u64; ((high - low) / 8) as usize].into_boxed_slice();
        for base in overlapping {
            if let Some(old) = self.buffers.remove(&base) {
                let at = ((base - low) / 8) as usize;
                fresh[at..at + old.len()].copy_from_slice(&old);
                self.replaced.push(old);
            }
        }
        let now = fresh.as_ptr() as u64 + (address - low);
        self.buffers.insert(low, fresh);
        now
    }
}

/// Bytes from the first to after the last that data lie in.
pub(crate) fn span(data: &DataHeader) -> u64 {
    if data.width == 0 || data.rows == 0 {
        return data.size;
    }
    let slices = (data.size / (data.width * data.rows)).max(1);
    let rows = (slices - 1) * data.slice_rows + data.rows;
    (rows - 1) * data.pitch + data.width
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
    fn buffers_grow_and_keep_their_content() {
        let mut host = HostMemory::default();
        let first = host.buffer(0x1_0010, 16);
        // SAFETY: the buffer has that many bytes.
        unsafe { (first as *mut u64).write(77) };
        let wide = host.buffer(0x1_0000, 0x3000);
        assert_ne!(first, wide);
        // SAFETY: as above.
        assert_eq!(unsafe { ((wide + 0x10) as *const u64).read() }, 77);
        assert_eq!(host.buffer(0x1_0010, 16), wide + 0x10);
    }
}

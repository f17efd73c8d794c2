//! The items of a record.

use rpd_spool::capture::{
    DataHeader, INLINE_BYTES, ItemHeader, NO_ARGUMENT, data_place, data_use, item, push_item,
};
use zerocopy::IntoBytes;

use super::ranges::Range;
use super::{options, stage};

/// Longest struct, text or array that is taken; a call with a longer one is not replayed right; none is known.
const LONGEST: usize = 1 << 20;

/// Items, one after the other.
pub(super) struct Items {
    bytes: Vec<u8>,
}

impl Items {
    pub(super) fn new() -> Items {
        Items { bytes: Vec::new() }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn header(&mut self, kind: u16, argument: u16, len: usize) {
        let header = ItemHeader {
            kind,
            argument,
            len: len as u32,
        };
        self.bytes.extend_from_slice(header.as_bytes());
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
    }

    /// Adds an item with this payload.
    pub(super) fn add(&mut self, kind: u16, argument: u16, payload: &[u8]) {
        let payload = &payload[..payload.len().min(LONGEST)];
        push_item(&mut self.bytes, kind, argument, payload);
    }

    /// Adds an item with `len` bytes of the program's memory; nothing for a null pointer.
    ///
    /// # Safety
    /// The bytes can be read.
    pub(super) unsafe fn add_memory(&mut self, kind: u16, argument: u16, address: u64, len: usize) {
        if address != 0 && len > 0 && len <= LONGEST {
            // SAFETY: by the contract of this function.
            let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
            self.add(kind, argument, bytes);
        }
    }

    /// Adds the kernel of a launch: its code object and its name.
    pub(super) fn add_kernel(&mut self, code: u64, name: &[u8]) {
        self.header(item::KERNEL, NO_ARGUMENT, 8 + name.len());
        self.bytes.extend_from_slice(code.as_bytes());
        self.bytes.extend_from_slice(name);
        self.pad();
    }

    /// Adds bytes of host memory. `copy` is the start of the copy that wrote them, 0 for this call. `always` takes them also
    /// when the capture is without data. False when they could not be read or stored.
    pub(super) fn add_data(
        &mut self,
        range: &Range,
        purpose: u32,
        copy: u64,
        always: bool,
    ) -> bool {
        let size = range.bytes();
        let mut data = DataHeader {
            address: range.address,
            size,
            offset: data_place::SKIPPED,
            copy,
            pitch: range.pitch,
            width: range.width,
            slice_rows: range.slice_rows,
            rows: range.rows,
            purpose,
            reserved: 0,
        };
        let wanted = always
            || options().is_some_and(|options| match purpose {
                data_use::OUTPUT => options.outputs && options.data,
                _ => options.data,
            });
        // Without data the item still tells the replay what the call read, and how much.
        if !wanted {
            self.add(item::DATA, NO_ARGUMENT, data.as_bytes());
            return true;
        }
        // Counted before it is stored, so that the limit ends the capture at the data that exceed it.
        stage::count_data(size);
        // Small data are cheaper in the record than as a piece of the staging file, which is rounded up.
        if size <= INLINE_BYTES as u64 {
            let mut bytes = [0; INLINE_BYTES];
            let bytes = &mut bytes[..size as usize];
            if !stage::read(range, bytes) {
                return false;
            }
            data.offset = data_place::INLINE;
            self.header(
                item::DATA,
                NO_ARGUMENT,
                size_of::<DataHeader>() + bytes.len(),
            );
            self.bytes.extend_from_slice(data.as_bytes());
            self.bytes.extend_from_slice(bytes);
            self.pad();
            return true;
        }
        let Some(offset) = stage::store(range, purpose == data_use::OUTPUT) else {
            return false;
        };
        data.offset = offset;
        self.add(item::DATA, NO_ARGUMENT, data.as_bytes());
        true
    }
}

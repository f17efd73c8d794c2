//! A place in the meta stream for a note of a forked child that has no recording of its own: what it ran without rpd.
//!
//! Like the sums, the record is mapped a second time, so that a forked child reaches it. It has one text, and counts.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rpd_spool::format::{RecordHeader, TimedText};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{StreamWriter, map_again, record_len};
use zerocopy::{FromZeros, IntoBytes};

/// Longest text in bytes; a longer one is cut.
const TEXT: usize = 256;

/// [`TimedText`] with its text, as it is shared between processes.
#[repr(C)]
pub(super) struct ChildNote {
    _header: RecordHeader,
    _time: u64,
    /// Number of children that had something to note.
    count: AtomicU64,
    /// 0 until the text is complete.
    text_len: AtomicU32,
    _tid: u32,
    text: [std::cell::UnsafeCell<u8>; TEXT],
}

const _: () = {
    assert!(size_of::<ChildNote>() == size_of::<TimedText>() + TEXT);
    assert!(std::mem::offset_of!(ChildNote, count) == std::mem::offset_of!(TimedText, value));
    assert!(std::mem::offset_of!(ChildNote, text_len) == std::mem::offset_of!(TimedText, text_len));
};

// SAFETY: the text is written once, by whoever counts first.
unsafe impl Sync for ChildNote {}

impl ChildNote {
    /// Appends the record. `None` where it cannot be stored or mapped.
    pub(super) fn append(meta: &mut StreamWriter) -> Option<&'static ChildNote> {
        let len = record_len(size_of::<TimedText>(), TEXT);
        let mut fixed = TimedText::new_zeroed();
        fixed.header = RecordKind::Note.head(TEXT);
        let record = meta.append_open(len, |bytes| {
            bytes[..size_of::<TimedText>()].copy_from_slice(fixed.as_bytes());
        });
        let address = match record.0 as usize {
            0 => return None,
            address => map_again(address, len)?,
        };
        // SAFETY: the second mapping holds the whole record and is never removed; records lie at multiples of 8, and all
        // accesses to its numbers are atomic.
        Some(unsafe { address.cast::<ChildNote>().as_ref() })
    }

    /// Writes the note, or counts it when there is one.
    pub(super) fn write(&self, text: &str) {
        if self.count.fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        let len = text.floor_char_boundary(TEXT);
        for (place, byte) in self.text.iter().zip(&text.as_bytes()[..len]) {
            // SAFETY: only the first caller gets here, and readers look at the text once its length is there.
            unsafe { place.get().write(*byte) };
        }
        self.text_len.store(len as u32, Ordering::Release);
    }
}

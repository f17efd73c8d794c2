//! Records of the meta stream.

use rpd_spool::format::{RecordHeader, TimedText};
use rpd_spool::record::RecordKind;
use rpd_spool::writer::{now, real_now, record_len};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::process::{self, Process};
use super::thread;

/// Appends `fixed`, which begins with its head, and `text`, its tail.
pub(crate) fn write<T: IntoBytes + Immutable>(fixed: &T, text: &[u8]) -> bool {
    process::current().is_some_and(|process| write_to(process, fixed, text))
}

fn write_to<T: IntoBytes + Immutable>(process: &Process, fixed: &T, text: &[u8]) -> bool {
    let fixed = fixed.as_bytes();
    let len = record_len(fixed.len(), text.len());
    debug_assert!(
        RecordHeader::read_from_prefix(fixed).is_ok_and(|(head, _)| head.len as usize == len),
        "the head was made for a tail of another length"
    );
    let fill = |bytes: &mut [u8]| {
        bytes[..fixed.len()].copy_from_slice(fixed);
        bytes[fixed.len()..][..text.len()].copy_from_slice(text);
    };
    let written = process.try_meta(|meta| meta.append(len, fill));
    // A signal handler that interrupted a writer of the meta stream: readers take facts from other streams as well.
    written.unwrap_or_else(|| thread::append_fact(len, fill))
}

/// A record that something happened now.
fn moment(kind: RecordKind, value: u64, text: &[u8]) -> TimedText {
    TimedText {
        header: kind.head(text.len()),
        time: now(),
        value,
        text_len: text.len() as u32,
        tid: thread::id(),
    }
}

/// Records a note: `text` is printed by the front end at the end of the run.
pub(crate) fn note(text: &str) {
    let text = text.as_bytes();
    write(&moment(RecordKind::Note, 0, text), text);
}

/// Writes that recording ended in good order; only the first call counts.
pub(crate) fn end(process: &Process) {
    if process.end() {
        // With the time of day beside the recording's own, as the first record has it.
        write_to(process, &moment(RecordKind::End, real_now(), b""), b"");
        process.directory.remove_spares();
    }
}

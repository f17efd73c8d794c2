//! Records of the meta stream.

use rpd_spool::format::{TimedText, tag};
use rpd_spool::writer::{now, record_len};
use zerocopy::{Immutable, IntoBytes};

use super::process::{self, Process};
use super::{header, thread};

/// Appends `fixed`, whose head is set here, and `text`.
pub(crate) fn write<T: IntoBytes + Immutable>(tag: u16, aux: u16, fixed: &T, text: &[u8]) -> bool {
    process::current().is_some_and(|process| write_to(process, tag, aux, fixed, text))
}

fn write_to<T: IntoBytes + Immutable>(
    process: &Process,
    tag: u16,
    aux: u16,
    fixed: &T,
    text: &[u8],
) -> bool {
    let fixed = fixed.as_bytes();
    let len = record_len(fixed.len(), text.len());
    let mut head = header(tag, len);
    head.aux = aux;
    let head = head.as_bytes();
    let fill = |bytes: &mut [u8]| {
        bytes[..fixed.len()].copy_from_slice(fixed);
        bytes[..head.len()].copy_from_slice(head);
        bytes[fixed.len()..][..text.len()].copy_from_slice(text);
    };
    let written = process.try_meta(|meta| meta.append(len, fill));
    // A signal handler that interrupted a writer of the meta stream: readers take facts from other streams as well.
    written.unwrap_or_else(|| thread::append(len, fill))
}

/// A record that something happened now.
fn moment(value: u64, text: &[u8]) -> TimedText {
    TimedText {
        header: header(0, 0),
        time: now(),
        value,
        text_len: text.len() as u32,
        tid: thread::id(),
    }
}

/// Records a note: `text` is printed by the front end at the end of the run.
pub(crate) fn note(text: &str) {
    write(tag::NOTE, 0, &moment(0, text.as_bytes()), text.as_bytes());
}

/// Writes that recording ended in good order; only the first call counts.
pub(crate) fn end(process: &Process) {
    if process.end() {
        write_to(process, tag::END, 0, &moment(0, b""), b"");
        process.directory.remove_spares();
    }
}

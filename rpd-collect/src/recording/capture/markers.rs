//! Markers of the program between its calls.

use std::sync::atomic::Ordering;

use rpd_spool::capture::CaptureMarker;
use rpd_spool::record::RecordKind;
use rpd_spool::writer::record_len;
use zerocopy::IntoBytes as _;

use super::{ACTIVE, append, next};

/// Takes a marker at its place among the calls: `kind` is one of [`rpd_spool::capture::marker`], `range` the number of the range
/// that begins or ends, 0 for none, and `text` its message.
pub(crate) fn marker(kind: u16, range: u64, text: &[u8]) {
    if !ACTIVE.load(Ordering::Acquire) {
        return;
    }
    let len = record_len(size_of::<CaptureMarker>(), text.len());
    let marker = CaptureMarker {
        header: RecordKind::CaptureMarker.head(text.len()).with_aux(kind),
        entry: next(),
        range,
        text_len: text.len() as u64,
    };
    append(marker.as_bytes(), &[], 0, text, len);
}

//! Markers of the program between its calls, and the parts of a run that they enclose.

use rpd_spool::capture::{CaptureMarker, marker};
use rpd_spool::reader::Record;

/// A marker of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The last call before the marker; 0: there is none.
    pub after: u64,
    /// Kind of the marker: one of [`marker`].
    pub kind: u16,
    /// Number of the range that begins or ends.
    pub range: u64,
    /// Message of a range that begins.
    pub text: Vec<u8>,
}

impl Marker {
    /// The marker of a record after the call `after`.
    pub(crate) fn from_record(record: &Record<'_>, after: u64) -> Option<Marker> {
        let (found, tail) = record.parse::<CaptureMarker>()?;
        let text = tail.get(..usize::try_from(found.text_len).ok()?)?;
        Some(Marker {
            after,
            kind: record.header.aux,
            range: found.range,
            text: text.to_vec(),
        })
    }
}

/// The parts of a run that markers enclose, in the order in which they begin: their first and last calls, the last being smaller
/// where there is no call. They are the ranges with this message, or without one those between a resume and the pause that
/// follows. What does not end before the program ends with the call `last`.
pub fn regions(markers: &[Marker], message: Option<&str>, last: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    // Open regions: number of the range, and index in `found`.
    let mut open: Vec<(u64, usize)> = Vec::new();
    for one in markers {
        let (begins, range) = match (one.kind, message) {
            (marker::RESUME, None) if open.is_empty() => (true, 0),
            (marker::PAUSE, None) => (false, 0),
            (marker::BEGIN, Some(message)) if one.text == message.as_bytes() => (true, one.range),
            (marker::END, Some(_)) => (false, one.range),
            _ => continue,
        };
        if begins {
            open.push((range, found.len()));
            found.push((one.after + 1, last));
        } else if let Some(at) = open.iter().rposition(|(known, _)| *known == range) {
            let (_, index) = open.swap_remove(at);
            found[index].1 = one.after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(after: u64, kind: u16, range: u64, text: &str) -> Marker {
        Marker {
            after,
            kind,
            range,
            text: text.into(),
        }
    }

    #[test]
    fn marker_regions_lie_between_resume_and_the_next_pause() {
        let control = |after, kind| marker(after, kind, 0, "");
        let markers = [
            control(2, marker::PAUSE),
            control(3, marker::RESUME),
            control(5, marker::RESUME),
            control(7, marker::PAUSE),
            control(8, marker::PAUSE),
            control(9, marker::RESUME),
        ];
        assert_eq!(regions(&markers, None, 12), [(4, 7), (10, 12)]);
        assert_eq!(regions(&markers, Some(""), 12), []);
    }

    #[test]
    fn marker_ranges_are_those_with_the_message() {
        let markers = [
            marker(1, marker::BEGIN, 1, "step"),
            marker(2, marker::BEGIN, 2, "other"),
            marker(3, marker::BEGIN, 3, "step"),
            marker(4, marker::END, 2, ""),
            marker(5, marker::END, 3, ""),
            marker(6, marker::END, 1, ""),
            marker(6, marker::BEGIN, 4, "step"),
            marker(6, marker::END, 4, ""),
        ];
        assert_eq!(regions(&markers, Some("step"), 9), [(2, 6), (4, 5), (7, 6)]);
        assert_eq!(regions(&markers, None, 9), []);
    }
}

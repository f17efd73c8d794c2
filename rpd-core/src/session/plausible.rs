//! Check of the times of records: times that cannot be true get no duration.

use super::Session;
use crate::ids::Nanoseconds;

/// Longest duration that any record can have, in nanoseconds: ten years.
pub const LONGEST_DURATION: u64 = 10 * 365 * 24 * 3600 * 1_000_000_000;

/// Nanoseconds by which a record may be longer than its process lived: clocks of devices are converted to the host's.
const SLACK: u64 = 1_000_000_000;

/// The times that records of a process can have. Recordings that were damaged, and databases, which anybody writes, have others:
/// no end, one before the start, or the largest number there is.
#[derive(Debug, Clone, Copy)]
pub struct PlausibleTimes {
    longest: u64,
}

impl PlausibleTimes {
    /// Times that are plausible for a session's process: where it is known how long that lived, no record is longer.
    pub fn from_session(session: &Session) -> PlausibleTimes {
        let process = &session.process;
        let lived = process.fini_time.0.checked_sub(process.init_time.0);
        let longest = match lived {
            Some(lived) if lived > 0 && process.init_time.0 > 0 => lived.saturating_add(SLACK),
            _ => LONGEST_DURATION,
        };
        PlausibleTimes {
            longest: longest.min(LONGEST_DURATION),
        }
    }

    /// The duration of a record in nanoseconds; `None` for times that cannot be.
    #[inline]
    pub fn duration(self, start: Nanoseconds, end: Nanoseconds) -> Option<u64> {
        let duration = end.0.checked_sub(start.0)?;
        (duration <= self.longest).then_some(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_times_have_no_duration() {
        let mut session = Session::default();
        let duration = |session: &Session, start, end| {
            PlausibleTimes::from_session(session).duration(Nanoseconds(start), Nanoseconds(end))
        };
        assert_eq!(duration(&session, 100, 100), Some(0));
        assert_eq!(duration(&session, 100, 200), Some(100));
        assert_eq!(duration(&session, 100, 99), None);
        assert_eq!(duration(&session, 100, 0), None);
        assert_eq!(duration(&session, 100, i64::MAX as u64), None);
        // As long as it is not known how long the process lived.
        assert_eq!(duration(&session, 0, 5_000_000_000), Some(5_000_000_000));
        session.process.init_time = Nanoseconds(4_000_000_000);
        session.process.fini_time = Nanoseconds(5_000_000_000);
        assert_eq!(duration(&session, 0, 5_000_000_000), None);
        assert_eq!(
            duration(&session, 4_000_000_000, 5_500_000_000),
            Some(1_500_000_000)
        );
    }
}

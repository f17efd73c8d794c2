//! Programs that run for days: the bound on a recording, and outputs that are written meanwhile.

use rpd_core::options::{CollectorOptions, Rotation};
use rpd_spool::writer::SMALLEST_LIMIT;

use super::given::Named;
use super::size::size;
use super::stacks::duration;
use super::table::Given;
use crate::failure::Failure;

/// The shortest time between two pieces, in nanoseconds: making one takes longer.
const SHORTEST: u64 = 100_000_000;

/// Units of times that the parser of other options does not have, in nanoseconds. Programs run for hours.
const LONG_UNITS: [(&str, u64); 3] = [
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// Sets the bound of the recording, and returns when outputs are written.
///
/// # Errors
/// A value cannot be used, or another option requests what a recording with a bound, or one in pieces, does not have.
pub(super) fn resolve(
    given: &Given,
    options: &mut CollectorOptions,
) -> Result<Option<Rotation>, Failure> {
    let limit = limit(given)?;
    let rotate = match given.rotate.text() {
        Some(text) => Some(rotation(text).map_err(|problem| given.rotate.misused(problem))?),
        None => None,
    };
    let asked: &Named = match (limit, rotate) {
        (None, None) => return Ok(None),
        (Some(_), _) => &given.spool_limit,
        (None, Some(_)) => &given.rotate,
    };
    if options.thread_trace.is_some() {
        return Err(asked.refused(format_args!(
            "thread traces are recorded whole: leave out this or {}",
            given.advanced_thread_trace.flag()
        )));
    }
    if limit.is_some() && options.recent_bytes.is_some() {
        return Err(given.spool_limit.refused(format_args!(
            "a light recording has a bound of its own ({}): leave this out",
            given.light_keep.flag()
        )));
    }
    options.in_pieces = rotate.is_some();
    // One half is what is recorded, the other the piece whose outputs are being written.
    options.spool_limit = limit.map(|bytes| match rotate {
        Some(_) => bytes / 2,
        None => bytes,
    });
    Ok(rotate)
}

fn limit(given: &Given) -> Result<Option<u64>, Failure> {
    let option = &given.spool_limit;
    let Some(text) = option.text() else {
        return Ok(None);
    };
    let bytes = size(text).map_err(|message| option.misused(format_args!("{text}: {message}")))?;
    // Two halves: see `resolve`.
    let parts = if given.rotate.is_requested() { 2 } else { 1 };
    let least = parts * SMALLEST_LIMIT;
    if bytes < least {
        return Err(option.misused(format_args!("{text}: at least {}M is needed", least >> 20)));
    }
    Ok(Some(bytes))
}

/// Reads a time or a size.
fn rotation(text: &str) -> Result<Rotation, String> {
    let expected = || {
        format!(
            "'{text}' is neither a time such as 500ms, 10s, 5min or 1h nor a size such as 500M or 2G"
        )
    };
    let at = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .ok_or_else(expected)?;
    let (number, unit) = text.split_at(at);
    if matches!(unit, "K" | "M" | "G") {
        let bytes = size(text).map_err(|_| expected())?;
        if bytes < SMALLEST_LIMIT {
            return Err(format!(
                "{text}: at least {}M is needed",
                SMALLEST_LIMIT >> 20
            ));
        }
        return Ok(Rotation::Bytes(bytes));
    }
    let long = LONG_UNITS.iter().find(|(known, _)| *known == unit);
    let time = match long {
        Some((_, factor)) => number
            .parse::<f64>()
            .ok()
            .map(|value| value * *factor as f64)
            // No clock reaches 2^63 ns.
            .filter(|time| (0.0..9.2e18).contains(time))
            .map(|time| time as u64)
            .ok_or_else(expected)?,
        None => duration(text).map_err(|_| expected())?,
    };
    if time < SHORTEST {
        return Err(format!("{text}: at least 100ms is needed"));
    }
    Ok(Rotation::Time(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_is_a_time_or_a_size_with_its_unit() {
        for (text, expected) in [
            ("10s", Rotation::Time(10_000_000_000)),
            ("250ms", Rotation::Time(250_000_000)),
            ("1.5min", Rotation::Time(90_000_000_000)),
            ("24h", Rotation::Time(86_400_000_000_000)),
            ("2d", Rotation::Time(172_800_000_000_000)),
            ("64M", Rotation::Bytes(64 << 20)),
            ("2G", Rotation::Bytes(2 << 30)),
        ] {
            assert_eq!(rotation(text), Ok(expected), "{text}");
        }
        for text in [
            "10", "", "s", "5m", "64m", "1M0", "1ms", "12K", "-1s", "1.2.3h", "1e9h", "G",
        ] {
            assert!(rotation(text).is_err(), "{text}");
        }
    }
}

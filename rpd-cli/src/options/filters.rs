//! Filters: kernels and iterations to count or thread trace, and stretches of time to record.

use rpd_core::compat::Difference;
use rpd_core::options::{CollectionPeriod, IterationRange};

use super::choices::PeriodUnit;
use super::given::{Named, Setting};
use super::resolve::Resolver;
use super::table::Given;
use crate::failure::Failure;

/// The first launch of each kernel.
pub(super) const FIRST: IterationRange = IterationRange { first: 1, last: 1 };

/// Reads ranges: numbers and `A-B`, among any brackets, commas and blanks. One that runs backwards holds nothing and is
/// kept, since no range at all would be all iterations.
///
/// # Errors
/// One line that names what is neither.
pub(super) fn iterations(words: &[String]) -> Result<Vec<IterationRange>, String> {
    words
        .iter()
        .flat_map(|word| {
            word.split(|letter: char| "[](){},".contains(letter) || letter.is_whitespace())
        })
        .filter(|token| !token.is_empty())
        .map(|token| {
            let number = |text: &str| {
                let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
                digits.then(|| text.parse::<u64>().ok()).flatten()
            };
            let (first, last) = token.split_once('-').unwrap_or((token, token));
            match (number(first), number(last)) {
                (Some(first), Some(last)) => Ok(IterationRange { first, last }),
                _ => Err(format!(
                    "'{token}' is neither a number nor a range such as 3-5"
                )),
            }
        })
        .collect()
}

/// An option that picks dispatches for counting and thread traces.
pub(super) fn kernel_filter(given: &Given) -> Option<&Named> {
    let patterns = [&given.kernel_include_regex, &given.kernel_exclude_regex];
    let mut patterns = patterns
        .into_iter()
        .filter(|pattern| pattern.text().is_some_and(|text| !text.is_empty()));
    let range = &given.kernel_iteration_range;
    match patterns.next() {
        Some(pattern) => Some(pattern),
        None => range.is_requested().then_some(range),
    }
}

impl Resolver<'_> {
    /// The pattern of kernels that an option has; empty without one.
    ///
    /// # Errors
    /// When the value is no regular expression.
    pub(super) fn kernels(&mut self, option: &Setting<String>) -> Result<String, Failure> {
        let pattern = option.text().unwrap_or_default();
        if !pattern.is_empty() && !self.patterns.contains(pattern) {
            rpd_spool::kernel_filter::compile(pattern)
                .map_err(|error| option.refused(format_args!("{pattern}: {error}")))?;
            self.patterns.insert(pattern.to_owned());
        }
        Ok(pattern.to_owned())
    }

    /// The periods in which something is recorded; none are the whole run.
    ///
    /// # Errors
    /// A text is no period, or regions limit the recording already.
    pub(super) fn periods(&mut self, given: &Given) -> Result<Vec<CollectionPeriod>, Failure> {
        let (option, unit) = (&given.collection_period, &given.collection_period_unit);
        let words = option.list().iter();
        // The variable is what the original hands to its tool: whole nanoseconds, joined by `;`.
        let (words, period_unit): (Vec<&str>, PeriodUnit) = match option.variable() {
            Some(_) => (
                words.flat_map(|word| word.split(';')).collect(),
                PeriodUnit::Nsec,
            ),
            None => (
                words.map(String::as_str).collect(),
                unit.value().unwrap_or(PeriodUnit::Sec),
            ),
        };
        // The option that counts references to regions implies the one for regions.
        let regions = [&given.selected_regions_ref_count, &given.selected_regions];
        if let Some(regions) = regions.into_iter().find(|regions| regions.is_on())
            && !words.is_empty()
        {
            return Err(Failure::failed(format!(
                "{} and {} are mutually exclusive",
                regions.name(),
                option.name()
            )));
        }
        let mut periods = words
            .into_iter()
            .map(|word| period(word, period_unit))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|message| option.refused(message))?;
        if self.environment.compat.has(Difference::EndlessPeriod) {
            for period in periods.iter_mut().filter(|period| period.repeat == 0) {
                period.repeat = 1;
            }
        }
        if let Some(at) = periods.iter().position(|period| period.repeat == 0)
            && at + 1 < periods.len()
        {
            self.warn(format!(
                "{}: what follows an endless period (repeat 0) never begins",
                option.name()
            ));
        }
        if periods.is_empty() && unit.is_requested() {
            self.warn(format!(
                "{}: no effect without {}",
                unit.name(),
                option.flag()
            ));
        }
        Ok(periods)
    }
}

/// Reads `DELAY:DURATION:REPEAT`, the first two in `unit`.
///
/// # Errors
/// One line with the reason why it is refused.
fn period(word: &str, unit: PeriodUnit) -> Result<CollectionPeriod, String> {
    let fields: Vec<&str> = word.split(':').map(str::trim).collect();
    let [delay, duration, repeat] = fields[..] else {
        return Err(format!("'{word}' is not DELAY:DURATION:REPEAT"));
    };
    let time = |text: &str, what: &str| {
        nanoseconds(text, unit).ok_or_else(|| format!("'{word}': {what} '{text}' is not a time"))
    };
    let period = CollectionPeriod {
        delay: time(delay, "delay")?,
        duration: time(duration, "duration")?,
        repeat: repeat.parse().map_err(|_| {
            format!("'{word}': repeat '{repeat}' is not a whole number from 0 (0 is endless)")
        })?,
    };
    if period.delay == 0 && period.duration == 0 && period.repeat == 0 {
        return Err(format!(
            "'{word}' is an endless number of rounds that take no time"
        ));
    }
    Ok(period)
}

/// A time from 0 in a unit, cut to whole nanoseconds.
fn nanoseconds(text: &str, unit: PeriodUnit) -> Option<u64> {
    let factor: u64 = match unit {
        PeriodUnit::Hour => 3_600_000_000_000,
        PeriodUnit::Min => 60_000_000_000,
        PeriodUnit::Sec => 1_000_000_000,
        PeriodUnit::Msec => 1_000_000,
        PeriodUnit::Usec => 1_000,
        PeriodUnit::Nsec => 1,
    };
    // Whole numbers exactly, others with the precision of a double.
    if let Ok(whole) = text.parse::<u64>() {
        return whole.checked_mul(factor);
    }
    let value: f64 = text.parse().ok()?;
    let product = value * factor as f64;
    // No clock reaches 2^63 ns.
    (product.is_finite() && (0.0..9.2e18).contains(&product)).then_some(product as u64)
}

#[cfg(test)]
mod tests {
    use super::super::choices::Choice as _;
    use super::*;

    fn shown(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let text = |range: &IterationRange| {
            if range.first == range.last {
                range.first.to_string()
            } else {
                format!("{}-{}", range.first, range.last)
            }
        };
        let texts: Vec<String> = iterations(&words)?.iter().map(text).collect();
        Ok(texts.join(" "))
    }

    #[test]
    fn iteration_ranges_are_read_among_brackets_and_commas() {
        for (case, words, expected) in [
            ("command-line-273", &["[1, 3, 5, [8-12]]"][..], "1 3 5 8-12"),
            ("command-line-274", &["[11-14], [4-5]"], "11-14 4-5"),
            ("command-line-274", &["[11-14]", "[4-5]"], "11-14 4-5"),
            ("command-line-275", &["[[3-6], 1, 13]"], "3-6 1 13"),
            ("command-line-276", &["[5-3]"], "5-3"),
            ("unnumbered", &["5"], "5"),
            ("unnumbered", &["[]"], ""),
        ] {
            assert_eq!(shown(words).as_deref(), Ok(expected), "{case}");
        }
        for word in ["a", "1-2-3", "-1", "1-", "+1", "99999999999999999999"] {
            let message = shown(&[word]).expect_err(word);
            assert!(
                message.contains(&format!("'{word}'")),
                "command-line-277: {message}"
            );
        }
    }

    #[test]
    fn collection_periods_are_read_in_their_unit() {
        let got = |word: &str, unit: &str| {
            let unit = PeriodUnit::from_word(unit, false).expect("a unit");
            let period = period(word, unit)?;
            Ok::<_, String>((period.delay, period.duration, period.repeat))
        };
        assert_eq!(
            got("0:1:1", "sec"),
            Ok((0, 1_000_000_000, 1)),
            "command-line-283"
        );
        assert_eq!(
            got("0.5:0.5:0", "sec"),
            Ok((500_000_000, 500_000_000, 0)),
            "command-line-283"
        );
        assert_eq!(
            got("1:2:3", "hour"),
            Ok((3_600_000_000_000, 7_200_000_000_000, 3))
        );
        assert_eq!(
            got("1.5:2:3", "min"),
            Ok((90_000_000_000, 120_000_000_000, 3))
        );
        assert_eq!(got("7:1e3:1", "msec"), Ok((7_000_000, 1_000_000_000, 1)));
        assert_eq!(got("1.9999:1:1", "usec"), Ok((1999, 1000, 1)));
        assert_eq!(
            got("1.9:9007199254740993:1", "nsec"),
            Ok((1, 9_007_199_254_740_993, 1))
        );
        for word in [
            "1:1",
            "1:1:1:1",
            "",
            "a:1:1",
            "1:b:1",
            "1:1:c",
            "1:1:1.5",
            "-1:1:1",
            "1:-1:1",
            "1:1:-1",
            "nan:1:1",
            "inf:1:1",
            "1e300:1:1",
            "::",
            "0:0:0",
        ] {
            assert!(got(word, "sec").is_err(), "{word}");
        }
    }
}

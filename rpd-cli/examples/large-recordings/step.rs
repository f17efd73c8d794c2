//! Steps that work on a recording or a database of it, and the memory and time that they take.

use std::path::Path;

use nix::time::{ClockId, clock_gettime};
use rpd_core::naming::Target;
use rpd_core::options::{Format, KernelNames, Options};
use rpd_core::session::shown::expand;
use rpd_core::session::{LoadOptions, Session};
use rpd_core::storage::memory;
use rpd_formats::destination::Destination;
use rpd_formats::rocpd::read::Database;
use rpd_formats::rpd_file::RpdFile;
use rpd_formats::{Output, registry};
use rpd_summary::Statistics;

/// Result of a step.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Opens the session, no more.
pub(crate) const OPEN: &str = "open";
/// Name of the step that computes the statistics.
pub(crate) const STATISTICS: &str = "statistics";
/// Writes an RPD file.
pub(crate) const EXPORT: &str = "export";

/// The formats, by their words, and the other steps.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    let formats = Format::ALL.iter().map(|format| format.word());
    formats.chain([OPEN, STATISTICS, EXPORT])
}

/// Prefix of the names of files that steps write.
pub(crate) const PREFIX: &str = "large";

/// Carries out a step with the recording or the database `source`. Files go to `directory`. Returns the number of records.
pub(crate) fn carry_out(
    step: &str,
    source: &Path,
    directory: &Path,
    options: LoadOptions,
) -> Outcome<u64> {
    memory::return_large_buffers();
    let format = Format::from_word(step);
    let load = LoadOptions {
        args: step == EXPORT || format.is_some_and(|format| registry::entry(format).arguments),
        ..options
    };
    let session = if source.is_dir() {
        Session::open(source, load)?
    } else {
        let database = Database::open(source)?;
        database.session(&database.recordings()[0], load)?.0
    };
    let names = KernelNames::default();
    let statistics = || Statistics::new(&session, names)?.session_stats();
    match format {
        Some(format) => {
            let needs = registry::entry(format).statistics != registry::StatisticsUse::Unused;
            let stats = needs.then(statistics).transpose()?;
            let output = Output {
                session: &session,
                stats: stats.as_ref(),
                options: &Options::default(),
                target: &Target {
                    directory: directory.to_owned(),
                    prefix: PREFIX.to_owned(),
                },
            };
            rpd_formats::write(format, &output)?;
        }
        None if step == STATISTICS => drop(statistics()?),
        None if step == EXPORT => {
            let mut file = RpdFile::create(Destination::named(
                &directory.join("large.rpd"),
                [directory.join("x")],
            )?)?;
            file.add(&session, names, &expand(&session, Default::default()))?;
            file.finish()?;
        }
        None => {}
    }
    Ok(session.len() as u64)
}

/// Peak memory and processor time of this process so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    /// Greatest resident memory in KiB: its own pages, and those of mapped files, of the recording and of rpd's temporary ones.
    pub(crate) peak: u64,
    /// Processor time in milliseconds.
    pub(crate) milliseconds: u64,
}

impl Taken {
    /// The figures of this process.
    pub(crate) fn by_this_process() -> Taken {
        let time = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
        Taken {
            peak: rpd_tests::memory::peak(),
            milliseconds: time.map_or(0, |time| {
                (time.tv_sec() * 1000 + time.tv_nsec() / 1_000_000).cast_unsigned()
            }),
        }
    }
}

//! Remarks of the ledger about PC samples.

use rpd_core::options::Options;
use rpd_core::session::Session;
use rpd_core::session::code::InstructionIndex;

use crate::wording::count;

/// Remarks about PC samples, one per line: samples that are missing, or that nothing is known about.
pub(super) fn remarks(session: &Session, options: &Options) -> Vec<String> {
    let ledger = &session.ledger;
    let mut remarks = Vec::new();
    for (number, what) in [
        (
            ledger.invalid_samples,
            "left out: the GPU could not read the state of the wave",
        ),
        (
            ledger.lost_samples,
            "lost: the provider had no room for them; a longer --pc-sampling-interval helps",
        ),
        (
            ledger.unknown_samples,
            "left out: this build cannot read their layout",
        ),
    ] {
        if number > 0 {
            let taken = number + session.samples.len() as u64 + session.sample_counts.total();
            let share = number as f64 * 100.0 / taken as f64;
            remarks.push(format!(
                "WARNING: {} of {taken} ({share:.1} %) {what}",
                count(number, "PC sample")
            ));
        }
    }
    if options.collector.sampling.is_some() && !session.has_samples() {
        // A child has the options of its parent, and no threads of it: the reason is not the interval.
        if session.process.forked
            && session.sampling.is_empty()
            && !session.kernel_symbols.is_empty()
        {
            remarks.push(
                "its kernels were not sampled: it was forked by a process that is sampled, and the threads that take the samples \
                 are not in it"
                    .to_owned(),
            );
        }
        if !session.kernel_symbols.is_empty() && !session.sampling.is_empty() {
            remarks.push(
                "no PC sample was taken: the kernels were shorter than the interval, or none ran (try a shorter \
                 --pc-sampling-interval)"
                    .to_owned(),
            );
        }
        return remarks;
    }
    let samples = &session.samples;
    let mut index = InstructionIndex::new(&session.code);
    let (mut unmapped, mut undecoded) = (0_usize, 0_usize);
    // Samples outside code objects, and instructions without text, look like errors in reports of hot code.
    for sample in samples.indices() {
        if samples.object[sample].0 == 0 {
            unmapped += 1;
        } else if index
            .find(samples.object[sample], samples.offset[sample])
            .is_none_or(|found| session.code.instructions[found as usize].text.0 == 0)
        {
            undecoded += 1;
        }
    }
    // Those without text are accounted for by a problem of their module.
    for (place, _, samples) in session.sample_counts.iter() {
        if index.find(place.object, place.offset).is_none() {
            undecoded += samples as usize;
        }
    }
    if unmapped > 0 {
        remarks.push(format!(
            "{} in code that no code object holds (such as copies made by the runtime)",
            count(unmapped, "PC sample")
        ));
    }
    if undecoded > 0 {
        remarks.push(format!(
            "{} at instructions that could not be decoded",
            count(undecoded, "PC sample")
        ));
    }
    remarks.extend(session.code.problems.iter().cloned());
    remarks
}

#[cfg(test)]
mod tests {
    use rpd_core::ids::{CodeObjectId, CorrelationId, DispatchId, Nanoseconds};
    use rpd_core::options::{SamplingMethod, SamplingOptions, SamplingUnit};
    use rpd_core::session::SampleRow;

    use super::*;

    fn options() -> Options {
        let mut options = Options::default();
        options.collector.sampling = Some(SamplingOptions {
            method: SamplingMethod::HostTrap,
            unit: SamplingUnit::Time,
            interval: 1,
        });
        options
    }

    #[test]
    fn sampled_remarks_report_missing_and_unknown_samples() {
        let mut session = Session::default();
        for object in [0, 7, 7] {
            session.samples.push(SampleRow {
                start: Nanoseconds(1),
                end: Nanoseconds(1),
                object: CodeObjectId(object),
                offset: 8,
                exec: 1,
                dispatch: DispatchId(1),
                correlation: CorrelationId(1),
                region: 0,
                hardware: 0,
                workgroup: [0; 3],
                wave: 0,
                flags: 0,
                class: 0,
                waves: 0,
                snapshot: 0,
                memory: 0,
            });
        }
        session.ledger.invalid_samples = 3;
        session.ledger.lost_samples = 1;
        session.ledger.unknown_samples = 2;
        assert_eq!(
            remarks(&session, &options()),
            [
                "WARNING: 3 PC samples of 6 (50.0 %) left out: the GPU could not read the state of the wave",
                "WARNING: 1 PC sample of 4 (25.0 %) lost: the provider had no room for them; a longer --pc-sampling-interval helps",
                "WARNING: 2 PC samples of 5 (40.0 %) left out: this build cannot read their layout",
                "1 PC sample in code that no code object holds (such as copies made by the runtime)",
                "2 PC samples at instructions that could not be decoded",
            ]
        );
    }
}

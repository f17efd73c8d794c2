//! PC samples.

use rpd_spool::format::{PcSample, PcSampling, tag};

use super::process;
use super::{device_work, header, meta, thread};

/// An agent is sampled; the head of `record` is set here.
pub(crate) fn configured(record: &PcSampling) {
    meta::write(tag::PC_SAMPLING, 0, record, b"");
}

/// A sample was delivered; the head of `record` is set here.
#[inline]
pub(crate) fn sample(mut record: PcSample) {
    if device_work::is_of_parent(record.time) {
        return;
    }
    record.header = header(tag::PC_SAMPLE, size_of::<PcSample>());
    thread::write(&record);
}

/// Samples that are not recorded: how many the provider called unusable, had no room for, and has in a layout that the
/// collector cannot read.
pub(crate) fn left_out(invalid: u64, lost: u64, unknown: u64) {
    if let Some(process) = process::existing() {
        process.totals.invalid_samples.add(invalid);
        process.totals.lost_samples.add(lost);
        process.totals.unknown_samples.add(unknown);
    }
}

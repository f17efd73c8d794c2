//! Switching recording on and off: pause and resume, selected regions, collection periods and `rpd control`.
//!
//! The provider starts and stops what it traces ([`Switched`]). Counters check [`is_on`] for each dispatch instead,
//! and what records refer to (code objects, streams, regions that rename kernels) is recorded all the time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rpd_spool::control::RecordingState;
use rpd_spool::options::{CollectionPeriod, CollectorOptions};
use rpd_spool::writer::now;

use super::background::{InChild, spawn};
use super::control;
use super::fork::ForkHook;
use super::guard::{self, Service};
use super::meta;
use super::setting::Setting;

static PERIODS: Service = Service::new("collection periods");
/// Collection periods go on in a forked child that records something; the thread that switches them is not there.
pub(crate) static FORK: ForkHook = ForkHook::new().when_child_records(|| {
    if RECORDING
        .get()
        .is_some_and(|recording| !recording.periods.is_empty())
    {
        start_periods();
    }
});

/// A service that is switched on and off. Several threads may do so at once, a repeat has no effect, and no lock is held meanwhile.
pub(crate) trait Switched: Send + Sync {
    /// Starts or stops the traces.
    fn trace(&self, on: bool);
    /// Starts or stops the counting of dispatches that a pause leaves out.
    fn count_paused(&self, on: bool);
    /// Records what is complete and held back so far.
    fn flush(&self);
}

struct Recording {
    provider: Box<dyn Switched>,
    /// Whether recording is off until the program resumes it.
    by_regions: bool,
    /// Whether nested pairs of resume and pause are balanced.
    ref_count: bool,
    periods: Vec<CollectionPeriod>,
}

static RECORDING: Setting<Recording> = Setting::new();
/// Resumes that no pause has ended; more than one only where they are balanced.
static RESUMED: AtomicU64 = AtomicU64::new(0);
/// Whether recording is within a collection period, or there are none.
static IN_PERIOD: AtomicBool = AtomicBool::new(true);
/// `rpd control` has stopped recording.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// Starts and ends of collection periods so far, and when the next one is due.
static STEP: AtomicU64 = AtomicU64::new(0);
static DUE: AtomicU64 = AtomicU64::new(0);

/// Whether recording is on.
pub(crate) fn is_on() -> bool {
    state().is_on()
}

/// Whether recording is on, and if not, why.
pub(super) fn state() -> RecordingState {
    RecordingState {
        requested: RESUMED.load(Ordering::SeqCst) > 0 && IN_PERIOD.load(Ordering::SeqCst),
        stopped: STOPPED.load(Ordering::SeqCst),
    }
}

/// Whether the program or `rpd control` has paused recording that would be on otherwise.
pub(crate) fn is_paused() -> bool {
    let paused = RESUMED.load(Ordering::SeqCst) == 0 || STOPPED.load(Ordering::SeqCst);
    paused
        && RECORDING
            .get()
            .is_some_and(|recording| !recording.by_regions)
}

/// Whether recording waits for the program to resume it.
pub(crate) fn by_regions(options: &CollectorOptions) -> bool {
    options.selected_regions || options.selected_regions_ref_count
}

/// Sets whether recording is on at first. The provider starts its traces itself if it [`is_on`]; from now on it is
/// called for each change.
pub(crate) fn configure(options: &CollectorOptions, provider: Box<dyn Switched>) {
    let recording = RECORDING.set(Recording {
        provider,
        by_regions: by_regions(options),
        ref_count: options.selected_regions_ref_count,
        periods: options.periods.clone(),
    });
    STOPPED.store(false, Ordering::SeqCst);
    STEP.store(0, Ordering::Relaxed);
    RESUMED.store(u64::from(!recording.by_regions), Ordering::SeqCst);
    IN_PERIOD.store(recording.periods.is_empty(), Ordering::SeqCst);
}

/// Begins the first collection period, if there are any, and serves the requests of `rpd control`. To be called once all
/// is configured.
pub(crate) fn begin() {
    control::serve();
    if let Some(first) = RECORDING
        .get()
        .and_then(|recording| recording.periods.first())
    {
        DUE.store(now().saturating_add(first.delay), Ordering::Relaxed);
        start_periods();
    }
}

/// Ends the service of the requests of `rpd control`: the recording has ended, and the process may have another one.
pub(crate) fn end() {
    control::end();
}

/// Makes the provider trace and count according to the present state.
fn apply(recording: &Recording) {
    until_stable(is_on, |on| recording.provider.trace(on));
    until_stable(is_paused, |on| recording.provider.count_paused(on));
    control::show();
}

/// Several threads may switch at once without a lock: the one that switches last looks again.
fn until_stable(wanted: fn() -> bool, switch: impl Fn(bool)) {
    loop {
        let on = wanted();
        switch(on);
        if wanted() == on {
            return;
        }
    }
}

/// Changes the number of resumes that no pause has ended. `counted` is false where a single pause ends all of them.
fn change_resumed(change: impl Fn(u64, bool) -> u64) {
    if let Some(recording) = RECORDING.get() {
        let order = Ordering::SeqCst;
        let _ = RESUMED.fetch_update(order, order, |resumed| {
            Some(change(resumed, recording.ref_count))
        });
        apply(recording);
    }
}

/// Pauses recording, at the program's request.
pub(crate) fn pause() {
    change_resumed(|resumed, counted| {
        if counted {
            resumed.saturating_sub(1)
        } else {
            0
        }
    });
}

/// Resumes recording, at the program's request.
pub(crate) fn resume() {
    change_resumed(|resumed, counted| if counted { resumed + 1 } else { 1 });
}

/// The program starts recording with a function that counts whatever the options say.
pub(crate) fn start_counted() {
    change_resumed(|resumed, _| resumed.saturating_add(1));
}

/// The program undoes one [`start_counted`].
pub(crate) fn stop_counted() {
    change_resumed(|resumed, _| resumed.saturating_sub(1));
}

/// `rpd control`, or an attacher, has recording start again; without effect on a pause of the program.
pub(crate) fn start() {
    set_stopped(false);
}

/// `rpd control`, or an attacher, stops recording, whatever the program requests.
pub(crate) fn stop() {
    set_stopped(true);
    flush();
}

fn set_stopped(stopped: bool) {
    if let Some(recording) = RECORDING.get() {
        STOPPED.store(stopped, Ordering::SeqCst);
        apply(recording);
    }
}

/// Records what is complete and held back so far.
pub(crate) fn flush() {
    if let Some(recording) = RECORDING.get() {
        recording.provider.flush();
    }
}

/// The period that a round belongs to; `None` after the last.
fn period(periods: &[CollectionPeriod], mut round: u64) -> Option<CollectionPeriod> {
    for period in periods {
        if period.repeat == 0 || round < period.repeat {
            return Some(*period);
        }
        round -= period.repeat;
    }
    None
}

/// Starts the thread that switches recording on and off by the periods. It is never joined: it ends with the process.
fn start_periods() {
    let work = || {
        PERIODS.run(run);
    };
    if !spawn("rpd-periods", InChild::Hook(&FORK), work) {
        meta::note("collection periods are not kept: the target cannot have another thread");
    }
}

fn run() {
    let Some(recording) = RECORDING.get() else {
        return;
    };
    let goes_on = || {
        !guard::is_finalized()
            && RECORDING
                .get()
                .is_some_and(|present| std::ptr::eq(present, recording))
    };
    while goes_on() {
        let step = STEP.load(Ordering::Relaxed);
        let Some(current) = period(&recording.periods, step / 2) else {
            return;
        };
        sleep_until(DUE.load(Ordering::Relaxed));
        if !goes_on() {
            return;
        }
        let begins = step.is_multiple_of(2);
        IN_PERIOD.store(begins, Ordering::SeqCst);
        apply(recording);
        let length = if begins {
            current.duration
        } else {
            period(&recording.periods, step / 2 + 1).map_or(0, |next| next.delay)
        };
        // From now, not from when this step was due: a period has the requested length.
        DUE.store(now().saturating_add(length), Ordering::Relaxed);
        STEP.store(step + 1, Ordering::Relaxed);
    }
}

/// Sleeps until a time of `CLOCK_BOOTTIME`, in ns.
fn sleep_until(due: u64) {
    let time = libc::timespec {
        tv_sec: (due / 1_000_000_000) as libc::time_t,
        tv_nsec: (due % 1_000_000_000) as libc::c_long,
    };
    let (clock, flags) = (libc::CLOCK_BOOTTIME, libc::TIMER_ABSTIME);
    // SAFETY: the time is valid for the call; nothing is written, since the sleep is to a point in time.
    while unsafe { libc::clock_nanosleep(clock, flags, &time, std::ptr::null_mut()) } == libc::EINTR
    {
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collection_periods_follow_one_another() {
        let one = |delay, repeat| CollectionPeriod {
            delay,
            duration: 1,
            repeat,
        };
        let delays = |periods: &[CollectionPeriod]| -> Vec<Option<u64>> {
            (0..6)
                .map(|round| period(periods, round).map(|period| period.delay))
                .collect()
        };
        assert_eq!(
            delays(&[one(10, 2), one(20, 1), one(30, 1)]),
            [Some(10), Some(10), Some(20), Some(30), None, None]
        );
        assert_eq!(
            delays(&[one(10, 1), one(20, 0), one(30, 1)])[1..],
            [Some(20); 5]
        );
        assert_eq!(period(&[], 0), None);
    }
}

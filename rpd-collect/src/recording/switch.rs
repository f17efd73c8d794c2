//! When recording is on: what pause and resume, selected regions and collection periods mean.
//!
//! Traces are on the client context, which is started and stopped. Counters ask [`is_on`] for each dispatch: a context
//! that counts stays on, because SDK 1.0 loses kernels for ever when such a one is stopped while they are queued. What
//! records refer to (code objects, streams, regions that rename) is on contexts that are never stopped either.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rocprofiler_sdk_sys::{Functions, rocprofiler_context_id_t};
use rpd_spool::options::{CollectionPeriod, CollectorOptions};
use rpd_spool::writer::now;

use crate::recording::guard::{self, Service};
use crate::recording::meta;
use crate::sdk::entry::Setup;

static PERIODS: Service = Service::new("collection periods");

struct Recording {
    functions: &'static Functions,
    /// The context to switch, if anything is traced.
    client: Option<rocprofiler_context_id_t>,
    /// The context that is on while the program pauses recording, if there is one.
    paused: Option<rocprofiler_context_id_t>,
    /// Recording waits for the program to resume it.
    by_regions: bool,
    /// Nested pairs of resume and pause are balanced.
    ref_count: bool,
    periods: Vec<CollectionPeriod>,
}

static RECORDING: OnceLock<Recording> = OnceLock::new();
/// Resumes that no pause has ended; more than one only where they are balanced.
static RESUMED: AtomicU64 = AtomicU64::new(0);
/// Within a collection period, or there are none.
static IN_PERIOD: AtomicBool = AtomicBool::new(true);
/// Begins and ends of collection periods so far, and when the next one is due.
static STEP: AtomicU64 = AtomicU64::new(0);
static DUE: AtomicU64 = AtomicU64::new(0);

/// Whether recording is on.
pub(crate) fn is_on() -> bool {
    RESUMED.load(Ordering::SeqCst) > 0 && IN_PERIOD.load(Ordering::SeqCst)
}

/// Whether the program has paused recording that would be on otherwise.
pub(crate) fn is_paused() -> bool {
    RESUMED.load(Ordering::SeqCst) == 0
        && RECORDING
            .get()
            .is_some_and(|recording| !recording.by_regions)
}

/// Whether recording waits for the program to resume it.
pub(crate) fn by_regions(options: &CollectorOptions) -> bool {
    options.selected_regions || options.selected_regions_ref_count
}

/// Starts recording, as far as it is on from the begin. Everything is configured by now.
pub(crate) fn begin(setup: &Setup<'_>) {
    let options = setup.options;
    let recording = RECORDING.get_or_init(|| Recording {
        functions: setup.functions,
        client: options.traces.any().then_some(setup.client),
        paused: match by_regions(options) {
            true => None,
            false => crate::sdk::dispatch::configure_paused(setup),
        },
        by_regions: by_regions(options),
        ref_count: options.selected_regions_ref_count,
        periods: options.periods.clone(),
    });
    RESUMED.store(u64::from(!by_regions(options)), Ordering::SeqCst);
    IN_PERIOD.store(options.periods.is_empty(), Ordering::SeqCst);
    if let Some(client) = recording.client
        && is_on()
    {
        setup.start(client, "anything");
    }
    if let Some(first) = recording.periods.first() {
        DUE.store(now().saturating_add(first.delay), Ordering::Relaxed);
        keep_periods();
    }
}

/// Brings the contexts in line with what is wanted.
fn settle(recording: &Recording) {
    settle_one(recording, recording.client, is_on);
    settle_one(recording, recording.paused, is_paused);
}

/// Starts or stops a context. Several threads may do so at once, and no lock is held while the provider is called: whoever
/// calls it last looks again.
fn settle_one(
    recording: &Recording,
    context: Option<rocprofiler_context_id_t>,
    wanted: fn() -> bool,
) {
    let Some(context) = context else {
        return;
    };
    loop {
        let on = wanted();
        // SAFETY: our own context. Starting it twice has no effect, and that it is stopped already is no error here: pauses
        // may be doubled.
        unsafe {
            match on {
                true => (recording.functions.rocprofiler_start_context)(context),
                false => (recording.functions.rocprofiler_stop_context)(context),
            }
        };
        if wanted() == on {
            return;
        }
    }
}

/// The program pauses recording.
pub(crate) fn pause() {
    let Some(recording) = RECORDING.get() else {
        return;
    };
    let _ = RESUMED.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |resumed| {
        let left = if recording.ref_count {
            resumed.saturating_sub(1)
        } else {
            0
        };
        Some(left)
    });
    settle(recording);
}

/// The program resumes recording.
pub(crate) fn resume() {
    let Some(recording) = RECORDING.get() else {
        return;
    };
    let _ = RESUMED.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |resumed| {
        Some(if recording.ref_count { resumed + 1 } else { 1 })
    });
    settle(recording);
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

/// Has a thread switch recording on and off as the periods say. Nobody waits for it: a process that ends takes it along.
fn keep_periods() {
    let work = || {
        PERIODS.run(run);
    };
    if !spawn("rpd-periods", work) {
        meta::note("collection periods are not kept: the target cannot have another thread");
    }
}

/// Starts a thread that takes no signals, which are for the target's threads. False when there cannot be one.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> bool {
    let thread = std::thread::Builder::new().name(name.to_owned());
    // SAFETY: the sets are plain memory that these calls fill; only this thread's mask is touched, and put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        // A thread inherits its mask.
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let spawned = thread.spawn(work);
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        spawned.is_ok()
    }
}

fn run() {
    let Some(recording) = RECORDING.get() else {
        return;
    };
    while !guard::is_over() {
        let step = STEP.load(Ordering::Relaxed);
        let Some(current) = period(&recording.periods, step / 2) else {
            return;
        };
        sleep_until(DUE.load(Ordering::Relaxed));
        if guard::is_over() {
            return;
        }
        let begins = step.is_multiple_of(2);
        IN_PERIOD.store(begins, Ordering::SeqCst);
        settle(recording);
        let length = if begins {
            current.duration
        } else {
            period(&recording.periods, step / 2 + 1).map_or(0, |next| next.delay)
        };
        // From now, not from when this step was due: what a period promises is its length.
        DUE.store(now().saturating_add(length), Ordering::Relaxed);
        STEP.store(step + 1, Ordering::Relaxed);
    }
}

/// On `CLOCK_BOOTTIME`.
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

/// In a forked child that records something: the thread that keeps the periods stayed behind, the periods go on from
/// where it was.
pub(crate) fn go_on_in_child() {
    if RECORDING
        .get()
        .is_some_and(|recording| !recording.periods.is_empty())
    {
        keep_periods();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_follow_each_other() {
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

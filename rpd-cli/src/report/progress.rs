//! A progress line on the terminal while outputs are written: share, rate and remaining time.

use std::io::IsTerminal as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rpd_formats::progress::records;

/// Shortest duration after which the line is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval between updates of the line.
const TICK: Duration = Duration::from_millis(200);

/// The step in progress. Weights are bytes of recordings: once for reading them, and once more for each format.
struct ProgressState {
    total: u64,
    finished: u64,
    /// Name of the current step.
    label: String,
    weight: u64,
    /// Records that the step writes; 0 when it does not report its progress.
    expected: u64,
    /// The count of written records at the start of the step.
    counted: u64,
}

impl ProgressState {
    fn position(&self, records: u64) -> u64 {
        let written = records.saturating_sub(self.counted).min(self.expected);
        let within = match self.expected {
            0 => 0,
            expected => u128::from(self.weight) * u128::from(written) / u128::from(expected),
        };
        self.finished + u64::try_from(within).unwrap_or(self.weight)
    }
}

/// The text to the right of the bar.
fn words(label: &str, position: u64, total: u64, records: u64, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64().max(1e-3);
    let mut words = label.to_owned();
    if records > 0 {
        let rate = records as f64 / seconds;
        words += &match rate {
            rate if rate >= 1e6 => format!(", {:.1} M records/s", rate / 1e6),
            rate if rate >= 1e3 => format!(", {:.0} k records/s", rate / 1e3),
            rate => format!(", {rate:.0} records/s"),
        };
    }
    if position > 0 && position < total {
        let left = seconds * (total - position) as f64 / position as f64;
        words += &match left.ceil() as u64 {
            left if left >= 60 => format!(", {}:{:02} min left", left / 60, left % 60),
            left => format!(", {left} s left"),
        };
    }
    words
}

/// The progress line. It is never drawn when standard error is not a terminal.
pub(crate) struct Progress(Option<ProgressLine>);

struct ProgressLine {
    state: Arc<Mutex<ProgressState>>,
    bar: ProgressBar,
    /// Dropped to end the thread that draws.
    stop: Option<Sender<()>>,
    drawer: Option<JoinHandle<()>>,
}

impl Progress {
    /// Starts the line; `total` is the weight of all steps.
    pub(crate) fn new(total: u64) -> Progress {
        // Files and pipes would get each state of the line below the others.
        if !std::io::stderr().is_terminal() || crate::notices::are_silenced() {
            return Progress(None);
        }
        let bar = ProgressBar::with_draw_target(Some(total.max(1)), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template("rpd: {bar:24} {percent:>3}% {msg}") {
            bar.set_style(style);
        }
        let state = Arc::new(Mutex::new(ProgressState {
            total,
            finished: 0,
            label: String::new(),
            weight: 0,
            expected: 0,
            counted: records(),
        }));
        let (stop, stopped) = mpsc::channel();
        let (begin, base) = (Instant::now(), records());
        let drawn = (Arc::clone(&state), bar.clone());
        let draw = move || {
            let (state, bar) = drawn;
            let mut wait = PATIENCE;
            while stopped.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                // Work that is done sooner shows no line.
                if wait == PATIENCE {
                    bar.set_draw_target(ProgressDrawTarget::stderr());
                    wait = TICK;
                }
                let now = records();
                let (label, position, total) = {
                    let state = lock(&state);
                    (state.label.clone(), state.position(now), state.total)
                };
                bar.set_position(position);
                let elapsed = begin.elapsed();
                bar.set_message(words(&label, position, total, now - base, elapsed));
                bar.tick();
            }
        };
        // If the thread cannot be started, only the line is missing.
        let drawer = std::thread::Builder::new().spawn(draw).ok();
        Progress(Some(ProgressLine {
            state,
            bar,
            stop: Some(stop),
            drawer,
        }))
    }

    /// Ends the previous step and begins a new one.
    pub(crate) fn step(&self, label: &str, weight: u64, expected: u64) {
        if let Some(shown) = &self.0 {
            let mut state = lock(&shown.state);
            state.finished += state.weight;
            label.clone_into(&mut state.label);
            state.weight = weight;
            state.expected = expected;
            state.counted = records();
        }
    }

    /// Runs a function that prints, with the line removed meanwhile.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.0 {
            Some(shown) => shown.bar.suspend(print),
            None => print(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(shown) = &mut self.0 {
            shown.stop = None;
            if let Some(drawer) = shown.drawer.take() {
                // The thread only draws, so that its panic has no consequence.
                let _ = drawer.join();
            }
            shown.bar.finish_and_clear();
        }
    }
}

fn lock(state: &Mutex<ProgressState>) -> MutexGuard<'_, ProgressState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_position_follows_the_records_of_a_step() {
        let state = ProgressState {
            total: 300,
            finished: 100,
            label: "csv".to_owned(),
            weight: 100,
            expected: 1000,
            counted: 50,
        };
        assert_eq!(state.position(50), 100);
        assert_eq!(state.position(550), 150);
        // The progress of a step is at most its weight.
        assert_eq!(state.position(5000), 200);
        assert_eq!(
            ProgressState {
                expected: 0,
                ..state
            }
            .position(5000),
            100
        );
    }

    #[test]
    fn progress_shows_rate_and_remaining_time() {
        let of = |position, records| words("csv", position, 400, records, Duration::from_secs(2));
        assert_eq!(of(100, 3_000_000), "csv, 1.5 M records/s, 6 s left");
        assert_eq!(of(4, 30_000), "csv, 15 k records/s, 3:18 min left");
        assert_eq!(of(0, 0), "csv");
        assert_eq!(of(400, 20), "csv, 10 records/s");
    }
}

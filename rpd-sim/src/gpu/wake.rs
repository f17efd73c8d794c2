//! Sleeping and waking of the device's threads: futexes, after a short spin.

use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::{Duration, Instant};

/// Time for which an idle thread polls before it sleeps.
const SPIN: Duration = Duration::from_micros(40);

/// Longest time for which polling keeps a core.
const PATIENCE: Duration = Duration::from_micros(8);

/// Number of threads that poll now: more of them than spare cores would only take time from the program.
static SPINNERS: AtomicU32 = AtomicU32::new(0);

fn spinner_limit() -> u32 {
    static LIMIT: AtomicU32 = AtomicU32::new(0);
    let limit = LIMIT.load(Ordering::Relaxed);
    if limit != 0 {
        return limit;
    }
    let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    let limit = cores.saturating_sub(1).clamp(1, 8);
    LIMIT.store(limit, Ordering::Relaxed);
    limit
}

/// Sleeps while `word` holds `expected`, at most `timeout`; may wake early.
pub(crate) fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
    let time = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().min(i64::MAX as u64) as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `word` outlives the call, and `time` is null or points to a timespec of this frame.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            time,
        );
    }
}

/// Wakes all threads that sleep on `word`.
pub(crate) fn futex_wake_all(word: &AtomicU32) {
    // SAFETY: only the address is used.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        );
    }
}

/// A counter of announcements that one thread waits for and others make. Announcements are never lost, but may merge.
#[derive(Debug, Default)]
pub(crate) struct Event {
    count: AtomicU32,
    sleeping: AtomicU32,
}

impl Event {
    /// Number of announcements so far; the waiting thread reads it before it looks for work.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Announces something, and wakes the thread that waits.
    pub(crate) fn notify(&self) {
        // A full fence: the flag is read no earlier than the new count can be seen.
        self.count.fetch_add(1, Ordering::SeqCst);
        if self.sleeping.load(Ordering::SeqCst) != 0 {
            futex_wake_all(&self.count);
        }
    }

    /// Waits until there were announcements after `seen`, or `timeout` has passed.
    pub(crate) fn wait(&self, seen: u32, timeout: Option<Duration>) {
        if self.poll(seen) {
            return;
        }
        // Announced before the count is read again; a notification in between is seen either by this thread or by its
        // flag.
        self.sleeping.store(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if self.count() == seen {
            futex_wait(&self.count, seen, timeout);
        }
        self.sleeping.store(0, Ordering::SeqCst);
    }

    fn poll(&self, seen: u32) -> bool {
        // Programs on a machine with few cores would lose time to threads that only look.
        if SPINNERS.fetch_add(1, Ordering::Relaxed) >= spinner_limit() {
            SPINNERS.fetch_sub(1, Ordering::Relaxed);
            return self.count() != seen;
        }
        let found = spin_until(SPIN, || self.count() != seen);
        SPINNERS.fetch_sub(1, Ordering::Relaxed);
        found
    }
}

/// Polls `ready` for at most `limit`; returns whether it became true.
pub(crate) fn spin_until(limit: Duration, mut ready: impl FnMut() -> bool) -> bool {
    let mut begin = None;
    loop {
        // The clock is read after some tries only: it costs more than a look.
        for _ in 0..64 {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        let now = Instant::now();
        let spent = now - *begin.get_or_insert(now);
        if spent >= limit {
            return ready();
        }
        if spent >= PATIENCE {
            // The thread that will make it true may be waiting for this core.
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_notification_before_the_wait_is_not_lost() {
        let event = Event::default();
        let seen = event.count();
        event.notify();
        event.wait(seen, None);
    }

    #[test]
    fn a_notification_wakes_a_waiting_thread() {
        let event = Arc::new(Event::default());
        let seen = event.count();
        let other = Arc::clone(&event);
        let thread = std::thread::spawn(move || other.wait(seen, None));
        std::thread::sleep(Duration::from_millis(5));
        event.notify();
        thread.join().expect("the waiter returns");
    }

    #[test]
    fn a_timeout_ends_the_wait_for_a_notification() {
        let event = Event::default();
        event.wait(event.count(), Some(Duration::from_millis(1)));
    }
}

//! Words that threads of this process sleep on.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` is `value`, until it is woken or a signal comes; `false` when `time` is over.
pub(crate) fn wait(word: &AtomicU32, value: u32, time: Option<Duration>) -> bool {
    let time = time.map(|time| libc::timespec {
        tv_sec: time.as_secs() as libc::time_t,
        tv_nsec: time.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time live throughout the call.
    let waited = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wait, value, time) };
    // SAFETY: errno of this thread.
    waited == 0 || unsafe { *libc::__errno_location() } != libc::ETIMEDOUT
}

/// Wakes all threads that sleep on `word`.
pub(crate) fn wake(word: &AtomicU32) {
    let wake = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word lives throughout the call.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), wake, i32::MAX) };
}

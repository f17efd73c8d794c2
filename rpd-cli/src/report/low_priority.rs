//! A thread that leaves processors and disks to others.

/// The value of `nice` for work in the background.
const NICE: libc::c_int = 10;
/// Class "best effort", its lowest priority; see ioprio_set(2).
const LOWEST_IO: libc::c_int = 2 << 13 | 7;
/// The calling thread; see ioprio_set(2).
const IO_OF_PROCESS: libc::c_int = 1;

/// Lowers the priority of the calling thread for processors and disks. Where the system refuses, it stays as it is.
pub(super) fn lower() {
    // SAFETY: neither call takes a pointer. On Linux both mean the calling thread with an id of 0.
    unsafe {
        let now = libc::getpriority(libc::PRIO_PROCESS, 0);
        libc::setpriority(libc::PRIO_PROCESS, 0, now.max(NICE));
        libc::syscall(libc::SYS_ioprio_set, IO_OF_PROCESS, 0, LOWEST_IO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_priority_lowers_the_calling_thread_only() {
        // SAFETY: takes no pointer.
        let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let before = nice();
        let there = std::thread::spawn(move || {
            lower();
            nice()
        });
        assert_eq!(there.join().ok(), Some(before.max(NICE)));
        assert_eq!(nice(), before);
    }
}

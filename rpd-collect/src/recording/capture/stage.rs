//! Host data on the way to the front end: a file in the process' directory, which the front end empties while the program
//! runs. Bytes are written with system calls, which fail where a store to mapped memory would raise a signal: when the
//! disk is full, and when the program's own pointer is wrong.

use std::cell::Cell;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU64, Ordering};

use rpd_spool::capture::{CONTROL_BYTES, CONTROL_FILE, STAGE_FILE, StageControl, ended};
use rpd_spool::options::CaptureOptions;
use rpd_spool::writer::now;

use super::content::{Content, Hasher, can_be_read};
use super::ranges::Range;
use super::state::STATE;
use super::stop;

static CONTROL: AtomicPtr<StageControl> = AtomicPtr::new(std::ptr::null_mut());
static FILE: AtomicI32 = AtomicI32::new(-1);
static LIMIT: AtomicU64 = AtomicU64::new(u64::MAX);
static MOST: AtomicU64 = AtomicU64::new(u64::MAX);

/// Data begin at multiples of this.
const ALIGN: u64 = 64;
/// Bytes that are copied at once: they are still in the cache when they are hashed after that.
const PART: u64 = 256 << 10;
/// Nanoseconds between two looks at how far the front end is.
const PAUSE: i64 = 500_000;
/// Nanoseconds without progress after which it is looked for the front end.
const PATIENCE: u64 = 10_000_000_000;

fn control() -> Option<&'static StageControl> {
    // SAFETY: null, or a mapping that is never removed.
    unsafe { CONTROL.load(Ordering::Acquire).as_ref() }
}

fn create(directory: &Path, name: &str) -> Option<i32> {
    let path = CString::new(directory.join(name).as_os_str().as_bytes()).ok()?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: the path is NUL-terminated.
    let file = unsafe { libc::open(path.as_ptr(), flags, 0o600) };
    (file >= 0).then_some(file)
}

/// Makes the files. False when there is no room for them.
pub(super) fn open(directory: &Path, options: &CaptureOptions) -> bool {
    let Some(file) = create(directory, CONTROL_FILE) else {
        return false;
    };
    // SAFETY: the descriptor was opened above; the mapping keeps the file, and is new.
    let mapped = unsafe {
        // Blocks are allocated before the file is mapped: a full disk would end the program at the first write.
        let ready = libc::posix_fallocate(file, 0, CONTROL_BYTES as libc::off_t) == 0;
        let mapped = if ready {
            libc::mmap(
                std::ptr::null_mut(),
                CONTROL_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file,
                0,
            )
        } else {
            libc::MAP_FAILED
        };
        libc::close(file);
        mapped
    };
    if mapped == libc::MAP_FAILED {
        return false;
    }
    let Some(file) = create(directory, STAGE_FILE) else {
        return false;
    };
    LIMIT.store(options.staging, Ordering::Relaxed);
    MOST.store(options.max_bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    FILE.store(file, Ordering::Release);
    // The control block last: its address says that everything else is there.
    CONTROL.store(mapped.cast(), Ordering::Release);
    true
}

/// Detaches a forked child from the files: they belong to its parent.
pub(super) fn forget_parent() {
    CONTROL.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// Counts a captured call.
pub(super) fn count_call() {
    if let Some(control) = control() {
        control.calls.fetch_add(1, Ordering::Relaxed);
    }
}

/// Adds to the number of bytes of captured data, and ends the capture beyond the limit.
pub(super) fn count_data(bytes: u64) {
    if let Some(control) = control()
        && control.data.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST.load(Ordering::Relaxed)
    {
        stop(ended::LIMIT);
    }
}

/// Stores the reason why the capture has ended; only the first is kept.
pub(super) fn set_ended(why: u32) {
    if let Some(control) = control() {
        let _ =
            control
                .ended
                .compare_exchange(ended::NOT, why, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Stores the number of functions of the runtime that this version does not know.
pub(super) fn set_unknown_functions(count: u64) {
    if let Some(control) = control() {
        control.unknown_functions.store(count, Ordering::Relaxed);
    }
}

/// Counts a piece of memory whose written pages are requested from the kernel.
pub(super) fn count_followed() {
    if let Some(control) = control() {
        control.followed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts a piece of memory that is compared, by reason: one of [`rpd_spool::capture::compared`].
pub(super) fn count_compared(why: usize) {
    if let Some(count) = control().and_then(|control| control.compared.get(why)) {
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes that the front end has not taken yet.
fn waiting(control: &StageControl) -> u64 {
    let reserved = control.reserved.load(Ordering::Relaxed);
    let done = control.consumed.load(Ordering::Acquire) + control.abandoned.load(Ordering::Relaxed);
    reserved.saturating_sub(done)
}

/// Bytes that were staged by calls which are waiting now: the front end takes them when these calls have returned.
static STAGED_BY_WAITING_CALLS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// Bytes that the call of this thread has staged.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Bytes that the call of this thread has staged so far; a record of its own may come in between.
pub(super) fn staged_by_call() -> u64 {
    OWN.get()
}

/// Sets the result of [`staged_by_call`]: the record of what was staged since is there.
pub(super) fn set_staged_by_call(bytes: u64) {
    OWN.set(bytes);
}

/// Whether the front end has the staging file open: it holds a lock on it, which ends with it.
fn has_reader() -> bool {
    // SAFETY: a struct of integers, for which zero is valid.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    let file = FILE.load(Ordering::Acquire);
    // SAFETY: the argument is valid for the call, which changes no lock.
    let asked = unsafe { libc::fcntl(file, libc::F_OFD_GETLK, &mut lock) };
    asked == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
}

/// Waits until `bytes` more may be staged. False when the front end is gone.
#[cold]
fn wait(control: &StageControl, bytes: u64, limit: u64) -> bool {
    let own = OWN.get();
    STAGED_BY_WAITING_CALLS.fetch_add(own, Ordering::Relaxed);
    let fits = wait_for_room(control, bytes, limit);
    STAGED_BY_WAITING_CALLS.fetch_sub(own, Ordering::Relaxed);
    fits
}

fn wait_for_room(control: &StageControl, bytes: u64, limit: u64) -> bool {
    let begin = now();
    control.stalls.fetch_add(1, Ordering::Relaxed);
    let mut consumed = control.consumed.load(Ordering::Acquire);
    let mut progress = begin;
    let fits = loop {
        let taken = control.consumed.load(Ordering::Acquire);
        let waiting = waiting(control);
        // What a call stages that is larger than the limit is staged alone: none of it is taken before the call has returned.
        if waiting <= STAGED_BY_WAITING_CALLS.load(Ordering::Relaxed) || waiting + bytes <= limit {
            break true;
        }
        let time = now();
        if taken != consumed {
            consumed = taken;
            progress = time;
        } else if time.saturating_sub(progress) > PATIENCE {
            // The reader may be slow or stopped: large data and a busy machine take long.
            if !has_reader() {
                break false;
            }
            progress = time;
        }
        let pause = libc::timespec {
            tv_sec: 0,
            tv_nsec: PAUSE,
        };
        // SAFETY: the argument is valid for the call.
        unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
    };
    control
        .stalled
        .fetch_add(now().saturating_sub(begin), Ordering::Relaxed);
    fits
}

/// Copies bytes of the program into `into`. False when the program's memory cannot be read.
pub(super) fn read(range: &Range, into: &mut [u8]) -> bool {
    let mut done = 0;
    for (address, len) in range.pieces() {
        let Some(part) = into.get_mut(done..done + len as usize) else {
            return false;
        };
        let ours = libc::iovec {
            iov_base: part.as_mut_ptr().cast(),
            iov_len: part.len(),
        };
        let theirs = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: part.len(),
        };
        // SAFETY: the first range is ours; the kernel checks the other one. Errors are checked below.
        let copied = unsafe { libc::process_vm_readv(libc::getpid(), &ours, 1, &theirs, 1, 0) };
        if copied != part.len() as isize {
            // Where the system call is forbidden, the pointer is assumed to be valid, as the runtime does.
            // SAFETY: reading the errno of this thread.
            if copied < 0 && unsafe { *libc::__errno_location() } != libc::EFAULT {
                // SAFETY: the program passes the pointer to a call that reads as many bytes.
                let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, part.len()) };
                part.copy_from_slice(bytes);
            } else {
                return false;
            }
        }
        done += len as usize;
    }
    true
}

/// Stores bytes of the program in the staging file, unless the same were stored before. Returns their place.
/// `is_output`: the front end may keep their hash alone. `None` when that failed, which ends the capture if there is no
/// space.
pub(super) fn store(range: &Range, is_output: bool) -> Option<u64> {
    let mut pieces = range.pieces();
    let (address, size) = match (pieces.next(), pieces.next()) {
        (Some((address, size)), None) if can_be_read(address, size) => (address, size),
        _ => return copy(range, None),
    };
    // SAFETY: the memory can be read.
    let sample = unsafe { Content::from_sample(address, size) };
    // Most data are new. They are hashed when they seem to come back, and found from the next time on.
    if STATE.with(|state| state.staged.is_new(sample)) != Some(false) {
        return copy(range, None);
    }
    // SAFETY: as above.
    let content = unsafe { Content::from_address(address, size) };
    let known = STATE.with(|state| state.staged.find(content, size, is_output));
    if let Some(place) = known.flatten() {
        return Some(place);
    }
    let mut hashers = [Hasher::new(), Hasher::new()];
    let place = copy(range, Some(&mut hashers))?;
    let [before, after] = hashers.map(|hasher| hasher.finish());
    // Somebody may have written the memory meanwhile; what was copied is then not known.
    if before == after {
        STATE.with(|state| state.staged.insert(after, size, is_output, place));
    }
    Some(place)
}

/// Copies bytes of the program to the staging file. Where hashers are given, adds the bytes to the first as they are before they are
/// copied, and to the second as they are after that; they can be read then.
fn copy(range: &Range, mut hashers: Option<&mut [Hasher; 2]>) -> Option<u64> {
    let control = control()?;
    let size = range.bytes();
    let room = size.next_multiple_of(ALIGN);
    let limit = LIMIT.load(Ordering::Relaxed);
    if waiting(control) + room > limit && !wait(control, room, limit) {
        stop(ended::NO_READER);
        return None;
    }
    // Room is reserved at once for all, so that threads write to places of their own without a lock.
    let offset = control.reserved.fetch_add(room, Ordering::Relaxed);
    OWN.set(OWN.get() + room);
    let file = FILE.load(Ordering::Acquire);
    let mut at = offset;
    for (address, len) in range.pieces() {
        let mut done = 0;
        while done < len {
            let (address, part) = (address + done, (len - done).min(PART));
            let mut hash = |index: usize| {
                if let Some(hashers) = &mut hashers {
                    // SAFETY: by what the caller says.
                    unsafe { hashers[index].add(address, part) };
                }
            };
            hash(0);
            if let Err(error) = write(file, address, part, at + done) {
                // The front end must not wait for bytes that never come.
                control.abandoned.fetch_add(room, Ordering::Relaxed);
                // An unreadable address is the program's own affair; the file's errors end the capture.
                if error != libc::EFAULT {
                    stop(ended::NO_SPACE);
                }
                return None;
            }
            hash(1);
            done += part;
        }
        at += len;
    }
    Some(offset)
}

/// Writes `len` bytes of the program's memory to the file, at `at`; the error number when that is not possible.
fn write(file: i32, address: u64, len: u64, at: u64) -> Result<(), i32> {
    let mut done = 0;
    while done < len {
        // SAFETY: the kernel checks the program's memory.
        let written = unsafe {
            libc::pwrite(
                file,
                (address + done) as *const libc::c_void,
                (len - done) as usize,
                (at + done) as libc::off_t,
            )
        };
        if written <= 0 {
            // SAFETY: reading the errno of this thread.
            let error = unsafe { *libc::__errno_location() };
            if written < 0 && error == libc::EINTR {
                continue;
            }
            return Err(error);
        }
        done += written as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A forked child may be the first to load the runtime, at which functions of the runtime are counted.
    #[test]
    fn stage_counts_of_a_parent_are_not_changed_by_its_forked_child() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(open(directory.path(), &CaptureOptions::default()));
        let parents = control().expect("made");
        count_call();
        super::super::forget_parent();
        count_call();
        assert_eq!(parents.calls.load(Ordering::Relaxed), 1);
    }
}

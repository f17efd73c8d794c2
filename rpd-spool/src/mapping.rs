//! Segment files as memory of the target, and the effect of a fork on them.

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

use super::format::{SegmentHeader, segment_flag};
use super::pages;
use super::threads;

/// A lock that can be taken over by a forked child, where its holder may not exist any more. Held only for a few
/// instructions or one system call, never while code that is not ours runs.
#[derive(Debug)]
pub struct ForkLock {
    /// [`this_thread`] of the holder; 0 while there is none.
    owner: AtomicUsize,
}

/// Proof that a [`ForkLock`] is held.
#[derive(Debug)]
pub struct ForkGuard<'a>(&'a ForkLock);

impl Drop for ForkGuard<'_> {
    fn drop(&mut self) {
        self.0.owner.store(0, Ordering::Release);
    }
}

/// A number that no other thread of the process has while the calling one lives: an address of its own. Unlike its id, it
/// takes no system call.
#[inline]
fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place) as usize)
}

impl ForkLock {
    /// Creates a lock that is not held.
    pub const fn new() -> ForkLock {
        ForkLock {
            owner: AtomicUsize::new(0),
        }
    }

    /// Takes the lock. `None` when this thread holds it already: a signal handler interrupted the holder.
    pub fn lock(&self) -> Option<ForkGuard<'_>> {
        let me = this_thread();
        loop {
            match self
                .owner
                .compare_exchange_weak(0, me, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some(ForkGuard(self)),
                Err(owner) if owner == me => return None,
                Err(_) => {
                    // SAFETY: sched_yield has no arguments.
                    unsafe { libc::sched_yield() };
                }
            }
        }
    }

    /// Takes the lock if no one holds it; never waits.
    #[inline]
    pub fn try_lock(&self) -> Option<ForkGuard<'_>> {
        let taken =
            self.owner
                .compare_exchange(0, this_thread(), Ordering::Acquire, Ordering::Relaxed);
        // Not made where the lock was not taken: a guard that is dropped opens the lock.
        taken.is_ok().then(|| ForkGuard(self))
    }

    /// Releases the lock, whichever thread holds it. Only for the single thread of a forked child.
    pub fn reset(&self) {
        self.owner.store(0, Ordering::Release);
    }
}

impl Default for ForkLock {
    fn default() -> ForkLock {
        ForkLock::new()
    }
}

/// All segments mapped in this process, for [`abandon_all`].
struct Registry {
    lock: ForkLock,
    mapped: UnsafeCell<Vec<(usize, usize)>>,
}

// SAFETY: `mapped` is only touched with `lock` held, or by the single thread of a forked child.
unsafe impl Sync for Registry {}

static REGISTRY: Registry = Registry {
    lock: ForkLock::new(),
    mapped: UnsafeCell::new(Vec::new()),
};

impl Registry {
    fn with(&self, act: impl FnOnce(&mut Vec<(usize, usize)>)) -> bool {
        let Some(_guard) = self.lock.lock() else {
            return false;
        };
        // SAFETY: the lock is held.
        act(unsafe { &mut *self.mapped.get() });
        true
    }
}

/// Keeps other threads from changing the set of mapped segments; to be called before fork. The guard is to be forgotten;
/// [`release_after_fork`] in the parent and [`abandon_all`] in the child open the lock.
pub fn hold_for_fork() -> Option<ForkGuard<'static>> {
    REGISTRY.lock.lock()
}

/// Ends [`hold_for_fork`] in the parent.
pub fn release_after_fork() {
    REGISTRY.lock.reset();
}

/// Cuts a forked child loose from its parent's segments: their addresses stay valid, but what is stored there goes
/// nowhere. To be called by the only thread of the child, before it writes to any stream.
pub fn abandon_all() {
    REGISTRY.lock.reset();
    REGISTRY.with(|mapped| {
        for (address, len) in mapped.drain(..) {
            replace(address, len);
        }
    });
}

/// Cuts this process loose from the files of all segments, whose recording has ended: what is stored there from then on
/// goes nowhere, and the files' space is free once they are removed. The addresses stay valid until their owners are
/// dropped.
pub fn retire_all() {
    REGISTRY.with(|mapped| {
        for &mut (address, len) in mapped {
            replace(address, len);
        }
    });
}

/// Replaces one of this module's mappings by private memory of the same size.
fn replace(address: usize, len: usize) {
    // SAFETY: the range is one of this module's own mappings, unknown to other code; it is replaced by memory of the
    // same size, so pointers into it stay valid.
    unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE,
            -1,
            0,
        );
    }
}

/// Maps the pages of a segment that hold `len` bytes at `address` a second time, for good: a child that is forked still
/// reaches the file through this address, which [`abandon_all`] leaves mapped. `None` where the kernel refuses.
pub fn map_again(address: usize, len: usize) -> Option<NonNull<u8>> {
    // SAFETY: the name is one that every system has.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()?;
    let first = address / page * page;
    let bytes = (address + len).next_multiple_of(page) - first;
    // SAFETY: an old size of 0 makes a second mapping of a shared one and leaves the first alone; the kernel checks the
    // range.
    let made = unsafe { libc::mremap(first as *mut libc::c_void, 0, bytes, libc::MREMAP_MAYMOVE) };
    if made == libc::MAP_FAILED {
        return None;
    }
    NonNull::new((made as usize + (address - first)) as *mut u8)
}

/// A mapped segment file.
#[derive(Debug)]
pub(super) struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a mapping is plain memory that is owned by the value.
unsafe impl Send for Mapping {}

/// Whether the call failed because the target has no free descriptor, or because another thread closed this one and perhaps
/// opened another file in its place.
fn is_of_descriptors(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::EBADF | libc::ENODEV | libc::ESPIPE)
    )
}

impl Mapping {
    /// Makes the file `path` of `len` bytes, all of its blocks allocated, and maps it. With `ahead`, its pages are made at
    /// once, which costs less than half of what they cost when each is made by the first store to it; worth it for a
    /// segment that will be filled.
    pub(super) fn create(path: &CStr, len: usize, ahead: bool) -> io::Result<Mapping> {
        match Mapping::create_here(path, len, ahead) {
            Err(error) if is_of_descriptors(&error) => {
                let made = threads::with_own_descriptors(|| Mapping::create_here(path, len, ahead));
                made.unwrap_or(Err(error))
            }
            made => made,
        }
    }

    fn create_here(path: &CStr, len: usize, ahead: bool) -> io::Result<Mapping> {
        // Beyond the file size limit the kernel would send SIGXFSZ, which kills the target.
        if pages::largest_file().is_some_and(|largest| largest < len as u64) {
            return Err(io::Error::from_raw_os_error(libc::EFBIG));
        }
        // SAFETY: the path is NUL-terminated.
        let fd = unsafe {
            libc::open(
                path.as_ptr(),
                libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC | libc::O_NOFOLLOW,
                0o600,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let mapped = Mapping::map(fd, len, ahead);
        // SAFETY: the descriptor was opened above and is not used any more; the mapping keeps the file.
        unsafe { libc::close(fd) };
        match mapped {
            Ok(mapping) => Ok(mapping),
            Err(error) => {
                // SAFETY: the path is NUL-terminated.
                unsafe { libc::unlink(path.as_ptr()) };
                Err(error)
            }
        }
    }

    fn map(fd: libc::c_int, len: usize, ahead: bool) -> io::Result<Mapping> {
        let base = pages::share(fd, len, ahead)?;
        let entry = (base.as_ptr() as usize, len);
        if !REGISTRY.with(|mapped| mapped.push(entry)) {
            // SAFETY: mapped above, and known to no one else.
            unsafe { pages::unshare(base, len) };
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Mapping { base, len })
    }

    /// Address of the first byte.
    #[inline]
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Length of the mapping in bytes.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether `len` bytes at `address` lie in it.
    #[inline]
    pub(super) fn contains(&self, address: usize, len: usize) -> bool {
        let base = self.base.as_ptr() as usize;
        address >= base && address - base <= self.len.saturating_sub(len)
    }

    #[inline]
    fn field(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: segments are larger than their header, `offset` is that of an aligned u64 in it, and all
        // accesses to these fields after the first are atomic.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(offset).cast()) }
    }

    /// The `committed` field of the head.
    #[inline]
    pub(super) fn committed(&self) -> &AtomicU64 {
        self.field(std::mem::offset_of!(SegmentHeader, committed))
    }

    /// Says in the head that nothing more is appended.
    pub(super) fn close(&self) {
        let offset = std::mem::offset_of!(SegmentHeader, flags);
        // SAFETY: segments are larger than their header, `offset` is that of an aligned u16 in it, and all accesses to this
        // field after the first are atomic.
        let flags = unsafe { AtomicU16::from_ptr(self.base.as_ptr().add(offset).cast()) };
        flags.fetch_or(segment_flag::CLOSED, Ordering::Release);
    }

    /// The `dropped` field of the head.
    pub(super) fn dropped(&self) -> &AtomicU64 {
        self.field(std::mem::offset_of!(SegmentHeader, dropped))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let entry = (self.base.as_ptr() as usize, self.len);
        REGISTRY.with(|mapped| {
            // After a fork the address range no longer maps a file; it is left alone.
            if let Some(index) = mapped.iter().position(|found| *found == entry) {
                mapped.swap_remove(index);
                // SAFETY: our own mapping, of which no reference is left when its owner is dropped.
                unsafe { pages::unshare(self.base, self.len) };
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fork_lock_stays_with_the_thread_that_holds_it() {
        static LOCK: ForkLock = ForkLock::new();
        let guard = LOCK.lock();
        assert!(guard.is_some());
        std::thread::scope(|scope| {
            for _ in 0..2 {
                let taken = scope.spawn(|| LOCK.try_lock().is_some()).join();
                assert!(!taken.expect("it returns"));
            }
        });
        assert!(LOCK.lock().is_none(), "this thread still holds it");
        drop(guard);
        assert!(LOCK.try_lock().is_some());
    }
}

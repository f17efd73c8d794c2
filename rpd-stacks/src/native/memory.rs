//! Reading the stack: the thread's own within its bounds, any other after a check of each page.

use std::sync::OnceLock;

use crate::native::PAGE;

/// Address at which the C library keeps the end of the main thread's stack, 0 if it does not.
static MAIN_STACK_END: OnceLock<usize> = OnceLock::new();

/// Looks up symbols that are needed later, so that no symbol lookup happens during a capture.
pub(crate) fn prepare() -> usize {
    // SAFETY: a lookup by name.
    *MAIN_STACK_END.get_or_init(|| unsafe {
        libc::dlsym(libc::RTLD_DEFAULT, c"__libc_stack_end".as_ptr())
    } as usize)
}

/// Bounds of the calling thread's own stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnStack {
    /// Lowest address that may be the stack pointer.
    low: u64,
    /// Address after the highest word.
    high: u64,
}

impl OwnStack {
    /// Queries the C library. Costs some microseconds and, except on the main thread, an allocation: once per thread.
    pub(crate) fn from_calling_thread(sp: u64) -> OwnStack {
        if let Some(stack) = OwnStack::from_main_thread()
            && stack.contains(sp)
        {
            return stack;
        }
        // SAFETY: the attributes are initialised by the first call and released by the last.
        unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
                return OwnStack::default();
            }
            let (mut base, mut size) = (std::ptr::null_mut(), 0);
            libc::pthread_attr_getstack(&attributes, &mut base, &mut size);
            libc::pthread_attr_destroy(&mut attributes);
            OwnStack {
                low: base as u64,
                high: base as u64 + size as u64,
            }
        }
    }

    /// The kernel's stack of the process, which the main thread runs on. `pthread_getattr_np` would read
    /// `/proc/self/maps` for it. The kernel maps nothing in the 128 MiB below the top.
    fn from_main_thread() -> Option<OwnStack> {
        const RESERVED: u64 = 128 << 20;
        // SAFETY: two questions to the kernel, and a variable of glibc that never changes.
        let end = unsafe {
            if libc::syscall(libc::SYS_gettid) != libc::c_long::from(libc::getpid()) {
                return None;
            }
            *(prepare() as *const u64).as_ref()?
        };
        let high = end.checked_next_multiple_of(PAGE)?;
        Some(OwnStack {
            low: high.saturating_sub(RESERVED),
            high,
        })
    }

    /// Whether an address is on this stack.
    #[inline(always)]
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }
}

/// Memory that a walk may read.
pub(crate) struct Readable {
    /// Range of addresses whose words are readable: from the stack pointer to the end of the thread's own stack.
    own: (u64, u64),
    /// The page that was checked last.
    page: u64,
    /// Whether other memory may be read after a check.
    others: bool,
}

impl Readable {
    /// Reads from `sp` upwards on the thread's own stack, or, where `sp` is not on it, after checks.
    pub(crate) fn new(own: &OwnStack, sp: u64) -> Readable {
        let mut readable = Readable {
            own: (0, 0),
            page: 0,
            others: false,
        };
        readable.switch(own, sp);
        readable
    }

    /// The walk goes on at `sp`, on whichever stack that is.
    pub(crate) fn switch(&mut self, own: &OwnStack, sp: u64) {
        if own.contains(sp) {
            self.own = (
                if self.own.1 == 0 {
                    sp
                } else {
                    self.own.0.min(sp)
                },
                own.high,
            );
            self.others = false;
        } else {
            self.others = true;
        }
    }

    /// Whether the walk is on a stack that is not the thread's own.
    pub(crate) fn foreign(&self) -> bool {
        self.others
    }

    /// Addresses of words that may be read without a check.
    #[inline(always)]
    pub(crate) fn own(&self) -> std::ops::Range<u64> {
        self.own.0..self.own.1
    }

    /// The word at an address, if it may be read.
    #[inline(always)]
    pub(crate) fn word(&mut self, address: u64) -> Option<u64> {
        if address & 7 != 0 {
            return None;
        }
        if address < self.own.0 || address >= self.own.1 {
            self.check(address)?;
        }
        // SAFETY: the aligned word is inside the thread's own stack or in a page that was readable just now; other
        // threads do not unmap the stack that this one is running on.
        Some(unsafe { std::ptr::read_volatile(address as *const u64) })
    }

    #[cold]
    fn check(&mut self, address: u64) -> Option<()> {
        if !self.others {
            return None;
        }
        let page = address & !(PAGE - 1);
        if page != self.page {
            if !is_readable(address) {
                return None;
            }
            self.page = page;
        }
        Some(())
    }
}

/// Whether the aligned word at an address can be read, by letting the kernel read it: the call fails with EFAULT if not,
/// else with EINVAL because of its first argument.
pub(crate) fn is_readable(address: u64) -> bool {
    if address < PAGE {
        return false;
    }
    // SAFETY: with an invalid `how` the call changes nothing.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            -1 as libc::c_long,
            address & !7,
            0,
            8,
        );
        let readable = *errno != libc::EFAULT;
        *errno = before;
        readable
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn is_readable_recognises_pages_without_read_access() {
        // SAFETY: maps and unmaps memory of its own.
        unsafe {
            let two = 2 * PAGE as usize;
            let base = libc::mmap(
                std::ptr::null_mut(),
                two,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            libc::mprotect(base.byte_add(PAGE as usize), PAGE as usize, libc::PROT_NONE);
            let base = base as u64;
            *libc::__errno_location() = 77;
            assert!(is_readable(base) && is_readable(base + PAGE - 8));
            assert!(!is_readable(base + PAGE) && !is_readable(0) && !is_readable(1 << 63));
            assert_eq!(*libc::__errno_location(), 77);
            libc::munmap(base as *mut _, two);
            assert!(!is_readable(base));
        }
    }

    #[test]
    fn own_stack_contains_the_locals_of_its_thread_only() {
        let here = 0u64;
        let sp = &raw const here as u64;
        let stack = OwnStack::from_calling_thread(sp);
        assert!(stack.contains(sp));
        std::thread::spawn(move || {
            let there = 0u64;
            let own = OwnStack::from_calling_thread(&raw const there as u64);
            assert!(own.contains(&raw const there as u64) && !own.contains(sp));
        })
        .join()
        .unwrap();
    }
}

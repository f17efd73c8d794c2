//! Pages that were written, by the kernel's report.
//!
//! It protects the pages against writes and lifts the protection of a page itself when something writes it: no signal, no waiting
//! thread, and writes by system calls count as well (`UFFD_FEATURE_WP_ASYNC` and `PAGEMAP_SCAN`, Linux 6.7).

use std::sync::OnceLock;

use rpd_spool::capture::compared;

/// Regions that the kernel reports at once.
const REGIONS: usize = 512;

/// `UFFDIO_API` and the other requests, and their structs, from `linux/userfaultfd.h` and `linux/fs.h`.
mod kernel {
    pub(super) const API: u64 = 0xaa;
    pub(super) const WP_ASYNC: u64 = 1 << 15;
    pub(super) const USER_MODE_ONLY: libc::c_int = 1;
    pub(super) const REGISTER_MODE_WP: u64 = 2;
    pub(super) const MODE_WP: u64 = 1;
    const READ_WRITE: u64 = 3;
    const READ: u64 = 2;

    const fn request(direction: u64, kind: u8, number: u64, size: usize) -> libc::Ioctl {
        (direction << 30 | (size as u64) << 16 | (kind as u64) << 8 | number) as libc::Ioctl
    }

    #[repr(C)]
    pub(super) struct Api {
        pub(super) api: u64,
        pub(super) features: u64,
        pub(super) ioctls: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub(super) struct Span {
        pub(super) start: u64,
        pub(super) len: u64,
    }

    #[repr(C)]
    pub(super) struct Register {
        pub(super) range: Span,
        pub(super) mode: u64,
        pub(super) ioctls: u64,
    }

    #[repr(C)]
    pub(super) struct Protect {
        pub(super) range: Span,
        pub(super) mode: u64,
    }

    #[repr(C)]
    #[derive(Clone, Copy, Default)]
    pub(super) struct Region {
        pub(super) start: u64,
        pub(super) end: u64,
        pub(super) categories: u64,
    }

    #[repr(C)]
    #[derive(Default)]
    pub(super) struct Scan {
        pub(super) size: u64,
        pub(super) flags: u64,
        pub(super) start: u64,
        pub(super) end: u64,
        pub(super) walk_end: u64,
        pub(super) regions: u64,
        pub(super) regions_len: u64,
        pub(super) max_pages: u64,
        pub(super) category_inverted: u64,
        pub(super) category_mask: u64,
        pub(super) category_anyof_mask: u64,
        pub(super) return_mask: u64,
    }

    pub(super) const UFFDIO_API: libc::Ioctl = request(READ_WRITE, 0xaa, 0x3f, size_of::<Api>());
    pub(super) const UFFDIO_REGISTER: libc::Ioctl =
        request(READ_WRITE, 0xaa, 0, size_of::<Register>());
    pub(super) const UFFDIO_UNREGISTER: libc::Ioctl = request(READ, 0xaa, 1, size_of::<Span>());
    pub(super) const UFFDIO_WRITEPROTECT: libc::Ioctl =
        request(READ_WRITE, 0xaa, 6, size_of::<Protect>());
    pub(super) const PAGEMAP_SCAN: libc::Ioctl = request(READ_WRITE, b'f', 16, size_of::<Scan>());

    pub(super) const SCAN_WP_MATCHING: u64 = 1;
    pub(super) const SCAN_CHECK_WPASYNC: u64 = 2;
    pub(super) const WRITTEN: u64 = 1 << 1;
    pub(super) const PRESENT: u64 = 1 << 3;
    pub(super) const SWAPPED: u64 = 1 << 4;
}

/// The file through which the kernel is queried.
pub(super) struct KernelFiles {
    faults: libc::c_int,
    pagemap: libc::c_int,
    /// Id of the process that opened the files: in a forked child they still stand for the memory of the parent.
    process: u32,
}

/// Descriptors have numbers from here on, where the limit allows that: programs may expect the first free ones for themselves.
const FIRST_DESCRIPTOR: libc::c_int = 900;

/// The reason when there is none.
static KERNEL: OnceLock<Result<KernelFiles, usize>> = OnceLock::new();

/// Makes a request whose argument is a struct of the kernel's.
fn ioctl_on<T>(file: libc::c_int, request: libc::Ioctl, argument: &mut T) -> Option<usize> {
    // SAFETY: the argument is the struct of this request; memory it refers to is valid for the call.
    let done = unsafe { libc::ioctl(file, request, std::ptr::from_mut(argument)) };
    usize::try_from(done).ok()
}

/// Reason why the last system call of this thread failed: one of [`rpd_spool::capture::compared`].
fn reason() -> usize {
    // SAFETY: reading the errno of this thread.
    match unsafe { *libc::__errno_location() } {
        libc::EPERM | libc::EACCES => compared::FORBIDDEN,
        _ => compared::OLD_KERNEL,
    }
}

/// Gives an open descriptor of ours a high number, if there is a free one.
fn out_of_the_way(file: libc::c_int) -> libc::c_int {
    // SAFETY: the descriptor is of this module, and used by its new number only.
    unsafe {
        let moved = libc::fcntl(file, libc::F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR);
        if moved < 0 {
            return file;
        }
        libc::close(file);
        moved
    }
}

impl KernelFiles {
    pub(super) fn get() -> Result<&'static KernelFiles, usize> {
        KERNEL
            .get_or_init(KernelFiles::open)
            .as_ref()
            .map_err(|why| *why)
            .and_then(|kernel| {
                if kernel.process == std::process::id() {
                    Ok(kernel)
                } else {
                    Err(compared::FORBIDDEN)
                }
            })
    }

    fn open() -> Result<KernelFiles, usize> {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK | kernel::USER_MODE_ONLY;
        // SAFETY: the call has no other argument.
        let faults = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) } as libc::c_int;
        if faults < 0 {
            return Err(reason());
        }
        let mut api = kernel::Api {
            api: kernel::API,
            features: kernel::WP_ASYNC,
            ioctls: 0,
        };
        let ready = match ioctl_on(faults, kernel::UFFDIO_API, &mut api) {
            Some(_) => Ok(()),
            None => Err(reason()),
        };
        // SAFETY: the path is NUL-terminated.
        let pagemap = unsafe {
            libc::open(
                c"/proc/self/pagemap".as_ptr(),
                libc::O_RDONLY | libc::O_CLOEXEC,
            )
        };
        if ready.is_err() || pagemap < 0 {
            // SAFETY: descriptors of this function.
            unsafe {
                libc::close(faults);
                libc::close(pagemap);
            }
            return Err(ready.err().unwrap_or(compared::FORBIDDEN));
        }
        Ok(KernelFiles {
            faults: out_of_the_way(faults),
            pagemap: out_of_the_way(pagemap),
            process: std::process::id(),
        })
    }

    /// Protects whole pages; the reason when that is not possible.
    pub(super) fn protect(&self, start: u64, end: u64) -> Result<(), usize> {
        // Writes through another mapping, or to the file, are not reported by this one's protection.
        if !is_private(start, end) {
            return Err(compared::SHARED);
        }
        let range = kernel::Span {
            start,
            len: end - start,
        };
        let mut register = kernel::Register {
            range,
            mode: kernel::REGISTER_MODE_WP,
            ioctls: 0,
        };
        if ioctl_on(self.faults, kernel::UFFDIO_REGISTER, &mut register).is_none() {
            return Err(compared::REFUSED);
        }
        let mut protect = kernel::Protect {
            range,
            mode: kernel::MODE_WP,
        };
        let done = ioctl_on(self.faults, kernel::UFFDIO_WRITEPROTECT, &mut protect).is_some();
        let protected = if done {
            self.protected(start, end).ok_or_else(reason)
        } else {
            Err(compared::REFUSED)
        };
        // Memory of drivers is accepted, and then left out.
        let all = protected.and_then(|bytes| {
            if bytes == end - start {
                Ok(())
            } else {
                Err(compared::REFUSED)
            }
        });
        // Protection of a part is of no use: writes to the rest would be missed.
        if all.is_err() {
            self.leave(start, end);
        }
        all
    }

    /// Bytes of pages that are protected.
    fn protected(&self, start: u64, end: u64) -> Option<u64> {
        let mut sum = 0;
        let mask = kernel::WRITTEN | kernel::PRESENT | kernel::SWAPPED;
        let scan = kernel::Scan {
            flags: kernel::SCAN_CHECK_WPASYNC,
            return_mask: mask,
            ..kernel::Scan::default()
        };
        self.scan(start, end, &scan, |region| {
            let there = kernel::PRESENT | kernel::SWAPPED;
            if region.categories & kernel::WRITTEN == 0 && region.categories & there != 0 {
                sum += region.end - region.start;
            }
        })?;
        Some(sum)
    }

    pub(super) fn leave(&self, start: u64, end: u64) {
        let mut range = kernel::Span {
            start,
            len: end - start,
        };
        // Fails where the program has removed the memory, and nothing is left to do.
        let _ = ioctl_on(self.faults, kernel::UFFDIO_UNREGISTER, &mut range);
    }

    /// Pages that were written since the last call, in order, which are protected again. `None` when that is not known.
    pub(super) fn written(
        &self,
        start: u64,
        end: u64,
        mut found: impl FnMut(u64, u64),
    ) -> Option<()> {
        // Pages that are not there are reported as well: the program may have dropped their content, which is no write.
        let scan = kernel::Scan {
            flags: kernel::SCAN_WP_MATCHING | kernel::SCAN_CHECK_WPASYNC,
            category_inverted: kernel::PRESENT,
            category_anyof_mask: kernel::WRITTEN | kernel::PRESENT,
            return_mask: kernel::WRITTEN | kernel::PRESENT,
            ..kernel::Scan::default()
        };
        self.scan(start, end, &scan, |region| {
            found(region.start, region.end);
        })
    }

    /// Calls `found` for regions of pages between `start` and `end`. `what`: the flags and masks of the request.
    fn scan(
        &self,
        start: u64,
        end: u64,
        what: &kernel::Scan,
        mut found: impl FnMut(kernel::Region),
    ) -> Option<()> {
        let mut regions = [kernel::Region::default(); REGIONS];
        let mut at = start;
        while at < end {
            let mut scan = kernel::Scan {
                size: size_of::<kernel::Scan>() as u64,
                start: at,
                end,
                regions: regions.as_mut_ptr() as u64,
                regions_len: REGIONS as u64,
                ..*what
            };
            let count = ioctl_on(self.pagemap, kernel::PAGEMAP_SCAN, &mut scan)?;
            for region in regions.get(..count)? {
                found(*region);
            }
            if scan.walk_end <= at {
                return None;
            }
            at = scan.walk_end;
        }
        Some(())
    }
}

/// Bytes of a page.
pub(super) fn page_size() -> u64 {
    // SAFETY: sysconf has no effects.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as u64 }
}

/// Whether memory belongs to this process alone: what is written to a shared mapping or to a file by another way is not seen.
fn is_private(start: u64, end: u64) -> bool {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return false;
    };
    let mut at = start;
    for line in maps.lines() {
        let mut words = line.split_ascii_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let Some((first, last)) = range else {
            continue;
        };
        let address = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        let (first, last) = (address(first), address(last));
        if last <= at {
            continue;
        }
        let access = words.next().unwrap_or_default();
        let inode = words.nth(2).unwrap_or_default();
        if first > at || !access.ends_with('p') || inode != "0" {
            return false;
        }
        at = last;
        if at >= end {
            return true;
        }
    }
    false
}

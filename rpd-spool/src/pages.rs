//! The system calls that make memory of a segment file.

use std::io;
use std::ptr::{self, NonNull};

/// Bytes that a file of this process may have at most. `None` when there is no limit.
pub(super) fn largest_file() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is valid for the call.
    let status = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    (status == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Maps the first `len` bytes of an empty file, all of whose blocks are allocated first. With `ahead` its pages are made at
/// once.
pub(super) fn share(fd: libc::c_int, len: usize, ahead: bool) -> io::Result<NonNull<u8>> {
    let size = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // Without blocks after it a store to the mapping could raise SIGBUS on a full disk.
    // SAFETY: the descriptor is open.
    let status = unsafe { libc::posix_fallocate(fd, 0, size) };
    if status != 0 {
        return Err(io::Error::from_raw_os_error(status));
    }
    if ahead {
        write_zeros(fd, len);
    }
    let base = map(fd, len)?;
    if ahead {
        // Kernels before 5.14 cannot; the pages are then mapped one by one.
        // SAFETY: our own mapping; its content is not changed.
        unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_POPULATE_WRITE) };
    }
    Ok(base)
}

/// Maps the first `len` bytes of a file that has at least as many, to share them with other processes.
pub(super) fn map(fd: libc::c_int, len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new mapping at an address the kernel chooses.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(address.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

/// Removes a mapping made by [`share`] or [`map`].
///
/// # Safety
/// The mapping has `len` bytes, and nothing refers to it any more.
pub(super) unsafe fn unshare(base: NonNull<u8>, len: usize) {
    // SAFETY: the caller says so.
    unsafe { libc::munmap(base.as_ptr().cast(), len) };
}

/// Writes zeros to the file's first `len` bytes, so that the page cache has them in units as large as the file system
/// allows. In a mapping of a file whose blocks are only allocated, the first access to each page would be a fault that
/// fills the page.
fn write_zeros(fd: libc::c_int, len: usize) {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut done = 0;
    while done < len {
        let mut left = len - done;
        // One call writes all of a segment of the usual size.
        let parts = [(); 16].map(|()| {
            let part = ZEROS.len().min(left);
            left -= part;
            libc::iovec {
                iov_base: ZEROS.as_ptr().cast_mut().cast(),
                iov_len: part,
            }
        });
        // SAFETY: each part is of the buffer, which is only read.
        let written = unsafe {
            libc::pwritev(
                fd,
                parts.as_ptr(),
                parts.len() as libc::c_int,
                done as libc::off_t,
            )
        };
        match usize::try_from(written) {
            Ok(written) if written > 0 => done += written,
            // The pages are then made by the first store to each.
            _ => return,
        }
    }
}

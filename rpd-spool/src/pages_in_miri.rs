//! Substitute of `pages.rs` under Miri, which maps no files: memory of the process, which is written to its file when
//! it is no longer used. Readers find the segment's bytes from then on.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::Mutex;

/// The file of each mapping, by its address.
static FILES: Mutex<Vec<(usize, File)>> = Mutex::new(Vec::new());

/// The largest size of a file: no limit here.
pub(super) fn largest_file() -> Option<u64> {
    None
}

/// Memory for the first `len` bytes of a file.
pub(super) fn share(fd: libc::c_int, len: usize, _: bool) -> io::Result<NonNull<u8>> {
    // SAFETY: the descriptor is open.
    let file = File::from(unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()?);
    // SAFETY: a new mapping at an address that Miri chooses.
    let address = unsafe {
        libc::mmap(
            ptr::null_mut(),
            len,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let base = NonNull::new(address.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    let mut files = FILES.lock().map_err(|_| io::ErrorKind::Other)?;
    files.push((address as usize, file));
    Ok(base)
}

/// Memory that is shared with another process, which Miri does not have.
pub(super) fn map(_: libc::c_int, _: usize) -> io::Result<NonNull<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Writes the memory to its file and frees it.
///
/// # Safety
/// The mapping has `len` bytes and is from [`share`], and nothing refers to it any more.
pub(super) unsafe fn unshare(base: NonNull<u8>, len: usize) {
    let mut files = FILES.lock().expect("no one panicked with the lock");
    let index = files
        .iter()
        .position(|(address, _)| *address == base.as_ptr() as usize)
        .expect("memory of `share`");
    let (_, mut file) = files.swap_remove(index);
    // SAFETY: the caller says so.
    let bytes = unsafe { std::slice::from_raw_parts(base.as_ptr(), len) };
    file.write_all(bytes).expect("the segment can be written");
    // SAFETY: the caller says so.
    unsafe { libc::munmap(base.as_ptr().cast(), len) };
}

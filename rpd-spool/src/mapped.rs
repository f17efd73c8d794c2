//! Whether a process of this machine still has a file mapped for writing: known without its number, which another PID
//! namespace may hide.
//!
//! The kernel grants a read lease on a file that no one has open for writing, and a mapping keeps its file open.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Command of `fcntl`: the signal for a process whose lease is broken. The libc crate lacks it.
const F_SETSIG: libc::c_int = 10;

/// Whether the file, which is open for reading only, is mapped for writing by any process. `None` where the file system
/// cannot tell, or this user may not ask. `directory` is a directory on the same file system in which a file can be made.
pub fn is_mapped(file: &File, directory: &Path) -> Option<bool> {
    if !tells(directory).unwrap_or(false) {
        return None;
    }
    lease(file).ok().map(|granted| !granted)
}

/// Whether a lease was granted; it is given back at once.
fn lease(file: &File) -> io::Result<bool> {
    let file = file.as_raw_fd();
    // SAFETY: the descriptor is open, and these commands take numbers. The signal for a writer that comes in between is one
    // that is ignored by default; SIGIO would end this process.
    let status = unsafe {
        libc::fcntl(file, F_SETSIG, libc::SIGURG);
        libc::fcntl(file, libc::F_SETLEASE, libc::F_RDLCK)
    };
    if status == 0 {
        // SAFETY: as above.
        unsafe { libc::fcntl(file, libc::F_SETLEASE, libc::F_UNLCK) };
        return Ok(true);
    }
    match io::Error::last_os_error() {
        error if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        error => Err(error),
    }
}

/// Whether leases tell here: layered file systems may grant one on a mapped file.
fn tells(directory: &Path) -> io::Result<bool> {
    const LEN: usize = 1;
    let directory = std::ffi::CString::new(directory.as_os_str().as_bytes())?;
    let flags = libc::O_TMPFILE | libc::O_RDWR | libc::O_CLOEXEC;
    // SAFETY: the path is text; the descriptor is checked before it is used.
    let made = unsafe { libc::open(directory.as_ptr(), flags, 0o600) };
    if made < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, and owned by no one else.
    let written = unsafe { File::from_raw_fd(made) };
    written.set_len(LEN as u64)?;
    let read = File::open(format!("/proc/self/fd/{made}"))?;
    // SAFETY: a new mapping of a file of this process, which no one touches.
    let mapping = unsafe {
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        libc::mmap(std::ptr::null_mut(), LEN, access, shared, made, 0)
    };
    if mapping == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    drop(written);
    let while_mapped = lease(&read);
    // SAFETY: the mapping that was just made.
    unsafe { libc::munmap(mapping, LEN) };
    Ok(!while_mapped? && lease(&read)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "maps files")]
    fn is_mapped_sees_a_mapping_until_it_is_removed() {
        let run = tempfile::tempdir().expect("a directory");
        let directory = crate::writer::SpoolDirectory::create(run.path()).expect("made");
        let mut stream = crate::writer::StreamWriter::new(&directory, "meta".to_owned(), 0, 0);
        assert!(stream.append(16, |bytes| bytes.fill(1)));
        let file = File::open(directory.path().join("meta-0.seg")).expect("made");
        let Some(mapped) = is_mapped(&file, run.path()) else {
            eprintln!(
                "skipped: the file system of {} has no leases",
                run.path().display()
            );
            return;
        };
        assert!(mapped);
        drop(stream);
        assert_eq!(is_mapped(&file, run.path()), Some(false));
    }
}

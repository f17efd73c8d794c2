//! Reasons why the next program of a process cannot be recorded. Makes no allocation: it may run between `fork` and
//! `exec`.

use std::ffi::{CStr, CString, c_int};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::OnceLock;

const SET_USER: &CStr = c"it is a set-user-id program";
const SET_GROUP: &CStr = c"it is a set-group-id program";
const STATIC: &CStr = c"it is statically linked";
const CAPABLE: &CStr = c"its file has capabilities";
const TWO_USERS: &CStr = c"its real user is not its effective one";
const OTHER_USER: &CStr = c"its user may not write in the directory of this run";

/// Path of the run's directory.
static RUN: OnceLock<CString> = OnceLock::new();

/// Notes the run's directory. To be called when the library is loaded, for a process that is recorded.
pub(crate) fn prepare() {
    let run = std::env::var_os("RPD_SPOOL").and_then(|run| CString::new(run.as_bytes()).ok());
    if let Some(run) = run {
        let _ = RUN.set(run);
    }
}

/// Reason why no program can be recorded that this process becomes as it is. `user` is the user with whom it was
/// loaded.
pub(crate) fn of_user(user: libc::uid_t) -> Option<&'static CStr> {
    // SAFETY: these system calls take no pointers.
    let (real, effective, group, effective_group) = unsafe {
        (
            libc::getuid(),
            libc::geteuid(),
            libc::getgid(),
            libc::getegid(),
        )
    };
    if real != effective || group != effective_group {
        return Some(TWO_USERS);
    }
    if effective == user {
        return None;
    }
    let run = RUN.get()?;
    // SAFETY: the path is text.
    let refused = unsafe { libc::access(run.as_ptr(), libc::W_OK | libc::X_OK) } != 0;
    refused.then_some(OTHER_USER)
}

/// Reason why the loader would preload nothing into this file: it needs no loader, or gives its process rights that its
/// user does not have.
/// `flags` is 0 or `AT_EMPTY_PATH`, with which `directory` is the file.
pub(crate) fn at(directory: c_int, path: &CStr, flags: c_int) -> Option<&'static CStr> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is text; the record is written when the answer is 0.
    let file = unsafe {
        if libc::fstatat(directory, path.as_ptr(), found.as_mut_ptr(), flags) != 0 {
            return None;
        }
        found.assume_init()
    };
    // SAFETY: these system calls take no pointers.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    let by_user = file.st_mode & libc::S_ISUID != 0 && file.st_uid != user;
    let shared = libc::S_ISGID | libc::S_IXGRP;
    let by_group = file.st_mode & shared == shared && file.st_gid != group;
    let by_capability = user != 0 && flags == 0 && directory == libc::AT_FDCWD && is_capable(path);
    let why = match (by_user, by_group, by_capability) {
        (true, ..) => SET_USER,
        (_, true, _) => SET_GROUP,
        (.., true) => CAPABLE,
        _ => return is_static(directory, path, flags).then_some(STATIC),
    };
    // SAFETY: takes no pointers.
    let is_ignored = unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } == 1;
    (!is_ignored && !is_script(directory, path)).then_some(why)
}

fn is_capable(path: &CStr) -> bool {
    let name = c"security.capability";
    // SAFETY: both are text, and nothing is written.
    unsafe { libc::getxattr(path.as_ptr(), name.as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// Opens a file for reading, calls `act` with its descriptor, and closes it. `None` where it cannot be opened.
fn with_file<T>(
    directory: c_int,
    path: &CStr,
    flags: c_int,
    act: impl FnOnce(c_int) -> Option<T>,
) -> Option<T> {
    if flags & libc::AT_EMPTY_PATH != 0 && path.is_empty() {
        return act(directory);
    }
    // A file that is executed is a regular one; a pipe would be waited for.
    let open = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the path is text.
    let file = unsafe { libc::openat(directory, path.as_ptr(), open) };
    if file < 0 {
        return None;
    }
    let found = act(file);
    // SAFETY: it was opened above.
    unsafe { libc::close(file) };
    found
}

/// `LEN` bytes of a file; `None` where it has fewer.
fn bytes<const LEN: usize>(file: c_int, at: u64) -> Option<[u8; LEN]> {
    let mut bytes = [0; LEN];
    let at = libc::off_t::try_from(at).ok()?;
    // SAFETY: the buffer has as many bytes.
    let read = unsafe { libc::pread(file, bytes.as_mut_ptr().cast(), LEN, at) };
    (read == LEN as isize).then_some(bytes)
}

/// Whether the kernel runs a file without the loader: an ELF program that names none. The loader itself names none either, and
/// loads what it is given; it is no position-independent program, but a library.
fn is_static(directory: c_int, path: &CStr, flags: c_int) -> bool {
    const INTERPRETER: u32 = 3;
    const DYNAMIC: u32 = 2;
    const FLAGS_1: u64 = 0x6fff_fffb;
    const PIE: u64 = 0x0800_0000;
    let judge = |file| {
        let head: [u8; 64] = bytes(file, 0)?;
        if !head.starts_with(b"\x7fELF\x02") {
            return None;
        }
        let half = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let table = u64::from_le_bytes(*head[32..].first_chunk()?);
        let (size, count) = (half(54), half(56));
        let mut dynamic = None;
        for number in 0..count {
            let entry: [u8; 56] = bytes(file, table.checked_add(number * size)?)?;
            let word = |at: usize| Some(u64::from_le_bytes(*entry[at..].first_chunk()?));
            match u32::from_le_bytes(*entry.first_chunk()?) {
                INTERPRETER => return Some(false),
                DYNAMIC => dynamic = Some((word(8)?, word(32)?)),
                _ => {}
            }
        }
        let Some((at, size)) = dynamic else {
            return Some(true);
        };
        for number in 0..size / 16 {
            let entry: [u8; 16] = bytes(file, at.checked_add(number * 16)?)?;
            let (tag, value) = (
                u128::from_le_bytes(entry) as u64,
                u128::from_le_bytes(entry) >> 64,
            );
            match tag {
                0 => break,
                FLAGS_1 => return Some(value as u64 & PIE != 0),
                _ => {}
            }
        }
        Some(false)
    };
    with_file(directory, path, flags, judge).unwrap_or(false)
}

/// Whether the file is a script, whose own rights do not count. One that cannot be read is none: a program can be executed
/// all the same.
fn is_script(directory: c_int, path: &CStr) -> bool {
    with_file(directory, path, 0, |file| bytes::<2>(file, 0)).is_some_and(|magic| magic == *b"#!")
}

/// Reason why rpd stays out of a program with this name, for which `PATH` is searched ([`at`] for a path).
pub(crate) fn searched(name: &CStr) -> Option<&'static CStr> {
    if name.to_bytes().contains(&b'/') {
        return at(libc::AT_FDCWD, name, 0);
    }
    // SAFETY: the name is text; the answer is text or null, which lives while no one changes the environment.
    let path = unsafe { libc::getenv(c"PATH".as_ptr()) };
    if path.is_null() || name.is_empty() {
        return None;
    }
    // SAFETY: not null, so it is text.
    let path = unsafe { CStr::from_ptr(path) };
    let mut buffer = [0u8; libc::PATH_MAX as usize];
    for directory in path.to_bytes().split(|byte| *byte == b':') {
        let name = name.to_bytes_with_nul();
        // An empty entry is the current directory.
        let slash = usize::from(!directory.is_empty());
        let len = directory.len() + slash + name.len();
        let Some(place) = buffer.get_mut(..len) else {
            continue;
        };
        place[..directory.len()].copy_from_slice(directory);
        place[directory.len()..][..slash].fill(b'/');
        place[directory.len() + slash..].copy_from_slice(name);
        let Ok(file) = CStr::from_bytes_until_nul(place) else {
            continue;
        };
        // SAFETY: the path is text.
        if unsafe { libc::access(file.as_ptr(), libc::X_OK) } == 0 {
            return at(libc::AT_FDCWD, file, 0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn obstacle_is_found_at_programs_with_rights_of_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("program");
        let at = |content: &[u8], mode| {
            std::fs::write(&path, content).expect("written");
            // Another owner than this user, where that is possible.
            let owned = std::os::unix::fs::chown(&path, Some(54_321), Some(54_321));
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).expect("changed");
            let path = CString::new(path.as_os_str().as_bytes()).expect("text");
            owned.is_ok().then(|| super::at(libc::AT_FDCWD, &path, 0))
        };
        if at(b"\x7fELF", 0o755).is_none() {
            eprintln!("skipped: files of another user: only root can make them");
            return;
        }
        assert_eq!(at(b"\x7fELF", 0o755), Some(None));
        assert_eq!(at(b"\x7fELF", 0o4755), Some(Some(SET_USER)));
        assert_eq!(at(b"\x7fELF", 0o2755), Some(Some(SET_GROUP)));
        assert_eq!(at(b"#!/bin/sh", 0o4755), Some(None));
    }

    #[test]
    fn obstacle_of_this_process_is_none() {
        // SAFETY: takes no pointers.
        let user = unsafe { libc::geteuid() };
        assert_eq!(of_user(user), None);
        assert_eq!(searched(c"sh"), None);
        assert_eq!(searched(c"no such program"), None);
        assert_eq!(at(libc::AT_FDCWD, c"/nonexistent/program", 0), None);
    }
}

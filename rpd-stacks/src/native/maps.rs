//! The kernel's list of mappings, read without allocation.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A mapping of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First address of the mapping.
    pub(crate) start: u64,
    /// Address after the last byte of the mapping.
    pub(crate) end: u64,
    /// Whether the mapping holds code.
    pub(crate) executable: bool,
    /// Whether the mapping can be read.
    pub(crate) readable: bool,
}

/// The mapping that holds an address.
pub(crate) fn mapping_at(address: u64, buffer: &mut [u8]) -> Option<Mapping> {
    find(address, buffer, |mapping, _| Some(mapping))
}

/// The path of the file that is mapped at an address.
pub(crate) fn path_at(address: u64, buffer: &mut [u8]) -> Option<&[u8]> {
    let range = find(address, buffer, |_, path| Some(path))?;
    buffer.get(range.0..range.1)
}

/// Calls `found` with the mapping that holds an address, and where its path is in the buffer.
fn find<T>(
    address: u64,
    buffer: &mut [u8],
    found: impl FnOnce(Mapping, (usize, usize)) -> Option<T>,
) -> Option<T> {
    let file = open(c"/proc/self/maps")?;
    let mut filled = 0;
    loop {
        let len = read(&file, &mut buffer[filled..]);
        if len == 0 {
            return None;
        }
        filled += len;
        let mut at = 0;
        while let Some(line) = buffer[at..filled].iter().position(|&byte| byte == b'\n') {
            let end = at + line;
            if let Some(mapping) = parse(&buffer[at..end])
                && (mapping.start..mapping.end).contains(&address)
            {
                // Five fields stand before the path, separated by single spaces; the path is padded.
                let path = buffer[at..end]
                    .iter()
                    .position(|&byte| byte == b'/')
                    .map_or((end, end), |path| (at + path, end));
                return found(mapping, path);
            }
            at = end + 1;
        }
        // A line that does not fit (a very long path) is given up.
        if at == 0 && filled == buffer.len() {
            at = filled;
        }
        buffer.copy_within(at..filled, 0);
        filled -= at;
    }
}

fn parse(line: &[u8]) -> Option<Mapping> {
    let dash = line.iter().position(|&byte| byte == b'-')?;
    let space = line.iter().position(|&byte| byte == b' ')?;
    let number = |digits: &[u8]| u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    Some(Mapping {
        start: number(line.get(..dash)?)?,
        end: number(line.get(dash + 1..space)?)?,
        readable: line.get(space + 1)? == &b'r',
        executable: line.get(space + 3)? == &b'x',
    })
}

/// Opens a file for reading, without allocation.
fn open(path: &std::ffi::CStr) -> Option<OwnedFd> {
    // SAFETY: a string constant.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    // SAFETY: the descriptor was opened here.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Reads as much as there is, up to the length of the buffer.
fn read(file: &OwnedFd, buffer: &mut [u8]) -> usize {
    // SAFETY: the buffer is as long as stated.
    let len = unsafe { libc::read(file.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(len).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found_with_any_size_of_buffer() {
        let code = mappings_are_found_with_any_size_of_buffer as *const () as u64;
        let program = std::fs::read_link("/proc/self/exe").unwrap();
        for size in [200, 1000, 65536] {
            let mut buffer = vec![0; size];
            let mapping = mapping_at(code, &mut buffer).unwrap();
            assert!(
                mapping.executable && mapping.readable,
                "{size}: {mapping:?}"
            );
            assert_eq!(
                path_at(code, &mut buffer).unwrap(),
                program.as_os_str().as_encoded_bytes()
            );
            let data = buffer.as_ptr() as u64;
            assert!(!mapping_at(data, &mut buffer).unwrap().executable);
            assert_eq!(mapping_at(8, &mut buffer), None);
        }
    }
}

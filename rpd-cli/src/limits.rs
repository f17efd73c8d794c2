//! Limits of this process that are too low for rpd to work, found before it does anything, and recognised in failures.

use std::io::ErrorKind;

use crate::failure::Failure;

/// Greatest number of descriptors that rpd has open at the same time: directories of the run, recordings, a database with
/// its journal, and columns in files.
const DESCRIPTORS: u64 = 48;

/// Pieces of the messages of libraries to which the system refuses threads, memory or descriptors.
const REFUSALS: [&str; 6] = [
    "Resource temporarily unavailable",
    "WouldBlock",
    "Cannot allocate memory",
    "OutOfMemory",
    "Too many open files",
    "instance has previously been poisoned",
];

/// Checks the limits.
///
/// # Errors
/// One is too low.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub(crate) fn check() -> Result<(), Failure> {
    let allowed = match std::fs::read_to_string("/proc/self/limits") {
        Ok(text) => open_files(&text),
        // Not even this file: no descriptor is free.
        Err(error) if error.kind() != ErrorKind::NotFound => Some(0),
        Err(_) => None,
    };
    match allowed {
        Some(allowed) if allowed < DESCRIPTORS => Err(Failure::failed(format!(
            "the limit on open files is too low for rpd, which needs {DESCRIPTORS} (ulimit -n shows and raises it)"
        ))),
        _ => Ok(()),
    }
}

/// The soft limit on open files; `None` where there is none.
fn open_files(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Whether a panic with this message is one of a limit, and none of a mistake in rpd.
pub(crate) fn is_refusal(message: &str) -> bool {
    REFUSALS.iter().any(|refusal| message.contains(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_on_open_files_is_read_from_proc() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max processes             unlimited            unlimited            processes \n\
            Max open files            5                    1024                 files     \n";
        assert_eq!(open_files(limits), Some(5));
        assert_eq!(open_files(&limits.replace("  5 ", " unlimited ")), None);
        assert_eq!(open_files(""), None);
        assert!(check().is_ok());
    }

    #[test]
    fn is_refusal_recognises_failures_of_limits() {
        let error = std::io::Error::from_raw_os_error(11);
        assert!(is_refusal(&format!("failed to spawn thread: {error:?}")));
        assert!(!is_refusal("index out of bounds"));
    }
}

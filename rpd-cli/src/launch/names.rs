//! Refuses output names that are too long, before the target starts.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rpd_core::ids::ProcessId;
use rpd_core::naming::{self, Facts, Namer};
use rpd_core::options::Options;
use rpd_core::session::Process;
use rpd_core::text::os_text;

use crate::failure::Failure;

/// Linux's limits for a component of a path and for a path, in bytes.
const MAX_NAME: usize = 255;
const MAX_PATH: usize = 4095;
/// The longest file name that a writer appends to a prefix.
const LONGEST: &str = "memory_allocation_stats.csv";

/// Fills in the patterns with the facts about the target that are known before its start.
///
/// # Errors
/// A directory or a file would have a name that is too long.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel")]
pub(super) fn check(options: &Options, cwd: &Path) -> Result<(), Failure> {
    // The target's pid is not known yet; the largest one makes the longest names.
    let pid = std::fs::read_to_string("/proc/sys/kernel/pid_max")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(u32::MAX);
    let process = Process {
        pid: ProcessId(pid),
        ppid: ProcessId(std::process::id()),
        command: options.command.clone(),
        cwd: os_text::escape(cwd.as_os_str()),
        environment: std::env::vars_os()
            .map(|(name, value)| (os_text::escape(&name), os_text::escape(&value)))
            .collect(),
        ..Process::default()
    };
    let facts = Facts {
        process: &process,
        options,
        hostname: &naming::hostname(),
    };
    let file = Namer::default().target(&facts, false).file(LONGEST);
    let refuse = |what: &str, name: &[u8], most: usize| {
        let shown: String = String::from_utf8_lossy(name).chars().take(40).collect();
        Err(Failure::failed(format!(
            "-d/--output-directory and -o/--output-file: {what} of {} bytes, of which {most} are possible: {shown}...; \
             give shorter ones",
            name.len()
        )))
    };
    for component in file.components() {
        if let Component::Normal(name) = component
            && name.len() > MAX_NAME
        {
            return refuse("they make a name", name.as_bytes(), MAX_NAME);
        }
    }
    let path = file.as_os_str().as_bytes();
    if path.len() > MAX_PATH {
        return refuse("they make a path", path, MAX_PATH);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_too_long_for_the_file_system_are_found_before_the_start() {
        let with = |directory: &str, file: &str| {
            let options = Options {
                output_directory: directory.to_owned(),
                output_file: file.to_owned(),
                command: vec!["app".to_owned(), "y".repeat(250)],
                ..Options::default()
            };
            check(&options, Path::new("/")).map_err(|failure| failure.message)
        };
        let room = MAX_NAME - LONGEST.len() - 1;
        assert_eq!(with("/out", &"x".repeat(room)), Ok(()));
        assert_eq!(
            with("/out", &"x".repeat(room + 1)),
            Err(format!(
                "-d/--output-directory and -o/--output-file: they make a name of 256 bytes, of which 255 are possible: \
                 {}...; give shorter ones",
                "x".repeat(40)
            ))
        );
        assert!(with("/out", "%arg1%/x").is_ok());
        assert!(with("/out", "%arg1%").is_err());
        assert!(with(&"/abcdefg".repeat(512), "x").is_err());
    }
}

//! The statuses that rpd ends with. docs/command-line.md lists them, and a test compares.

/// Success. (A run ends with the status of its target.)
pub(crate) const SUCCESS: u8 = 0;
/// Something went wrong: an output or a recording is not complete, or the run could not begin.
pub(crate) const FAILED: u8 = 1;
/// A mistake in the command line.
pub(crate) const USAGE: u8 = 2;
/// A gate of `rpd diff` found something slower than allowed, or one of an answer a value above its limit.
pub(crate) const SLOWER: u8 = 3;
/// A capture is incomplete or damaged. (The same number as a mistake in the command line.)
pub(crate) const DAMAGED: u8 = 2;
/// A call of the runtime failed in a replay. (The same number as of a gate.)
pub(crate) const API: u8 = 3;
/// Results of a replay, or captures, differ.
pub(crate) const DIFFERS: u8 = 4;
/// No GPU here runs the code of a capture.
pub(crate) const INCOMPATIBLE: u8 = 5;
/// A capture has calls that cannot be replayed.
pub(crate) const UNSUPPORTED: u8 = 6;
/// A recording holds nothing that an answer needs.
pub(crate) const NOTHING_TO_ANSWER: u8 = 7;
/// The target cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The target does not exist.
pub(crate) const NOT_FOUND: u8 = 127;
/// Exit status of a target that a signal ended, less the number of the signal.
pub(crate) const SIGNALLED: u8 = 128;

/// The status for work that is complete or is not.
pub(crate) const fn from_complete(complete: bool) -> u8 {
    if complete { SUCCESS } else { FAILED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_lists_every_exit_status() {
        let manual = include_str!("../../docs/command-line.md");
        let section = manual
            .split_once("\n## Exit status\n")
            .expect("a section")
            .1;
        let section = section.split("\n## ").next().unwrap_or(section);
        let listed: Vec<String> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
            .map(|(status, _)| status.to_owned())
            .filter(|status| status.starts_with(|letter: char| letter.is_ascii_digit()))
            .collect();
        let known = [
            FAILED,
            USAGE,
            SLOWER,
            DIFFERS,
            INCOMPATIBLE,
            UNSUPPORTED,
            NOTHING_TO_ANSWER,
            NOT_EXECUTABLE,
            NOT_FOUND,
        ]
        .map(|one| one.to_string());
        assert_eq!(listed, [&known[..], &[format!("{SIGNALLED}+n")]].concat());
    }
}

//! The variables that travel to the target: a block of memory that its registration library reads.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

/// Beginning of the names of all variables that travel.
const PREFIX: &[u8] = b"ROCP";
/// The variable that stays behind: the SDK of the attacher is not that of the target.
const SDK: &str = "ROCPROFILER_REGISTER_LIBRARY";

/// Variables that are set in the target when a tool is attached. They stay set there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// No variables.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// The variables of this process that ROCm's attacher sends: those whose names begin with `ROCP`, except
    /// `ROCPROFILER_REGISTER_LIBRARY`.
    pub fn inherited() -> Environment {
        let travels = |name: &OsStr| name.as_bytes().starts_with(PREFIX) && name != SDK;
        let mut variables: Vec<_> = std::env::vars_os()
            .filter(|(name, _)| travels(name))
            .collect();
        variables.sort();
        Environment { variables }
    }

    /// Sets a variable, in the place of one of the same name. A NUL byte ends the value, as it does in every environment.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Environment {
        let name = name.into();
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value.into()));
        self
    }

    /// Value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    /// The block: the number of pairs, 32 bits with the lowest byte first, then each name and each value, each with a NUL.
    pub(crate) fn block(&self) -> Vec<u8> {
        let count = u32::try_from(self.variables.len()).unwrap_or(u32::MAX);
        let mut block = count.to_le_bytes().to_vec();
        let texts = self
            .variables
            .iter()
            .flat_map(|(name, value)| [name, value]);
        for text in texts {
            let text = text.as_bytes().split(|byte| *byte == 0).next();
            block.extend_from_slice(text.unwrap_or_default());
            block.push(0);
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_has_the_number_of_pairs_and_their_texts() {
        let environment = Environment::new()
            .with("ROCPROF_A", "old")
            .with("ROCP_B", "")
            .with("ROCPROF_A", "x y\0z");
        assert_eq!(environment.block(), b"\x02\0\0\0ROCP_B\0\0ROCPROF_A\0x y\0");
        assert_eq!(environment.get("ROCPROF_A"), Some(OsStr::new("x y\0z")));
        assert_eq!(Environment::new().block(), [0; 4]);
    }
}

//! Files of `rpd check` in the run's directory.

/// Begins the names of files with findings; the process id follows. The provider writes them.
pub const FINDINGS: &str = "findings-";

/// Begins the names of files with the reason why the kernels of a process were not checked; the process id follows.
pub const UNCHECKED: &str = "unchecked-";

//! Files of `rpd check` in the run's directory.

/// Begins the names of files with findings; the process id follows. The provider writes them.
pub const FINDINGS: &str = "findings-";

/// Begins the names of files that count the launches which were checked; the process id follows. A line for each kernel: count, tab,
/// name. The provider writes them.
pub const LAUNCHES: &str = "launches-";

/// Begins the names of files with the reason why the kernels of a process were not checked; the process id follows.
pub const UNCHECKED: &str = "unchecked-";

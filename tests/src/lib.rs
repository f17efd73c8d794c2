//! End-to-end tests of rpd: building the workloads they run, running them (bare, on the simulator,
//! or under `rpd`), and reading what `rpd` wrote. The tests themselves are in `tests/e2e/`.
//!
//! Environment: `RPD_TEST_BACKEND` chooses what `rpd` runs the workloads on (`sim` unless set; `rocm`
//! on a machine with ROCm); `RPD_BIN_DIR` names a directory with the built `rpd` and its libraries, which
//! are otherwise built with Cargo at the first use; `RPD_TEST_SKIPS` names a file to which checks that are
//! left out are appended.

pub mod install;
pub mod memory;
#[cfg(feature = "outputs")]
pub mod outputs;
pub mod pythons;
pub mod run;
pub mod skips;
pub mod sources;
pub mod workloads;

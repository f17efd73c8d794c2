//! The checks, in the order in which they run. Ids are those of ROCm's own doctor where it has the check.

mod container;
mod cuda;
mod driver;
mod environment;
mod filesystem;
mod install;
mod own;
mod runtime;
mod system;

use super::check::Check;

/// Every check.
pub(super) fn all() -> impl Iterator<Item = &'static Check> {
    [
        own::CHECKS,
        install::CHECKS,
        driver::CHECKS,
        runtime::CHECKS,
        cuda::CHECKS,
        environment::CHECKS,
        container::CHECKS,
        system::CHECKS,
        filesystem::CHECKS,
    ]
    .into_iter()
    .flatten()
}

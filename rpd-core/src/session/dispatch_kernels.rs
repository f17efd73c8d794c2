//! Finds the kernel of a dispatch by the dispatch's id.

use std::io;

use super::Session;
use crate::column::Storage;
use crate::ids::{DispatchId, KernelId};
use crate::lookup::Lookup;
use crate::sorted::Sorter;

/// The kernel of each dispatch of a session. If none was traced, of each dispatch that was counted.
#[derive(Debug, Default)]
pub struct DispatchKernels(Lookup<2>);

impl DispatchKernels {
    /// Reads the dispatches of a session. The result is in a file when there are many dispatches; if that fails it is
    /// in memory.
    pub fn new(session: &Session) -> DispatchKernels {
        let made = DispatchKernels::stored(session, session.storage.as_ref());
        made.or_else(|_| DispatchKernels::stored(session, None))
            .unwrap_or_default()
    }

    fn stored(session: &Session, storage: Option<&Storage>) -> io::Result<DispatchKernels> {
        let table = match session.dispatches.is_empty() {
            true => &session.counted.dispatches,
            false => &session.dispatches,
        };
        let mut sorter = Sorter::<2, 1>::new(storage);
        for index in table.indices() {
            sorter.push([table.dispatch[index].0, table.kernel[index].0])?;
        }
        let mut kernels = Lookup::default();
        for row in sorter.finish()? {
            kernels.push(storage, row)?;
        }
        kernels.seal(storage)?;
        Ok(DispatchKernels(kernels))
    }

    /// The kernel of a dispatch; `None` when the session does not have that dispatch.
    pub fn get(&self, dispatch: DispatchId) -> Option<KernelId> {
        let [_, kernel] = self.0.find(dispatch.0)?;
        Some(KernelId(kernel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_in_memory_and_in_files() {
        let directory = tempfile::tempdir().expect("a directory");
        let storage = Storage::new(directory.path()).with_rows(4);
        for storage in [None, Some(storage)] {
            let mut session = Session {
                storage,
                ..Session::default()
            };
            let table = &mut session.counted.dispatches;
            for number in 0..50 {
                // Not in the order of ids.
                table.dispatch.push(DispatchId(number * 7 % 50));
                table.kernel.push(KernelId(number * 7 % 50 % 3));
                table.start.push(Default::default());
            }
            let kernels = DispatchKernels::new(&session);
            for number in 0..50 {
                assert_eq!(kernels.get(DispatchId(number)), Some(KernelId(number % 3)));
            }
            assert_eq!(kernels.get(DispatchId(50)), None);
        }
    }
}

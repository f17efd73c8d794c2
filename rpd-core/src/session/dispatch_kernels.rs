//! Finds the kernel of a dispatch by the dispatch's id.

use std::io;

use zerocopy::{Immutable, IntoBytes};

use super::Session;
use crate::ids::{DispatchId, KernelId};
use crate::storage::column::Storage;
use crate::storage::lookup::Lookup;
use crate::storage::sorted::{Keyed, Sorter};

/// A dispatch and its kernel.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct OfDispatch {
    dispatch: DispatchId,
    kernel: KernelId,
}

impl Keyed for OfDispatch {
    type Key = DispatchId;

    fn key(&self) -> DispatchId {
        self.dispatch
    }
}

/// The kernel of each dispatch of [`Session::kernel_dispatches`].
#[derive(Debug, Default)]
pub struct DispatchKernels(Lookup<OfDispatch>);

impl DispatchKernels {
    /// Reads the dispatches of a session. The result is in a file when there are many dispatches; if that fails it is
    /// in memory.
    pub fn new(session: &Session) -> DispatchKernels {
        let made = DispatchKernels::stored(session, session.storage.as_ref());
        made.or_else(|_| DispatchKernels::stored(session, None))
            .unwrap_or_default()
    }

    fn stored(session: &Session, storage: Option<&Storage>) -> io::Result<DispatchKernels> {
        let table = session.kernel_dispatches();
        let mut kernels = Sorter::new(storage);
        for index in table.indices() {
            kernels.push(OfDispatch {
                dispatch: table.dispatch[index],
                kernel: table.kernel[index],
            })?;
        }
        Lookup::sorted(kernels).map(DispatchKernels)
    }

    /// The kernel of a dispatch; `None` when the session does not have that dispatch.
    pub fn get(&self, dispatch: DispatchId) -> Option<KernelId> {
        self.0.find(dispatch).map(|of| of.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_dispatches_are_found_in_memory_and_in_files() {
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

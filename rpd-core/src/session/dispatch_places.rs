//! Finds the record of a dispatch in a table by the dispatch's id and kernel.

use std::io;

use zerocopy::{Immutable, IntoBytes};

use super::DispatchTable;
use crate::ids::{DispatchId, KernelId};
use crate::storage::column::Storage;
use crate::storage::lookup::Lookup;
use crate::storage::sorted::{Keyed, Sorter};

/// Where a dispatch is in a table. The kernel is part of the key because traced and counted dispatches can have ids in
/// common.
#[derive(Debug, Clone, Copy, Immutable, IntoBytes)]
#[repr(C)]
struct Place {
    dispatch: DispatchId,
    kernel: KernelId,
    index: u64,
}

impl Keyed for Place {
    type Key = (DispatchId, KernelId);

    fn key(&self) -> (DispatchId, KernelId) {
        (self.dispatch, self.kernel)
    }
}

/// The index of each dispatch in a table.
#[derive(Debug, Default)]
pub struct DispatchPlaces(Lookup<Place>);

impl DispatchPlaces {
    /// Reads the dispatches of a table. The result is in a file in `storage` when there are many.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn new(table: &DispatchTable, storage: Option<&Storage>) -> io::Result<DispatchPlaces> {
        let mut places = Sorter::new(storage);
        for index in table.indices() {
            places.push(Place {
                dispatch: table.dispatch[index],
                kernel: table.kernel[index],
                index: index as u64,
            })?;
        }
        Lookup::sorted(places).map(DispatchPlaces)
    }

    /// Index of the record of a dispatch with this kernel; of several with the same id, the last one.
    pub fn find(&self, dispatch: DispatchId, kernel: KernelId) -> Option<usize> {
        self.find_all(dispatch, kernel).last()
    }

    /// Indices of all records of a dispatch with this kernel: of a replayed one, its runs.
    pub fn find_all(
        &self,
        dispatch: DispatchId,
        kernel: KernelId,
    ) -> impl Iterator<Item = usize> + '_ {
        let places = self.0.find_all((dispatch, kernel));
        places.map(|place| place.index as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_find_dispatches_by_id_and_kernel() -> io::Result<()> {
        let directory = tempfile::tempdir()?;
        let storage = Storage::new(directory.path()).with_rows(3);
        for storage in [None, Some(&storage)] {
            let mut table = DispatchTable::default();
            for (dispatch, kernel) in [(5, 1), (2, 1), (5, 2), (9, 1), (2, 1)] {
                table.dispatch.push(DispatchId(dispatch));
                table.kernel.push(KernelId(kernel));
                table.start.push(Default::default());
            }
            let places = DispatchPlaces::new(&table, storage)?;
            let find = |dispatch, kernel| places.find(DispatchId(dispatch), KernelId(kernel));
            assert_eq!(
                [find(5, 1), find(5, 2), find(9, 1)],
                [Some(0), Some(2), Some(3)]
            );
            assert_eq!(find(2, 1), Some(4));
            assert_eq!([find(2, 2), find(9, 2), find(1, 1)], [None; 3]);
        }
        Ok(())
    }
}

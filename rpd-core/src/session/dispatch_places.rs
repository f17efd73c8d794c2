//! Finds the record of a dispatch in a table by the dispatch's id and kernel.

use std::io;

use super::DispatchTable;
use crate::column::Storage;
use crate::ids::{DispatchId, KernelId};
use crate::lookup::Lookup;
use crate::sorted::Sorter;

/// The index of each dispatch in a table. The kernel is part of the key because traced and counted dispatches can
/// have ids in common.
#[derive(Debug, Default)]
pub struct DispatchPlaces(Lookup<3>);

impl DispatchPlaces {
    /// Reads the dispatches of a table. The result is in a file in `storage` when there are many.
    ///
    /// # Errors
    /// When the file cannot be made or written.
    pub fn new(table: &DispatchTable, storage: Option<&Storage>) -> io::Result<DispatchPlaces> {
        let mut sorter = Sorter::<3, 2>::new(storage);
        for index in table.indices() {
            sorter.push([table.dispatch[index].0, table.kernel[index].0, index as u64])?;
        }
        let mut places = Lookup::default();
        for row in sorter.finish()? {
            places.push(storage, row)?;
        }
        places.seal(storage)?;
        Ok(DispatchPlaces(places))
    }

    /// Index of the record of a dispatch with this kernel; of several with the same id, the last one.
    pub fn find(&self, dispatch: DispatchId, kernel: KernelId) -> Option<usize> {
        let same = self.0.find_all(dispatch.0);
        let place = same.filter(|row| row[1] == kernel.0).last();
        place.map(|row| row[2] as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_are_found_by_id_and_kernel() -> io::Result<()> {
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

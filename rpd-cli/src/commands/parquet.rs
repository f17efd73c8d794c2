//! The writer of Parquet files; in a build without it, the error that says so.

#[cfg(feature = "parquet")]
pub(super) use rpd_formats::parquet::write_cells;

#[cfg(not(feature = "parquet"))]
pub(super) use absent::{add_to_dataset, write_cells};

#[cfg(not(feature = "parquet"))]
mod absent {
    use std::path::{Path, PathBuf};

    use rpd_core::options::Format;
    use rpd_formats::WriteError;
    use rpd_formats::destination::Destination;
    use rpd_formats::table::{Cell, Column};

    const ABSENT: WriteError = WriteError::NotBuilt {
        format: Format::Parquet,
    };

    pub(in crate::commands) fn write_cells(
        _: Destination,
        _: &[Column],
        _: &[Vec<Cell>],
    ) -> Result<PathBuf, WriteError> {
        Err(ABSENT)
    }

    pub(in crate::commands) fn add_to_dataset(_: &Path) -> Result<(), WriteError> {
        Err(ABSENT)
    }
}

//! Tables that are longer than memory allows: columns that may be in files, sorters, look-ups, and the temporary files
//! below them.

pub mod by_id;
pub mod column;
pub mod growing;
pub mod lookup;
pub mod memory;
pub mod number_map;
pub mod optional_column;
pub mod sorted;
pub mod temporary;

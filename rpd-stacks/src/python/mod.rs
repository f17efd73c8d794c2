//! Python.
pub mod line_table;

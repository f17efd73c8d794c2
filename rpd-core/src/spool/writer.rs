//! Writes segments from inside the target.

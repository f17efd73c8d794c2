//! How kernel names are shown.

//! Names of output files: directory, prefix and placeholders.

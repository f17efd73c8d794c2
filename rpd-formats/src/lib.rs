//! Writers of rpd output formats.

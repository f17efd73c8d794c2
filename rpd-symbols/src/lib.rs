//! Symbols of the call stacks in a database.

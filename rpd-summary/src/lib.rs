//! Statistics and tables over sessions.

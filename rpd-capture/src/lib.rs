//! The recorded GPU calls of a program with their data: format, writer and reader

//! The GCN/CDNA instruction interpreter.

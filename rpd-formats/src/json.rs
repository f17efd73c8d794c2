//! JSON texts.

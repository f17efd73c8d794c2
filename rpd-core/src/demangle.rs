//! The one demangler.

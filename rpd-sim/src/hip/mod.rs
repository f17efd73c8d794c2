//! The HIP runtime and compiler API.

//! The ROCTx marker library.

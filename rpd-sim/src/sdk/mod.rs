//! The provider side of the rocprofiler-sdk ABI.

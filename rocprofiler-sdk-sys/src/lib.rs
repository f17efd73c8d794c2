//! The rocprofiler-sdk C ABI: types, constants and a run-time table of functions.

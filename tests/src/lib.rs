//! End-to-end tests of rpd, and the workloads they run.

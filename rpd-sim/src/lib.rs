//! A simulated AMD GPU behind the HIP, HSA, ROCTx and rocprofiler-sdk ABIs.

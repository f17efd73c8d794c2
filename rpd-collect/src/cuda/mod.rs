//! The provider for CUDA programs: CUPTI for calls and device work, an injection of our own for NVTX.
//!
//! CUDA opens this library when a program initialises it (`CUDA_INJECTION64_PATH`) and calls `InitializeInjection`; NVTX does so
//! at its first mark or range (`NVTX_INJECTION64_PATH`). Calls are recorded in CUPTI's callbacks, on the calling thread. Records of
//! device work come in buffers, on a thread of CUPTI's; a thread of ours has them delivered every few milliseconds.
//!
//! | module | subject |
//! |---|---|
//! | `entry` | `InitializeInjection`, the end of recording |
//! | `cupti` | the library, the subscription, what is enabled |
//! | `callbacks` | calls, and what their threads are in |
//! | `operations` | which functions are recorded |
//! | `origins` | the call that submitted a piece of device work, by CUPTI's id of it |
//! | `buffers` | buffers of records: given, taken, read |
//! | `work` | records of kernels, copies and allocations |
//! | `kernels` | numbers of kernels |
//! | `devices` | devices as agents |
//! | `graphs` | calls that added nodes to graphs |
//! | `sampling` | PC samples |
//! | `flusher` | the thread that has buffers delivered |
//! | `nvtx`, `details` | marks and ranges, and what they say beyond their messages |
//! | `shared` | what CUPTI and NVTX need of the recording, once |

mod buffers;
mod callbacks;
mod cupti;
mod details;
mod devices;
pub(crate) mod entry;
mod flusher;
mod graphs;
mod kernels;
pub(crate) mod nvtx;
mod operations;
mod origins;
mod sampling;
mod shared;
mod work;

//! A stand-in for `libcuda`, `libcudart` and `libcupti` in one library, for tests on machines without an NVIDIA GPU.
//!
//! Programs open it under the names of these libraries. Its device executes copies, fills and the kernels that it knows on a thread
//! of its own; a second thread delivers records, as CUPTI does. What it has of CUPTI behaves as observed on a real GPU: callbacks
//! at the begin and end of each call with eight bytes for the tool, one id for a call of the runtime and the calls of the driver
//! inside it, records that are complete after the call, buffers that are held back while a record in them is not.
//!
//! Variables of the environment (`switches.rs`) choose the version of the records and what goes wrong.
//!
//! | module | subject |
//! |---|---|
//! | `switches` | variables of the environment |
//! | `runtime`, `driver` | functions that programs call |
//! | `calls` | a call of one of these, with its callbacks |
//! | `device` | the device: streams, work, graphs |
//! | `cupti` | functions that tools call |
//! | `sampling` | PC sampling |
//! | `replay` | calls and records of a program that ran on a real GPU |
//! | `records` | records in the layouts of several versions |

mod calls;
mod cupti;
mod device;
mod driver;
mod records;
mod replay;
mod runtime;
mod sampling;
mod switches;

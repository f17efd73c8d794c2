//! The provider side of the rocprofiler-sdk ABI.
//!
//! `register` is where runtimes hand their tables over; `lifecycle` finds tools, lets them configure and
//! finalises them; `context`, `buffer`, `correlation` and `external` are what services share; `trace`,
//! `marker`, `stream`, `allocation` and `device` deliver, `counting` counts; `names`, `args` and `agents` answer
//! queries. `state`, `context`, `buffer` and `worker` are below `counting`; `device`, `lifecycle`, `register`,
//! `activation` and `fork` are above it. Functions of the C ABI are in the module of their subject.

// They are exported by symbol name, independently of the module tree.
#![allow(unreachable_pub)]

pub(crate) mod access_trace;
pub(crate) mod activation;
pub(crate) mod agents;
pub(crate) mod allocation;
pub(crate) mod args;
pub(crate) mod attachment;
pub(crate) mod buffer;
pub(crate) mod clock;
pub(crate) mod codeobj;
pub(crate) mod context;
pub(crate) mod context_records;
pub(crate) mod correlation;
pub(crate) mod counting;
pub(crate) mod device;
pub(crate) mod discovery;
pub(crate) mod enums;
pub(crate) mod external;
pub(crate) mod foreign;
pub(crate) mod fork;
pub(crate) mod graphs;
pub(crate) mod hip_events;
pub(crate) mod intercept;
pub(crate) mod kept;
pub(crate) mod kernel_check;
pub(crate) mod kfd;
pub(crate) mod lifecycle;
pub(crate) mod marker;
pub(crate) mod names;
pub(crate) mod pc_records;
pub(crate) mod pc_sampling;
pub(crate) mod register;
pub(crate) mod registration_library;
pub(crate) mod replay;
pub(crate) mod runtime;
pub(crate) mod scratch;
pub(crate) mod service;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod stream;
pub(crate) mod stream_wrap;
pub(crate) mod thread_trace;
pub(crate) mod trace;
pub(crate) mod trace_decoder;
pub(crate) mod unsupported;
pub(crate) mod variables;
pub(crate) mod version;
pub(crate) mod worker;
pub(crate) mod wrap;

use crate::gpu::thread;

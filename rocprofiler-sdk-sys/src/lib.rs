//! The rocprofiler-sdk C ABI: types, constants and a run-time table of functions.
//!
//! Written by hand for SDK 1.0 on x86-64 Linux. Names are those of C, so that they can be searched for; enumerators
//! are associated constants without their prefix (`rocprofiler_status_t::SUCCESS`), and unknown values of later
//! releases are representable. Nothing is linked: [`Functions::load`] takes the addresses from its caller.
//! There is no policy, no allocation and no dependency here.
//!
//! | module | subject |
//! |---|---|
//! | [`ids`] | handles and small values |
//! | [`status`], [`kinds`], [`operations`], [`marker`] | enumerations |
//! | [`lifecycle`] | how a tool is found, begun and ended |
//! | [`buffer`], [`callback`], [`codeobj`], [`args`] | tracing |
//! | [`kfd`], [`ompt`] | kernel driver events, OpenMP |
//! | [`agent`], [`hardware`] | agents |
//! | [`counters`], [`pc_sampling`], [`thread_trace`] | measuring services |
//! | [`by_value`] | structs that traced functions take or return by value |
//! | [`external`] | ids attached by tools |
//! | [`intercept`], [`register`], [`roctx`] | dispatch tables and how runtimes hand them over |
//! | [`functions`] | the functions |

#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals)]
#![no_std]

mod function_table;
mod macros;

pub mod agent;
pub mod args;
pub mod buffer;
pub mod by_value;
pub mod callback;
pub mod codeobj;
pub mod counters;
pub mod external;
pub mod functions;
pub mod hardware;
pub mod ids;
pub mod intercept;
pub mod kfd;
pub mod kinds;
pub mod lifecycle;
pub mod marker;
pub mod ompt;
pub mod operations;
pub mod pc_sampling;
pub mod register;
pub mod roctx;
pub mod status;
pub mod thread_trace;

pub use agent::*;
pub use args::*;
pub use buffer::*;
pub use callback::*;
pub use codeobj::*;
pub use counters::*;
pub use external::*;
pub use function_table::MissingSymbol;
pub use functions::*;
pub use hardware::*;
pub use ids::*;
pub use intercept::*;
pub use kfd::*;
pub use kinds::*;
pub use lifecycle::*;
pub use marker::*;
pub use ompt::*;
pub use operations::*;
pub use pc_sampling::*;
pub use register::*;
pub use roctx::*;
pub use status::*;
pub use thread_trace::*;

//! The vocabulary of rpd: what is recorded, how it is stored while the target runs (the spool), how it is
//! presented afterwards (the session), and what the user asked for (the options).

pub mod agent;
pub mod args;
pub mod demangle;
pub mod domain;
pub mod environment;
pub mod ids;
pub mod kernel_filter;
pub mod kernel_name;
pub mod naming;
pub mod near;
pub mod options;
pub mod session;
pub mod spool;
pub mod stats;

//! The simulated machine: agents and their memory, queues and the processors that consume them, copy
//! engines, signals, and the thread that delivers completions.

pub(crate) mod accesses;
pub(crate) mod agents;
pub(crate) mod aql;
pub(crate) mod check;
pub(crate) mod clock;
pub(crate) mod copy;
pub(crate) mod exec;
pub(crate) mod fault;
pub(crate) mod gate;
pub(crate) mod handler;
pub(crate) mod intercept;
pub(crate) mod machine;
pub(crate) mod memory;
pub(crate) mod observe;
pub(crate) mod processor;
pub(crate) mod queue;
pub(crate) mod replay;
pub(crate) mod signal;
pub(crate) mod svm;
pub(crate) mod thread;
pub(crate) mod visible;
pub(crate) mod wake;

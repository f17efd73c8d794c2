//! Counter selection before a launch: which counters the provider has, whether it can collect the requested ones, and in
//! how many passes.
//!
//! The SDK's library is loaded in a short-lived child process, so that its failure does not end rpd: [`child`] is the
//! child's main function, [`query_process`] starts it and sends it queries, [`protocol`] has the messages of both sides,
//! [`provider_counters`] the result. [`extra`] checks the user's counter definitions. [`validate`] refuses counters that
//! cannot be collected and replaces `auto:` groups by packed passes ([`pack`]); [`derived`] computes metrics whose parts
//! were collected in different passes; [`sampling`] refuses PC sampling that no GPU offers.

pub(crate) mod child;
pub(crate) mod derived;
pub(crate) mod extra;
mod pack;
pub(crate) mod protocol;
mod provider_counters;
pub(crate) mod query_process;
mod sampling;
mod thread_trace;
mod validate;

pub(crate) use provider_counters::{Gpu, ProviderCounters};
pub(crate) use sampling::validate as validate_sampling;
pub(crate) use thread_trace::validate as validate_thread_trace;
pub(crate) use validate::validate_and_pack;

#[cfg(test)]
pub(crate) mod tests;

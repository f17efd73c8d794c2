//! Counters before a launch: what the provider has, whether it can count what was asked for, and in how many passes.
//!
//! [`wire`] is what rpd and a short-lived child of it say to one another, [`child`] the child, [`inquiry`] rpd's end of
//! it, [`census`] what was learned. [`extra`] are definitions of the user's. [`fn@settle`] refuses what cannot be counted and spreads what needs several passes
//! ([`pack`]); [`derived`] are metrics that rpd computes itself, from parts of different passes.

mod census;
pub(crate) mod child;
pub(crate) mod derived;
pub(crate) mod extra;
pub(crate) mod inquiry;
mod pack;
mod settle;
pub(crate) mod wire;

pub(crate) use census::{Census, Gpu};
pub(crate) use settle::{Settled, settle};

#[cfg(test)]
pub(crate) mod tests;

//! The collective communication library (RCCL), for the ranks of one machine.
//!
//! Written on the HIP API, as the real library is. Ranks, which are threads or processes, share a segment of host memory (`segment`) through
//! which a kernel (`device/collectives.hip`) on the stream of each rank exchanges data with the others.
//!
//! `communicator_api`, `operations_api` and `other_api` hold functions under their API names; the build finds them by
//! those names. Below them are `group` (what a group of calls does when it ends), `setup` (how ranks find each other), `launch` (kernels
//! on streams), `communicator`, `work` (operations as the kernel has them), `segment`, `hip` (calls of the HIP API) and `error`.
#![allow(non_snake_case)]

mod communicator;
mod error;
mod group;
mod hip;
mod launch;
mod segment;
mod setup;
mod work;

pub(crate) mod communicator_api;
pub(crate) mod operations_api;
pub(crate) mod other_api;

//! The timeline of a recording: what `rpd view` shows.
//!
//! Records ([`rpd_analysis::records::Records`]) become a [`pyramid::Pyramid`], a file of tiles for each zoom of each track. A page
//! draws them, and gets them from a local [`server`], or from itself where it was written as one file ([`export`]).

pub mod export;
pub mod http;
pub mod page;
pub mod pyramid;
pub mod server;
pub mod tracks;

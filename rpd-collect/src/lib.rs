//! The collector that rpd injects into the target.

//! Code objects and offload bundles.

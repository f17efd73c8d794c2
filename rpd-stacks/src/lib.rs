//! Call stacks of the calling thread.

//! Plays a capture back over a HIP runtime

//! Project tasks: demo, test, ci, bench, kernels, dist.

fn main() {}

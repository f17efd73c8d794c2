//! The rpd command.

fn main() {}

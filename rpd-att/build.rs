//! Gives the C library the name that tools look it up by.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocprof-trace-decoder.so");
}

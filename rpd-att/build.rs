//! Gives the C library the name by which tools look it up.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librocprof-trace-decoder.so");
}

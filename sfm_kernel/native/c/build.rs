//! How libsfm.so is linked.

fn main() {
    // A name by which the loader knows it, wherever it lies.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsfm.so");
    // Never unloaded: it has threads, and functions that the system calls at a fork and at the end.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}

//! The link options of libsfm.so.

fn main() {
    // The name by which the loader knows it, independent of its path.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libsfm.so");
    // Never unloaded: it has threads, and functions that the system calls at a fork and at exit.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}

//! How the Python module is linked.

fn main() {
    // It is MPI's library, too: sfm_kernel/mpi/alias.py makes libmpi.so.12 of it, which needs this
    // name, in processes that use this MPI.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,sfm_kernel._native");
    println!("cargo:rerun-if-changed=build.rs");
}

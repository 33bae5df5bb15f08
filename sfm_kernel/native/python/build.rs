//! How the Python module is linked.

fn main() {
    // It is MPI's library, too, under the name by which mpi4py asks for one: in a process that has
    // imported it the loader looks no further, and MPI has the same core as the endpoint.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
    println!("cargo:rerun-if-changed=build.rs");
}

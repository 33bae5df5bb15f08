//! An endpoint of a world. Programs in C and MPI have all of it; Python has its directory, and an
//! endpoint of its own (`sfm_kernel/endpoint`) on the same core.
//!
//! ```text
//! error, name, wait_facts what went wrong; addresses; the facts of waits, for observers
//! host, handlers          the program around calls that wait (the core's `calls`); its signal handlers
//! directory/              the members of a world, and its files on this machine
//! directory/client        asks the directory server of a world of several machines
//! peers, route, joining   the other members; the channel to each; waiting for them
//! endpoint, network, fork one process's end of a world; its thread; its forked children
//! guest                   other worlds of this machine, in which it is a guest
//! receive                 receiving by a template of values that can be compared here
//! callers, modules        code locations of calls
//! sites                   calls by number, for operations that were begun there
//! calltext                the facts of MPI calls, for observers
//! loaded, crash           actions before `main`; crash reports
//! ```

pub mod callers;
pub mod calltext;
pub mod crash;
pub mod directory;
pub mod endpoint;
pub mod error;
mod fork;
pub mod guest;
pub mod handlers;
pub mod host;
mod joining;
pub mod loaded;
pub mod modules;
pub mod name;
pub mod network;
mod peers;
pub mod receive;
pub mod route;
pub mod sites;
pub mod wait_facts;

pub use directory::{JoinRequest, Member};
pub use endpoint::Endpoint;
pub use error::{Error, Kind, Result};
pub use host::{Around, Program, ProgramCall, Reduction, Surroundings};
pub use name::Name;
pub use route::Route;

/// A number that nobody can guess.
pub fn random() -> std::io::Result<u128> {
    let mut bytes = [0u8; 16];
    // SAFETY: sixteen bytes of ours; so few come whole.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got != bytes.len() as isize {
        return Err(std::io::Error::last_os_error());
    }
    Ok(u128::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests;

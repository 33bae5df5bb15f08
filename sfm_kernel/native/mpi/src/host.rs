//! The program around MPI: a C program in a world of its own, unless the library that contains this
//! one says otherwise.

use std::sync::OnceLock;

use sfm_endpoint::{Program, Surroundings};

use crate::membership::Membership;
use crate::process::Engines;

type Make = fn() -> Box<dyn Surroundings>;

static MAKE: OnceLock<Make> = OnceLock::new();

/// Set the source of the surroundings for waiting calls. Only the first call has an effect, and
/// none after MPI_Init.
pub fn set(make: Make) {
    let _ = MAKE.set(make);
}

/// The current engines; the first answer includes this engine's endpoint. None: this process is not
/// an engine, and joins a world by itself.
pub type Found = Option<(Engines, Option<Box<dyn Membership>>)>;
pub type Find = fn(first: bool) -> Found;

static FIND: OnceLock<Find> = OnceLock::new();

/// Set the function that MPI_Init asks for the engines. Only the first call has an effect.
pub fn set_engines(find: Find) {
    let _ = FIND.set(find);
}

pub(crate) fn engines(first: bool) -> Found {
    FIND.get().and_then(|find| find(first))
}

/// Set `engine::limits::BUFFERING`.
pub fn set_buffering(bytes: usize) {
    crate::engine::limits::BUFFERING.set(bytes);
}

pub(crate) fn surroundings() -> Box<dyn Surroundings> {
    MAKE.get().map_or_else(|| Box::new(Program) as Box<dyn Surroundings>, |make| make())
}

//! The program that MPI is a part of: one in C, in a world of its own, unless the library that has us
//! in it says otherwise.

use std::sync::OnceLock;

use sfm_endpoint::{Program, Surroundings};

use crate::home::{Engines, Home};

type Make = fn() -> Box<dyn Surroundings>;

static MAKE: OnceLock<Make> = OnceLock::new();

/// Have calls that wait ask this about the program around them. Only the first has an effect, and
/// none after MPI_Init.
pub fn set(make: Make) {
    let _ = MAKE.set(make);
}

/// Who the engines are, as of now; with the first answer goes the own one's end. None: this process
/// is no engine, and joins a world by itself.
pub type Found = Option<(Engines, Option<Box<dyn Home>>)>;
pub type Find = fn(first: bool) -> Found;

static FIND: OnceLock<Find> = OnceLock::new();

/// Have MPI_Init ask this. Only the first has an effect.
pub fn set_engines(find: Find) {
    let _ = FIND.set(find);
}

pub(crate) fn engines(first: bool) -> Found {
    FIND.get().and_then(|find| find(first))
}

/// Engines may have been restarted, or have come: MPI_COMM_WORLD is made of those that live, if it is
/// not, and MPI goes on after MPI_Finalize. Nothing in another process than an engine, nor before
/// MPI_Init. `anew`: when the last cell was stopped or failed; collective calls are numbered from
/// there, as some engines may have made more of them than others.
pub fn refresh(anew: u64) {
    crate::world::refresh(anew);
}

/// What `engine::limits::BUFFERING` is from now on.
pub fn set_buffering(bytes: usize) {
    crate::engine::limits::BUFFERING.set(bytes);
}

pub(crate) fn surroundings() -> Box<dyn Surroundings> {
    MAKE.get().map_or_else(|| Box::new(Program) as Box<dyn Surroundings>, |make| make())
}

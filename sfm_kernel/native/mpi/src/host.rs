//! The program that MPI is a part of: one in C, unless the library that has us in it says otherwise.

use std::sync::OnceLock;

use sfm_endpoint::{Program, Surroundings};

type Make = fn() -> Box<dyn Surroundings>;

static MAKE: OnceLock<Make> = OnceLock::new();

/// Have calls that wait ask this about the program around them. Only the first has an effect, and
/// none after MPI_Init.
pub fn set(make: Make) {
    let _ = MAKE.set(make);
}

pub fn surroundings() -> Box<dyn Surroundings> {
    MAKE.get().map_or_else(|| Box::new(Program) as Box<dyn Surroundings>, |make| make())
}

//! The tree: memory that the members of a group share, for barriers and small reductions.
//!
//! A file in the world's folder, made by the first member and unlinked when all have mapped it. In
//! each round every member writes its own cell and arrives (`climb`); when the round is decided,
//! all read. No semaphores and no locks: counters, and one bell for sleepers.
//!
//! ```text
//! header   magic, members, number of members that have mapped it; the decision; the bell; sleepers
//! counts   one for each node of the tree
//! cells    two for each member, then two for each node: those of even and of odd rounds
//! posts    if there are any: how far each member has come, and the cells of each (`posts`)
//! ```
//!
//! Two sets of cells are enough: a cell is written again two rounds later, and nobody can be in
//! that round before everybody has arrived in the one between, having read what it needed.
//!
//! A member that dies leaves its round undecided for ever; the others notice and break it off. A
//! tree whose round was broken off is no longer used.

pub mod climb;
#[cfg(not(loom))]
pub mod fold;
pub mod posts;

#[cfg(not(loom))]
mod shared;
#[cfg(not(loom))]
pub use shared::CombiningTree;

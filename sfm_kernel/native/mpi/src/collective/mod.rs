//! Collectives: one algorithm a file, its source cited.

pub mod across;
pub mod agreement;
pub mod allgather;
pub mod alltoall;
pub mod arguments;
pub mod barrier;
pub mod bcast;
pub mod between;
pub mod blocking;
pub mod calls;
pub mod gather;
pub mod items;
pub mod meeting;
pub mod mismatch;
pub mod neighbors;
pub mod posting;
pub mod presence;
pub mod reduce;
pub mod reduce_scatter;
pub mod reductions;
pub mod scan;
pub mod schedule;
pub mod shared_calls;
pub mod team;
pub mod view;
pub mod words;

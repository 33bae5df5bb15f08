//! What each function of the standard does, by its name without `MPI_`. The entries that are
//! exported are made from these (build.rs): whatever is not here is a stub that says so.

pub mod abi;
pub mod attributes;
pub mod buffering;
pub mod collectives;
pub mod comm_queries;
pub mod communicators;
pub mod environment;
pub mod error_handling;
pub mod exchanging;
pub mod groups;
pub mod infos;
pub mod intercommunicators;
pub mod nonblocking;
pub mod ops;
pub mod packing;
pub mod persistent;
pub mod receiving;
pub mod request_queries;
pub mod requests;
pub mod sending;
pub mod start;
pub mod statuses;
pub mod tool_categories;
pub mod tool_control;
pub mod tool_events;
pub mod tool_performance;
pub mod topologies;
pub mod type_queries;
pub mod types;
pub mod types_f90;

//! The compiled core of sfm-kernel. Layers, each using only those above it:
//!
//! ```text
//! sync, clock, cores, bell,
//! biased_lock, packet, value       atomics, time, cores, sleeping, a lock for one thread, the wire
//!                                  format, comparable values
//! signals, event_fd, fork_list,
//! splitmix, reentry, other_threads   threads without signals, their alarms; forks; random numbers;
//!                                  threads that hold a lock, or that the program has
//! ring, arena, matching            one-to-one byte stream; large values; arrival order, templates
//! shm, life, text, code_location,
//! peers, polls, main_thread, trace,
//! claims, segment, ring_file       files in shared memory, and what observers read there
//! summary, spin                    an inbox for observers; waiting without sleep
//! core, ring_sender                the two halves of an endpoint
//! observed                         other processes' segments
//! combining_tree                   memory that a group's members share, for collectives
//! json, tcp_info, tcp_history      what the kernel knows of a TCP connection, and what it forgets
//! frame                            sealed frames, the wire format between machines
//! wire                             carriers: what brings frames to another machine, until it breaks
//! link                             everything once and in order, whatever happens to connections
//! net, gateway                     links and connections of a process; forwarding between sites
//! calls                            blocking calls, for any host: one loop, receives, sends
//! lab                              an emulated wide area network, for experiments
//! ```

pub mod arena;
pub mod bell;
pub mod biased_lock;
pub mod combining_tree;
pub mod packet;
#[cfg(all(test, not(loom)))]
mod random;
pub mod ring;
pub mod sync;
pub mod value;

pub mod matching;

#[cfg(not(loom))]
pub mod calls;
#[cfg(not(loom))]
pub mod claims;
#[cfg(not(loom))]
pub mod clock;
#[cfg(not(loom))]
pub mod code_location;
#[cfg(not(loom))]
pub mod core;
#[cfg(not(loom))]
mod cores;
#[cfg(not(loom))]
pub mod event_fd;
#[cfg(not(loom))]
pub mod fork_list;
#[cfg(not(loom))]
pub mod json;
#[cfg(not(loom))]
pub mod lab;
#[cfg(not(loom))]
pub mod life;
#[cfg(not(loom))]
pub mod main_thread;
#[cfg(not(loom))]
pub mod observed;
#[cfg(not(loom))]
mod other_threads;
#[cfg(not(loom))]
pub mod peers;
#[cfg(not(loom))]
pub mod polls;
#[cfg(not(loom))]
pub mod reentry;
#[cfg(not(loom))]
pub mod ring_file;
#[cfg(not(loom))]
pub mod ring_sender;
#[cfg(not(loom))]
pub mod segment;
#[cfg(not(loom))]
pub mod shm;
#[cfg(not(loom))]
pub mod signals;
#[cfg(not(loom))]
pub mod spin;
#[cfg(not(loom))]
mod splitmix;
#[cfg(not(loom))]
pub mod summary;
#[cfg(not(loom))]
pub mod tcp_history;
#[cfg(not(loom))]
pub mod tcp_info;
#[cfg(not(loom))]
pub mod text;
#[cfg(not(loom))]
pub mod trace;

#[cfg(not(loom))]
pub mod frame;
#[cfg(not(loom))]
pub mod gateway;
#[cfg(not(loom))]
pub mod link;
#[cfg(not(loom))]
pub mod net;
#[cfg(not(loom))]
pub mod wire;

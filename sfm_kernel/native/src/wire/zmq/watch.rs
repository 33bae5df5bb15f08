//! Who is told that something may have happened at a socket: an epoll instance, and a list of those
//! for which no descriptor says so.

use std::io::Result;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Mutex};

use super::monitor::{Event, Monitored};
use super::socket::Socket;
use crate::event_fd::EventFd;
use crate::sync::lock;

pub struct Watch {
    epoll: Arc<OwnedFd>,
    /// Wakes whoever waits at `epoll`.
    alarm: Arc<EventFd>,
    /// Numbers of sockets.
    unseen: Mutex<Vec<u64>>,
}

impl Watch {
    /// `epoll` reports `alarm`.
    pub fn new(epoll: Arc<OwnedFd>, alarm: Arc<EventFd>) -> Watch {
        Watch { epoll, alarm, unseen: Mutex::default() }
    }

    /// Something has happened at the socket with this number.
    pub fn look_at(&self, id: u64) {
        let mut unseen = lock(&self.unseen);
        if !unseen.contains(&id) {
            unseen.push(id);
            self.alarm.ring();
        }
    }

    /// The sockets at which something has happened since the last call.
    pub fn unseen(&self) -> Vec<u64> {
        std::mem::take(&mut lock(&self.unseen))
    }

    fn change(&self, operation: i32, descriptor: RawFd, id: u64) {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: id };
        // SAFETY: an epoll instance, and an event that it copies.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, descriptor, &mut event) };
    }

    pub fn add(&self, descriptor: RawFd, id: u64) {
        self.change(libc::EPOLL_CTL_ADD, descriptor, id);
        self.look_at(id); // something may have happened before
    }
}

/// Of the number that stands for a socket's report.
const REPORT: u64 = 1 << 63;

/// The number of a socket, and whether it is its report that may have something.
pub fn parts(id: u64) -> (u64, bool) {
    (id & !REPORT, id & REPORT != 0)
}

/// A socket, and its report, that are watched while they are open.
pub struct Watched {
    monitored: Monitored,
    watch: Arc<Watch>,
    descriptors: [RawFd; 2],
    id: u64,
}

impl Watched {
    pub fn new(mut monitored: Monitored, watch: &Arc<Watch>, id: u64) -> Result<Watched> {
        let descriptors = [monitored.socket().descriptor()?, monitored.descriptor()?];
        watch.add(descriptors[0], id);
        watch.add(descriptors[1], id | REPORT);
        Ok(Watched { monitored, watch: Arc::clone(watch), descriptors, id })
    }

    pub fn socket(&mut self) -> &mut Socket {
        self.monitored.socket()
    }

    pub fn event(&mut self) -> Result<Option<Event>> {
        self.monitored.event()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // A forked child has the parent's epoll instance, and takes nothing out of it.
        if self.monitored.socket().context.is_ours() {
            for descriptor in self.descriptors {
                self.watch.change(libc::EPOLL_CTL_DEL, descriptor, self.id);
            }
        }
    }
}

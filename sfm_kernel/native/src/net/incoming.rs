//! Receives frames from connections and acts on them.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::exchange::{
    Event, Exchange, Reading, ReceiverRole, Remote, ALARM, AUTHENTICATOR, ROUTER,
};
use super::gateways::SiteGateway;
use super::{now, Link};
use crate::event_fd::drain;
use crate::frame::seal::Opener;
use crate::frame::{Foreign, FrameKind, Header, Inner, FRAME, HEADER};
use crate::link::{Effect, Greeting};
use crate::sync::lock;
use crate::wire::{gateway, zmq, Connection, Wire};

/// Bytes of one read.
const READ_SIZE: usize = 256 << 10;
/// Connections that are served before others have their turn.
const EVENTS_PER_WAIT: usize = 32;

impl Exchange {
    /// Wait for at most `limit` milliseconds until something comes; returns the number of events.
    pub(super) fn wait(&self, role: &mut ReceiverRole, limit: i32) -> std::io::Result<usize> {
        role.events.resize(EVENTS_PER_WAIT, libc::epoll_event { events: 0, u64: 0 });
        let (at, most) = (role.events.as_mut_ptr(), EVENTS_PER_WAIT as i32);
        // SAFETY: the vector has room for so many events.
        let count = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), at, most, limit) };
        usize::try_from(count).map_err(|_| std::io::Error::last_os_error())
    }

    /// Serve the events that `wait` has found.
    pub(super) fn receive(&self, role: &mut ReceiverRole, count: usize) {
        for nth in 0..count {
            let (id, events) = (role.events[nth].u64, role.events[nth].events as i32);
            if id != ALARM {
                self.look_at(id, events, &mut role.scratch);
                continue;
            }
            drain(&*self.alarm);
            for id in self.direct.watch.unseen() {
                self.look_at(id, 0, &mut role.scratch);
            }
        }
    }

    /// Something may have happened at the socket with this number.
    fn look_at(&self, id: u64, events: i32, scratch: &mut Vec<u8>) {
        let (id, report) = zmq::parts(id);
        match id {
            ROUTER => return self.serve_router(report),
            AUTHENTICATOR => return self.direct.admit(),
            _ => {}
        }
        let found = lock(&self.connections).get(&id).cloned();
        let Some((connection, reading)) = found else { return };
        let reading = &mut lock(&reading);
        match (&*connection, reading.remote.clone()) {
            (Connection::Zmq(wire), _) => self.serve_direct(&connection, wire, reading, report),
            (Connection::Tcp(wire), Remote::Gateway(gateway)) => {
                self.serve_gateway(&connection, wire, &gateway, reading, events, scratch);
            }
            (Connection::Tcp(wire), Remote::Probe(link)) if wire.is_made() => {
                self.end(&connection); // whatever the listener says
                self.post(Event::ProbeConnected(connection.clone(), link));
            }
            (Connection::Tcp(wire), _) => self.finish(&connection, reading, wire.error()),
        }
    }

    /// Something may have happened at the connection to a gateway.
    fn serve_gateway(
        &self,
        connection: &Arc<Connection>,
        wire: &gateway::Connection,
        gateway: &Arc<SiteGateway>,
        reading: &mut Reading,
        events: i32,
        scratch: &mut Vec<u8>,
    ) {
        if events & libc::EPOLLOUT != 0 {
            wire.flush();
        }
        if events & !libc::EPOLLOUT == 0 {
            return;
        }
        scratch.resize(READ_SIZE, 0);
        let mut filled = reading.partial.len();
        scratch[..filled].copy_from_slice(&reading.partial);
        let failure = match wire.socket.receive(&mut scratch[filled..]) {
            Ok(0) => Some(wire.error()),
            Ok(count) => {
                filled += count;
                self.received_at.store(now(), Ordering::Relaxed);
                None
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => Some(wire.error().or(error.raw_os_error())),
        };
        if failure.is_none() {
            match self.frames(connection, gateway, &mut scratch[..filled]) {
                Some(remaining) => {
                    reading.partial.clear();
                    reading.partial.extend_from_slice(&scratch[filled - remaining..filled]);
                    return;
                }
                None if connection.has_ended() => {}
                None => connection.confirm(false), // nonsense
            }
        }
        self.finish(connection, reading, failure.unwrap_or(None));
    }

    /// A connection has ended, with this error or without one.
    pub(super) fn finish(
        &self,
        connection: &Arc<Connection>,
        reading: &Reading,
        failure: Option<i32>,
    ) {
        // A connection that another one has replaced is already out of the table: nothing to
        // report.
        if self.end(connection) && !matches!(reading.remote, Remote::Stranger(_)) {
            self.post(Event::Ended(connection.clone(), reading.remote.clone(), failure));
        }
    }

    /// Take in all complete frames; returns the number of bytes that remain. None: end the
    /// connection.
    fn frames(
        &self,
        connection: &Arc<Connection>,
        gateway: &Arc<SiteGateway>,
        mut bytes: &mut [u8],
    ) -> Option<usize> {
        while bytes.len() >= HEADER {
            let Some(header) = Header::read_sealed(bytes) else {
                self.foreign_gateway(connection, gateway, bytes);
                return None;
            };
            if bytes.len() < header.frame() {
                break;
            }
            let (frame, rest) = bytes.split_at_mut(header.frame());
            self.through_gateway(connection, gateway, &header, frame)?;
            if connection.has_ended() {
                return None;
            }
            bytes = rest;
        }
        debug_assert!(bytes.len() < FRAME);
        Some(bytes.len())
    }

    /// A gateway of another version: its connection ends, and the user hears why.
    fn foreign_gateway(&self, connection: &Connection, gateway: &SiteGateway, bytes: &[u8]) {
        let Some(foreign) = Foreign::read(bytes).filter(|_| !connection.is_confirmed()) else {
            return;
        };
        gateway.refused.store(true, Ordering::Relaxed);
        self.warn(&format!("the gateway at {} is not used: {foreign}", gateway.listed.address));
    }

    /// Take a frame in that came directly. None: end the connection.
    pub(super) fn frame(
        &self,
        connection: &Arc<Connection>,
        reading: &mut Reading,
        header: &Header,
        frame: &mut [u8],
    ) -> Option<()> {
        match &reading.remote {
            Remote::Stranger(owner) => {
                // A member speaks for itself, and to whom it means.
                if (header.sender, header.receiver) != (*owner, self.identity.uid) {
                    return None;
                }
                reading.remote = self.admit(connection, header, frame)?;
                Some(())
            }
            Remote::Dialed(link) | Remote::Peer(link) => {
                if header.sender != link.uid {
                    return None;
                }
                let (inner, body) = link.opener.open(header, frame)?;
                connection.confirm(true);
                if inner.kind == FrameKind::Hello {
                    // A replay of this `Hello` cannot begin a connection any more.
                    link.note_hello(header);
                }
                let link = link.clone();
                self.arrived(connection, &link, &inner, body);
                Some(())
            }
            Remote::Probe(_) | Remote::Gateway(_) => None,
        }
    }

    /// Opens the frames of a sender to which there is no link yet.
    pub(super) fn opener(&self, header: &Header) -> Opener {
        self.identity.opener(header.sender, header.from_site, header.receiver)
    }

    /// A member begins a connection, and asks what has arrived.
    fn admit(
        &self,
        connection: &Arc<Connection>,
        header: &Header,
        frame: &mut [u8],
    ) -> Option<Remote> {
        let opener = self.opener(header);
        let (inner, body) = opener.open(header, frame)?;
        if inner.kind != FrameKind::Hello {
            return None;
        }
        let address = std::str::from_utf8(body).ok()?;
        let (link, new) = self.link_of(header.sender, header.from_site, address);
        if !link.note_hello(header) {
            return None;
        }
        connection.confirm(true);
        let replaced = match link.greet(connection, inner.flag) {
            Greeting::TooLate => return Some(Remote::Peer(link)),
            Greeting::Spare => None,
            Greeting::Used(former) => former,
        };
        let leaves_gateway = replaced.as_ref().is_some_and(|former| former.is_shared());
        if let Some(former) = replaced.as_ref().filter(|_| !leaves_gateway) {
            self.end(former);
        }
        self.arrived(connection, &link, &inner, b"");
        if leaves_gateway {
            self.post(Event::AroundGateways(link.clone()));
        } else if new || replaced.is_some() {
            self.post(Event::CheckLink(link.clone())); // the monitor may hold the former connection
        }
        Some(Remote::Peer(link))
    }

    pub(super) fn arrived(
        &self,
        connection: &Connection,
        link: &Arc<Link>,
        inner: &Inner,
        body: &[u8],
    ) {
        match link.arrived(connection, inner, body, self.received_at.load(Ordering::Relaxed)) {
            Effect::None => {}
            Effect::AckPending => self.acks_pending.store(true, Ordering::Relaxed),
            Effect::Damaged(why) => {
                self.warn(&format!("lost process {:032x} at {}: {why}", link.uid, link.address));
            }
            Effect::GivenUp => self.post(Event::CheckLink(link.clone())),
            Effect::Left if connection.is_shared() => {}
            Effect::Left => connection.end(), // the peer waits for it
        }
    }
}

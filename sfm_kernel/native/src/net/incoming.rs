//! Receives frames from connections and acts on them.

use std::io::ErrorKind;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::connection::Connection;
use super::exchange::{Event, Exchange, Reading, ReceiverRole, Remote, ALARM, LISTENER};
use super::frame::{Header, Inner, Kind, FRAME, HEADER};
use super::link::Link;
use super::now;
use crate::event_fd::drain;
use crate::sync::lock;

/// Bytes of one read.
const READ_SIZE: usize = 256 << 10;
/// Connections that are served before others have their turn.
const EVENTS_PER_WAIT: usize = 32;
/// Largest sealed text of a first frame, in bytes: it contains an address.
const MAX_FIRST_TEXT: u32 = 512;

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
            match id {
                LISTENER => self.accept(),
                ALARM => drain(&self.alarm),
                id => {
                    let found = lock(&self.connections).get(&id).cloned();
                    let Some((connection, reading)) = found else { continue };
                    self.serve(&connection, &mut lock(&reading), events, &mut role.scratch);
                }
            }
        }
    }

    fn serve(
        &self,
        connection: &Arc<Connection>,
        reading: &mut Reading,
        events: i32,
        scratch: &mut Vec<u8>,
    ) {
        if events & libc::EPOLLOUT != 0 {
            if let Remote::Dialed { link, probe: probe @ true } = &mut reading.remote {
                if connection.is_made() {
                    *probe = false;
                    self.post(Event::ProbeConnected(connection.clone(), link.clone()));
                }
            }
            connection.flush();
        }
        if events & !libc::EPOLLOUT == 0 {
            return;
        }
        scratch.resize(READ_SIZE, 0);
        let mut filled = reading.partial.len();
        scratch[..filled].copy_from_slice(&reading.partial);
        let failure = match connection.socket.receive(&mut scratch[filled..]) {
            Ok(0) => Some(connection.error()),
            Ok(count) => {
                filled += count;
                self.received_at.store(now(), Ordering::Relaxed);
                None
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) => Some(connection.error().or(error.raw_os_error())),
        };
        if failure.is_none() {
            match self.frames(connection, reading, &mut scratch[..filled]) {
                Some(remaining) => {
                    reading.partial.clear();
                    reading.partial.extend_from_slice(&scratch[filled - remaining..filled]);
                    return;
                }
                None if connection.has_ended() => {}
                None => connection.confirmed.store(false, Ordering::Relaxed), // nonsense
            }
        }
        // A connection that another one has replaced is already out of the table: nothing to
        // report.
        if self.end(connection) && !matches!(reading.remote, Remote::Stranger | Remote::Watcher) {
            let failure = failure.unwrap_or(None);
            self.post(Event::Ended(connection.clone(), reading.remote.clone(), failure));
        }
    }

    /// Take in all complete frames; returns the number of bytes that remain. None: end the
    /// connection.
    fn frames(
        &self,
        connection: &Arc<Connection>,
        reading: &mut Reading,
        mut bytes: &mut [u8],
    ) -> Option<usize> {
        while bytes.len() >= HEADER {
            let header = Header::read(bytes)?;
            if matches!(reading.remote, Remote::Stranger) && header.length > MAX_FIRST_TEXT {
                return None;
            }
            if bytes.len() < header.frame() {
                break;
            }
            let (frame, rest) = bytes.split_at_mut(header.frame());
            self.frame(connection, reading, &header, frame)?;
            if connection.has_ended() {
                return None;
            }
            bytes = rest;
        }
        debug_assert!(bytes.len() < FRAME);
        Some(bytes.len())
    }

    fn frame(
        &self,
        connection: &Arc<Connection>,
        reading: &mut Reading,
        header: &Header,
        frame: &mut [u8],
    ) -> Option<()> {
        match &reading.remote {
            Remote::Stranger if header.receiver != self.identity.uid => {
                self.answer_for_predecessor(connection, header, frame)
            }
            Remote::Stranger => {
                reading.remote = self.admit(connection, header, frame)?;
                Some(())
            }
            Remote::Watcher => None,
            Remote::Gateway(gateway) => {
                self.through_gateway(connection, &gateway.clone(), header, frame)
            }
            Remote::Dialed { link, .. } | Remote::Peer(link) => {
                if header.sender != link.uid {
                    return self.check_successor(link, header, frame);
                }
                let (inner, body) = link.opener.open(header, frame)?;
                connection.confirmed.store(true, Ordering::Relaxed);
                if inner.kind == Kind::Hello {
                    // A replay of this `Hello` cannot begin a connection any more.
                    link.last_hello.fetch_max(header.counter, Ordering::SeqCst);
                }
                let link = link.clone();
                self.arrived(connection, &link, &inner, body);
                Some(())
            }
        }
    }

    /// A stranger shows the key and asks what has arrived.
    fn admit(
        &self,
        connection: &Arc<Connection>,
        header: &Header,
        frame: &mut [u8],
    ) -> Option<Remote> {
        let opener = self.identity.secret.opener(header.sender, header.receiver);
        let (inner, body) = opener.open(header, frame)?;
        match inner.kind {
            Kind::Hello => {}
            Kind::Knock if header.receiver == self.identity.uid => {
                let evicted = lock(&self.admission).admit_watcher(connection);
                if let Some(evicted) = evicted {
                    self.end(&evicted);
                }
                return Some(Remote::Watcher);
            }
            _ => return None,
        }
        let address = std::str::from_utf8(body).ok()?;
        let (link, new) = self.link_of(header.sender, header.from_site, address);
        // A larger counter shows that nobody has recorded and replayed this `Hello`.
        if link.last_hello.fetch_max(header.counter, Ordering::SeqCst) >= header.counter {
            return None;
        }
        lock(&self.admission).forget(connection.id);
        connection.confirmed.store(true, Ordering::Relaxed);
        if link.lost().is_some() {
            // The link has given up what the peer sent meanwhile: the peer hears it, and hangs up.
            link.send_on(Kind::Bye, 0, connection);
            return Some(Remote::Peer(link));
        }
        let current = link.connection();
        let takes_over = inner.flag;
        let replaces = match &current {
            None => true,
            // If both sides have dialed at once, the connection of the smaller uid stays.
            Some(current) if !current.confirmed.load(Ordering::Relaxed) => {
                takes_over && header.sender < self.identity.uid
            }
            Some(_) => takes_over,
        };
        if replaces {
            link.use_connection(connection.clone(), false);
            if let Some(former) = current.as_ref().filter(|current| !current.shared) {
                self.end(former);
            }
        }
        self.arrived(connection, &link, &inner, b"");
        if new || (replaces && current.is_some()) {
            self.post(Event::CheckLink(link.clone())); // the monitor may hold the former connection
        }
        Some(Remote::Peer(link))
    }

    /// The frame is for the process that had this address before; the answer shows that this
    /// process has it now. The connection stays a stranger: its next frame may be a replay.
    fn answer_for_predecessor(
        &self,
        connection: &Connection,
        header: &Header,
        frame: &mut [u8],
    ) -> Option<()> {
        let opener = self.identity.secret.opener(header.sender, header.receiver);
        let (inner, body) = opener.open(header, frame)?;
        let address = std::str::from_utf8(body).ok().filter(|_| inner.kind == Kind::Hello)?;
        let (link, new) = self.link_of(header.sender, header.from_site, address);
        link.send_on(Kind::Welcome, 0, connection);
        if new {
            self.post(Event::CheckLink(link));
        }
        Some(())
    }

    /// Another process of the world listens at the peer's address: the peer is dead.
    fn check_successor(&self, link: &Link, header: &Header, frame: &mut [u8]) -> Option<()> {
        let opener = self.identity.secret.opener(header.sender, header.receiver);
        opener.open(header, frame)?;
        link.lose("");
        None
    }

    pub(super) fn arrived(
        &self,
        connection: &Connection,
        link: &Arc<Link>,
        inner: &Inner,
        body: &[u8],
    ) {
        link.set_received_at(self.received_at.load(Ordering::Relaxed));
        link.settle(inner.arrived);
        match inner.kind {
            Kind::Data | Kind::First | Kind::Fragment | Kind::Abort => {
                if link.lost().is_some() {
                    // The peer was out of reach for too long and does not know that it was given
                    // up.
                    return link.send_on(Kind::Bye, 0, connection);
                }
                if self.core.is_closed() {
                    return;
                }
                if let Err(why) = link.take(inner, body) {
                    self.refuse(link, &why);
                }
                self.acks_pending.store(true, Ordering::Relaxed);
            }
            Kind::Hello => {
                link.reassembly().note_question(inner.number);
                link.send_on(Kind::Welcome, inner.number, connection);
                link.repeat_state();
            }
            Kind::Welcome => {
                link.welcomed(inner.number);
                link.repeat_state(); // the former connection may have lost it
            }
            Kind::Arrived if inner.flag => link.resend_missing(inner.number),
            Kind::Arrived | Kind::Beat | Kind::Knock | Kind::Dropped => {}
            Kind::Ask => {
                if !self.core.ask(link.inbound()) {
                    link.repeat_state(); // the peer may have missed the answer
                }
            }
            Kind::Credit => link.credit.credit(usize::from(inner.flag), inner.number),
            Kind::Refused => link.refused(inner.number),
            Kind::Bye => {
                link.lose("");
                if !connection.shared {
                    connection.end(); // the peer waits for it
                }
            }
            Kind::Broken => {
                link.lose("and messages to it were lost on the way");
                self.post(Event::CheckLink(link.clone()));
            }
        }
    }

    /// Accept nothing more from a peer, and report that to it: order and completeness are promised.
    fn refuse(&self, link: &Link, why: &str) {
        self.warn(&format!("lost process {:032x} at {}: {why}", link.uid, link.address));
        link.control(Kind::Broken, false, 0, why.as_bytes());
        link.lose(&format!("({why})"));
    }
}

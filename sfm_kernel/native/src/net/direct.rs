//! Direct connections over ZeroMQ: who makes and accepts them, and what comes through.

use std::collections::HashMap;
use std::io::{Error, Result};
use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use super::admission::{Admission, LOOK_EVERY};
use super::announced::Announced;
use super::exchange::{Exchange, Listening, Reading, Remote, AUTHENTICATOR, ROUTER};
use super::{now, Link};
use crate::event_fd::EventFd;
use crate::frame::{Foreign, Header, CLEAR_FRAME};
use crate::sync::lock;
use crate::wire::gateway::parse;
use crate::wire::zmq::{
    self, Authenticator, Context, Descriptor, Event, Key, Message, Pair, Router, Watch,
};
use crate::wire::{Connection, Wire};

/// Bytes of a message at most: a frame, and what encryption adds to it.
const LARGEST: usize = CLEAR_FRAME + 128;

/// Largest text of a first frame, in bytes: it contains an address.
const MAX_FIRST_TEXT: u32 = 512;

/// ZeroMQ's side of an endpoint.
pub struct Direct {
    context: Arc<Context>,
    pair: Pair,
    pub(super) router: Arc<Router>,
    /// Where others connect: "tcp://IP:port".
    pub(super) address: String,
    announced: Mutex<Announced>,
    authenticator: Mutex<Authenticator>,
    pub(super) watch: Arc<Watch>,
    accepted: Mutex<Accepted>,
    strangers: Mutex<Admission>,
}

/// The connections that others have made.
#[derive(Default)]
struct Accepted {
    by_route: HashMap<Vec<u8>, Arc<Connection>>,
    by_descriptor: HashMap<RawFd, Arc<Connection>>,
}

impl Direct {
    /// `epoll` reports `alarm`.
    pub(super) fn new(
        listening: Listening,
        epoll: Arc<OwnedFd>,
        alarm: Arc<EventFd>,
    ) -> Result<Direct> {
        let Listening { context, address, pair, table, strangers } = listening;
        let watch = Arc::new(Watch::new(epoll, alarm));
        let authenticator = Authenticator::new(&context)?;
        watch.add(authenticator.descriptor()?, AUTHENTICATOR);
        let backlog = strangers as i32;
        let listen = |at: &str| Router::new(&context, &watch, ROUTER, at, &pair, backlog, LARGEST);
        let router = match listen(&address) {
            // A router in front of this machine has the address, and forwards to it.
            Err(error) if error.raw_os_error() == Some(libc::EADDRNOTAVAIL) => listen("tcp://*:*")?,
            made => made?,
        };
        let address = address.replace(":*", &format!(":{}", router.port));
        Ok(Direct {
            strangers: Mutex::new(Admission::new(strangers, &address)),
            address,
            context,
            pair,
            router: Arc::new(router),
            announced: Mutex::new(Announced::new(table)),
            authenticator: Mutex::new(authenticator),
            watch,
            accepted: Mutex::default(),
        })
    }

    /// The connection that had this descriptor has ended.
    fn forget(&self, fd: RawFd) {
        lock(&self.strangers).forget(fd);
        let former = lock(&self.accepted).by_descriptor.remove(&fd);
        if let Some(Connection::Zmq(former)) = former.as_deref() {
            former.note_end();
        }
    }

    /// Let in those who have connected and whose keys are announced.
    pub(super) fn admit(&self) {
        let owner = |key: &Key| lock(&self.announced).owner(key).map(|uid| format!("{uid:032x}"));
        let _ = lock(&self.authenticator).answer(owner); // an error answers nobody
    }

    /// Whether somebody's key is waited for.
    fn has_waiting(&self) -> bool {
        lock(&self.authenticator).is_waited_for()
    }

    /// These members have these keys.
    pub(super) fn announce(&self, members: impl IntoIterator<Item = (u128, Key)>) {
        let mut announced = lock(&self.announced);
        members.into_iter().for_each(|(uid, key)| announced.insert(uid, key));
        drop(announced);
        self.admit();
    }

    /// This member is never let in again.
    pub(super) fn expel(&self, uid: u128) {
        lock(&self.announced).expel(uid);
    }
}

impl Exchange {
    /// Begin a direct connection over ZeroMQ.
    pub(super) fn dial_direct(&self, link: &Arc<Link>) -> Result<Arc<Connection>> {
        parse(&link.address)?; // libzmq would also look names up
        let Direct { context, watch, pair, announced, .. } = &self.direct;
        // Its key may be announced later: tried again.
        let key = lock(announced).key_of(link.uid);
        let key = key.ok_or_else(|| Error::from_raw_os_error(libc::ENOKEY))?;
        self.enter(Remote::Dialed(link.clone()), |id| {
            zmq::Connection::dial(context, watch, id, &link.address, pair, &key, LARGEST)
                .map(Connection::Zmq)
        })
    }

    /// Something may have happened where others connect; `report`: perhaps also to a connection.
    pub(super) fn serve_router(&self, report: bool) {
        let direct = &self.direct;
        loop {
            while let Some((route, frame)) = direct.router.receive() {
                self.came_to_router(&route, frame);
            }
            match report.then(|| direct.router.event()).flatten() {
                Some(Event::Accepted(fd)) => {
                    direct.forget(fd); // its former connection has ended, though nobody said so
                    if let Some(descriptor) = Descriptor::of(fd) {
                        lock(&direct.strangers).enter(descriptor);
                    }
                    self.bound_strangers(false);
                }
                Some(Event::Disconnected(fd)) => direct.forget(fd),
                Some(Event::NotAccepted) => self.bound_strangers(true),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// End some strangers' connections if there are too many, or half of them.
    fn bound_strangers(&self, halve: bool) {
        let (evicted, warning) = lock(&self.direct.strangers).make_room(halve);
        evicted.iter().for_each(Descriptor::shut_down);
        if let Some(text) = warning {
            self.warn(&text);
        }
    }

    /// End strangers that have sent too much, and look again who was announced; returns when to look
    /// again.
    pub(super) fn look_at_strangers(&self) -> Option<u64> {
        let waits = self.direct.has_waiting();
        if waits {
            self.direct.admit();
        }
        let mut strangers = lock(&self.direct.strangers);
        strangers.look().iter().for_each(Descriptor::shut_down);
        strangers.due().or_else(|| waits.then(|| now() + LOOK_EVERY))
    }

    fn came_to_router(&self, route: &[u8], frame: Message) {
        let direct = &self.direct;
        let known = lock(&direct.accepted).by_route.get(route).cloned();
        let connection = match known {
            Some(connection) => connection,
            None => {
                let (router, first) = (&direct.router, &frame);
                let owner = frame.user().and_then(|uid| u128::from_str_radix(&uid, 16).ok());
                let Some(owner) = owner else { return };
                let Ok(connection) = self.enter(Remote::Stranger(owner), |id| {
                    Ok(Connection::Zmq(zmq::Connection::accepted(router, id, route, first)))
                }) else {
                    return;
                };
                let mut accepted = lock(&direct.accepted);
                accepted.by_route.insert(route.to_vec(), connection.clone());
                if let Some(fd) = frame.source() {
                    lock(&direct.strangers).forget(fd);
                    accepted.by_descriptor.insert(fd, connection.clone());
                }
                connection
            }
        };
        if let Some(reading) = self.reading(&connection) {
            self.take_in(&connection, &mut lock(&reading), frame);
        }
    }

    /// Something may have happened at this connection; `report`: perhaps also to it.
    pub(super) fn serve_direct(
        &self,
        connection: &Arc<Connection>,
        wire: &zmq::Connection,
        reading: &mut Reading,
        report: bool,
    ) {
        wire.flush();
        while let Some(frame) = wire.receive() {
            self.take_in(connection, reading, frame);
        }
        let mut failure = None;
        while let Some(event) = report.then(|| wire.event()).flatten() {
            match event {
                Event::Connected(fd) => wire.connected(fd),
                Event::Disconnected(_) => wire.note_end(),
                // libzmq does not say why: a probe finds out.
                Event::Closed | Event::Retried if wire.descriptor().is_none() => {
                    failure = Some(libc::ENOTCONN);
                }
                _ => {}
            }
        }
        if failure.is_some() || wire.is_over() {
            self.finish(connection, reading, failure);
            if let Some(route) = wire.route() {
                lock(&self.direct.accepted).by_route.remove(route);
            }
        }
    }

    /// Perhaps a frame of another version: its sender hears which one this process speaks, and
    /// nothing more is expected from there.
    fn hear_foreign(&self, connection: &Connection, reading: &Reading, bytes: &[u8]) -> Option<()> {
        let foreign = Foreign::read(bytes)?;
        let dialed = match &reading.remote {
            Remote::Dialed(link) | Remote::Peer(link) => Some(link.clone()),
            Remote::Stranger(owner) if *owner == foreign.sender => None,
            _ => return None,
        };
        match dialed.clone().or_else(|| self.known(foreign.sender)) {
            Some(link) => link.lose(&format!("({foreign})")),
            None => {
                self.warn(&format!("process {:032x} cannot be heard: {foreign}", foreign.sender))
            }
        }
        // Whoever has dialed ends the connection when the answer has come.
        dialed.is_none().then(|| connection.put(Arc::new(foreign.answer())))
    }

    fn take_in(&self, connection: &Arc<Connection>, reading: &mut Reading, mut frame: Message) {
        if connection.has_ended() {
            return;
        }
        if let Connection::Zmq(wire) = &**connection {
            wire.look_after_writing();
        }
        self.received_at.store(now(), Ordering::Relaxed);
        let bytes = frame.bytes_mut();
        let header = Header::read(bytes).filter(|header| header.frame() == bytes.len());
        let is_first = matches!(reading.remote, Remote::Stranger(_));
        let header = header.filter(|header| !is_first || header.length <= MAX_FIRST_TEXT);
        let taken = match header {
            Some(header) => self.frame(connection, reading, &header, bytes),
            None => self.hear_foreign(connection, reading, bytes),
        };
        if taken.is_none() && !connection.has_ended() {
            connection.confirm(false); // nonsense
            self.finish(connection, reading, None);
        }
    }
}

//! The socket at which others connect.

use std::io::Result;
use std::sync::{Arc, Mutex};

use super::context::Context;
use super::curve::Pair;
use super::message::Message;
use super::monitor::{Event, Monitored};
use super::socket::{Number, Socket, SocketKind};
use super::watch::{Watch, Watched};
use crate::sync::lock;
use crate::wire::forked::{note_port, Note};

/// Milliseconds within which a connection must have shown its key.
const HANDSHAKE: i32 = 3000;

/// Thread-safe.
pub struct Router {
    id: u64,
    /// None once it is closed.
    socket: Mutex<Option<Watched>>,
    watch: Arc<Watch>,
    pub port: u16,
    _note: Note,
}

impl Router {
    /// A socket that listens at an address ("tcp://IP:*" chooses a port), for peers whose keys the
    /// context's authenticator admits. `watch` reports what happens as `id`.
    pub fn new(
        context: &Arc<Context>,
        watch: &Arc<Watch>,
        id: u64,
        address: &str,
        pair: &Pair,
        backlog: i32,
        largest: usize,
    ) -> Result<Router> {
        let mut router = Socket::new(context, SocketKind::Router)?;
        pair.serve(&mut router)?;
        router.set(Number::RouterMandatory, 1)?;
        router.set(Number::HandshakeInterval, HANDSHAKE)?;
        router.set(Number::Backlog, backlog)?;
        router.keep_alive()?;
        router.limit_frames(largest as u64)?;
        let mut socket = Watched::new(Monitored::new(router)?, watch, id)?;
        let address = socket.socket().bind(address)?;
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0);
        let (watch, _note) = (Arc::clone(watch), note_port(port));
        Ok(Router { id, socket: Mutex::new(Some(socket)), watch, port, _note })
    }

    pub(super) fn watch(&self) -> &Arc<Watch> {
        &self.watch
    }

    /// The next frame that has come, with the routing id of its connection.
    pub fn receive(&self) -> Option<(Vec<u8>, Message)> {
        loop {
            let mut socket = lock(&self.socket);
            let mut parts = socket.as_mut()?.socket().receive_all().unwrap_or(None)?;
            // Other messages are nonsense of somebody who has the key.
            if let [route, _] = &parts[..] {
                let route = route.bytes().to_vec();
                return parts.pop().map(|frame| (route, frame));
            }
        }
    }

    pub fn event(&self) -> Option<Event> {
        lock(&self.socket).as_mut()?.event().unwrap_or(None)
    }

    /// Listen no more. (Connections that are still held keep this value.)
    pub fn close(&self) {
        drop(lock(&self.socket).take());
    }

    /// Send the frame that `lend` makes; false, or an error, if the connection is over.
    pub(super) fn send(
        &self,
        route: &[u8],
        lend: impl FnOnce(&Context) -> Result<Message>,
    ) -> Result<bool> {
        let mut socket = lock(&self.socket);
        let Some(socket) = socket.as_mut() else { return Ok(false) };
        let socket = socket.socket();
        let library = socket.context.library;
        let frame = lend(&socket.context)?;
        let sent = socket.send(&mut [Message::copy(library, route)?, frame]);
        // No descriptor signals what came during the call, even if that has failed.
        if socket.is_readable()? {
            self.watch.look_at(self.id);
        }
        sent
    }
}

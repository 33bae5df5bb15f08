//! The authenticator: who may connect to the binding sockets of a context (ZeroMQ's RFC 27).

use std::io::Result;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::context::Context;
use super::curve::Key;
use super::message::Message;
use super::socket::{Socket, SocketKind};
use crate::clock::{elapsed, monotonic as now};

const ADDRESS: &str = "inproc://zeromq.zap.01";
/// Nanoseconds for which a request waits for the key to be announced: less than libzmq gives a
/// handshake.
const PATIENCE: u64 = 2_000_000_000;

/// Answers a context's requests; there can be one. Without it CURVE admits every key.
///
/// A key that is not known yet may be announced in a moment: its request waits, and with it the
/// connection. If it waits in vain, the connection ends without a word at the handshake's limit
/// (status 300: libzmq does not end it before), and whoever has made it tries again.
pub struct Authenticator {
    requests: Socket,
    waiting: Vec<(Vec<Message>, u64)>,
}

impl Authenticator {
    /// To be made before a socket of this context binds.
    pub fn new(context: &Arc<Context>) -> Result<Authenticator> {
        let mut requests = Socket::new(context, SocketKind::Router)?;
        requests.bind(ADDRESS)?;
        Ok(Authenticator { requests, waiting: Vec::new() })
    }

    /// Becomes readable when somebody may have come; see `Socket::descriptor`.
    pub fn descriptor(&self) -> Result<RawFd> {
        self.requests.descriptor()
    }

    /// Answer those who wait, and to be called again while some do. `owner` names the owner of a
    /// key (`Message::user` tells it with each message), or says None.
    pub fn answer(&mut self, mut owner: impl FnMut(&Key) -> Option<String>) -> Result<()> {
        while let Some(request) = self.requests.receive_all()? {
            self.waiting.push((request, now()));
        }
        for (request, since) in std::mem::take(&mut self.waiting) {
            let key = (part(&request, MECHANISM) == b"CURVE").then(|| part(&request, KEY));
            let user = key.and_then(|key| owner(key.try_into().ok()?));
            if user.is_none() && key.is_some() && elapsed(since) < PATIENCE {
                self.waiting.push((request, since));
                continue;
            }
            let (code, reason): (&[u8], &[u8]) = match (&user, key) {
                (Some(_), _) => (b"200", b"OK"),
                (None, Some(_)) => (b"300", b"not announced"),
                (None, None) => (b"400", b"no key"),
            };
            let user = user.unwrap_or_default();
            let [route, version, number] = [0, 2, 3].map(|nth| part(&request, nth));
            let parts = [route, b"", version, number, code, reason, user.as_bytes(), b""];
            let library = self.requests.context.library;
            let reply: Result<Vec<Message>> =
                parts.iter().map(|bytes| Message::copy(library, bytes)).collect();
            self.requests.send(&mut reply?)?;
        }
        Ok(())
    }

    /// Whether somebody waits.
    pub fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// Where a request has the mechanism and its credentials. Before them: the route, an empty frame, the
/// version, a number, the domain, the address and the routing id.
const MECHANISM: usize = 7;
const KEY: usize = 8;

fn part(request: &[Message], nth: usize) -> &[u8] {
    request.get(nth).map_or(&[][..], |frame| frame.bytes())
}

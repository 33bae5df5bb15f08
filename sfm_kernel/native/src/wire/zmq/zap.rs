//! The authenticator: who may connect to the binding sockets of a context (ZeroMQ's RFC 27).

use std::io::Result;
use std::os::fd::RawFd;
use std::sync::Arc;

use super::context::Context;
use super::curve::Key;
use super::message::Message;
use super::socket::{Kind, Socket};

const ADDRESS: &str = "inproc://zeromq.zap.01";

/// Answers a context's requests; there can be one. Without it CURVE admits every key.
pub struct Authenticator {
    requests: Socket,
}

impl Authenticator {
    /// To be made before a socket of this context binds.
    pub fn new(context: &Arc<Context>) -> Result<Authenticator> {
        let mut requests = Socket::new(context, Kind::Reply)?;
        requests.bind(ADDRESS)?;
        Ok(Authenticator { requests })
    }

    /// Becomes readable when somebody may have come; see `Socket::descriptor`.
    pub fn descriptor(&self) -> Result<RawFd> {
        self.requests.descriptor()
    }

    /// Answer those who wait. `admit` names the owner of a key (`Message::user` tells it with each
    /// message), or says None: then the connection is closed.
    pub fn answer(&mut self, mut admit: impl FnMut(&Key) -> Option<String>) -> Result<()> {
        while let Some(request) = self.requests.receive_all()? {
            // Version, number, domain, address, identity, mechanism, credentials.
            let part = |index: usize| request.get(index).map_or(&[][..], |frame| frame.bytes());
            let key = <&Key>::try_from(part(6)).ok().filter(|_| part(5) == b"CURVE");
            let user = key.and_then(&mut admit);
            let (code, reason): (&[u8], &[u8]) = match user {
                Some(_) => (b"200", b"OK"),
                None => (b"400", b"no member"),
            };
            let user = user.unwrap_or_default();
            let parts = [part(0), part(1), code, reason, user.as_bytes(), b""];
            let library = self.requests.context.library;
            let reply: Result<Vec<Message>> =
                parts.iter().map(|bytes| Message::copy(library, bytes)).collect();
            self.requests.send(&mut reply?)?;
        }
        Ok(())
    }
}

//! The connection to a directory server, and what is known of it.
//!
//! Only the kernel's word counts, never how fast the server answers: a process that is stopped keeps
//! its connections. When it dies, they close at once, and new ones are refused.

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;

use sfm_native::net::failures::{Failures, Proof};
use sfm_native::wire::zmq::{
    Context, Event, Key, Message, Monitored, Number, Pair, Socket, SocketKind,
};

/// The most bytes of a frame to the server, with encryption. ZeroMQ closes a connection that
/// announces more. It has one limit for members and for strangers, who could all have such a frame in
/// the server's memory: less than 32 MB in all. So requests travel in pieces.
pub const LARGEST_FRAME: usize = 16 << 10;
/// The bytes of a frame without encryption, which adds less than the rest.
const PIECE: usize = LARGEST_FRAME - 256;
/// The most bytes of a frame from the server's address, which a stranger may have taken over: an
/// answer lists all members.
const LARGEST_ANSWER: u64 = 16 << 20;
/// Milliseconds between two attempts to connect.
const RETRY: i32 = 100;
/// Milliseconds without an acknowledgement after which a connection is replaced: the kernel alone
/// waits longer each time, and goes on waiting long after the network works again.
const UNACKNOWLEDGED: i32 = 5000;

pub struct Connection {
    socket: Monitored,
    pub monitor: ConnectionMonitor,
}

impl Connection {
    /// Begin to connect to the server with this public half, and show this pair.
    pub fn dial(
        context: &Arc<Context>,
        place: &str,
        server: &Key,
        pair: &Pair,
    ) -> io::Result<Connection> {
        let mut dealer = Socket::new(context, SocketKind::Dealer)?;
        pair.connect(&mut dealer, server)?;
        dealer.limit_frames(LARGEST_ANSWER)?;
        for (option, value) in [
            (Number::ReconnectInterval, RETRY),
            // A stopped server shakes hands when it goes on; the accepting side bounds the time.
            (Number::HandshakeInterval, 0),
            (Number::Keepalive, 1),
            (Number::KeepaliveIdle, 2),
            (Number::KeepaliveInterval, 2),
            (Number::KeepaliveCount, 2),
            (Number::UnacknowledgedLimit, UNACKNOWLEDGED),
        ] {
            dealer.set(option, value)?;
        }
        let mut socket = Monitored::with_refusals(dealer)?;
        socket.socket().connect(place)?;
        Ok(Connection { socket, monitor: ConnectionMonitor::default() })
    }

    /// Hand over a message of these frames; if nobody is there, `monitor` says so sooner or later.
    pub fn send(&mut self, frames: &[&[u8]]) -> io::Result<()> {
        let socket = self.socket.socket();
        let mut frames = socket.copies(frames)?;
        socket.send(&mut frames).map(drop)
    }

    /// The next message that has arrived.
    pub fn receive(&mut self) -> Option<Vec<Message>> {
        self.socket.socket().receive_all().ok().flatten()
    }

    /// Take in what has become of the connection; whether it has come up (again).
    pub fn look(&mut self, now: u64) -> bool {
        let mut has_come_up = false;
        while let Ok(Some(event)) = self.socket.event() {
            has_come_up |= self.monitor.note(event, now);
        }
        has_come_up
    }

    /// Become readable when there may be something to receive, or to look at: once, until there is
    /// none.
    pub fn descriptors(&mut self) -> io::Result<[RawFd; 2]> {
        Ok([self.socket.socket().descriptor()?, self.socket.descriptor()?])
    }
}

/// The frames of a message to the server: those of the request; an empty one, and the body.
pub fn frames<'a>(request: &'a [u8], body: &'a [u8]) -> Vec<&'a [u8]> {
    let mut frames: Vec<&[u8]> = request.chunks(PIECE).collect();
    if !body.is_empty() {
        frames.push(b"");
        frames.extend(body.chunks(PIECE));
    }
    frames
}

/// The state of the connection. Times are nanoseconds of the monotonic clock.
#[derive(Default)]
pub struct ConnectionMonitor {
    /// The handshake is done, messages flow.
    pub is_up: bool,
    /// The server does not admit this client's key.
    pub is_refused: bool,
    /// The number of times it was up and came down.
    pub breaks: u64,
    /// Since when TCP is connected, if it is.
    connected: Option<u64>,
    failures: Failures,
}

impl ConnectionMonitor {
    /// Take in an event; whether the connection has come up.
    fn note(&mut self, event: Event, now: u64) -> bool {
        match event {
            Event::Connected(_) => self.connected = Some(now),
            Event::Greeted(_) => {
                self.is_up = true;
                self.failures = Failures::default();
                return true;
            }
            Event::Refused => self.is_refused = true,
            Event::Closed | Event::Disconnected(_) => self.came_down(now),
            _ => {}
        }
        false
    }

    fn came_down(&mut self, now: u64) {
        match self.connected.take() {
            _ if self.is_up => self.breaks += 1,
            // The server has closed it before the handshake was done.
            Some(begun) => drop(self.failures.hung_up(begun, now)),
            None => self.failures.refused(now),
        }
        self.is_up = false;
    }

    /// Whether something listens there that does not have the server's key.
    pub fn is_rejected(&self, now: u64) -> bool {
        self.failures.proof(now) == Some(Proof::OtherKey)
    }

    /// Whether no server of this world listens there. A silent one may answer again.
    pub fn is_dead(&self, now: u64) -> bool {
        let is_proven = self.is_refused || self.failures.proof(now).is_some();
        self.connected.is_none() && is_proven
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_message_travels_in_pieces() {
        assert_eq!(frames(b"ask", b""), [b"ask"]);
        assert_eq!(frames(b"ask", b"body"), [&b"ask"[..], b"", b"body"]);
        let (request, body) = (vec![1; PIECE], vec![2; 2 * PIECE + 1]);
        let lengths: Vec<usize> = frames(&request, &body).iter().map(|frame| frame.len()).collect();
        assert_eq!(lengths, [PIECE, 0, PIECE, PIECE, 1]);
    }

    #[test]
    fn a_connection_that_was_up_breaks_and_comes_up_again() {
        let mut monitor = ConnectionMonitor::default();
        for breaks in 0..20 {
            assert!(!monitor.note(Event::Connected(3), breaks));
            assert!(monitor.note(Event::Greeted(3), breaks));
            assert!(monitor.is_up && monitor.breaks == breaks);
            monitor.note(Event::Disconnected(3), breaks);
            assert!(!monitor.is_up && !monitor.is_dead(breaks + 9 * SECOND));
        }
    }

    #[test]
    fn who_is_refused_again_and_again_finds_nobody() {
        let mut monitor = ConnectionMonitor::default();
        for _ in 0..3 {
            monitor.note(Event::Closed, 0);
        }
        assert!(!monitor.is_dead(0) && monitor.is_dead(SECOND));
        assert!(!monitor.is_rejected(SECOND));
        monitor.note(Event::Connected(3), SECOND);
        assert!(!monitor.is_dead(SECOND), "perhaps the server has come back");
    }

    #[test]
    fn who_is_cut_off_at_once_again_and_again_finds_another_server() {
        let mut monitor = ConnectionMonitor::default();
        for _ in 0..8 {
            assert!(!monitor.is_dead(9 * SECOND));
            monitor.note(Event::Connected(3), 0);
            monitor.note(Event::Disconnected(3), 0);
        }
        assert!(monitor.is_rejected(9 * SECOND) && monitor.is_dead(9 * SECOND));
    }

    #[test]
    fn a_server_without_time_for_our_key_does_not_refuse_it() {
        let mut monitor = ConnectionMonitor::default();
        for nth in 0..20 {
            monitor.note(Event::Connected(3), nth * SECOND);
            monitor.note(Event::Disconnected(3), (nth + 1) * SECOND);
            assert!(!monitor.is_dead(99 * SECOND));
        }
    }

    #[test]
    fn a_key_that_is_not_admitted_is_no_reason_to_wait() {
        let mut monitor = ConnectionMonitor::default();
        monitor.note(Event::Connected(3), 0);
        monitor.note(Event::Refused, 0);
        assert!(monitor.is_refused && !monitor.is_dead(0));
        monitor.note(Event::Disconnected(3), 0);
        assert!(monitor.is_dead(0));
    }
}

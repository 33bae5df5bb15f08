//! Connections between a ROUTER and those that dial it.

use std::os::fd::{AsRawFd, OwnedFd};

use super::*;
use crate::event_fd::{owned, EventFd};
use crate::frame::{tests::header, Class, Header, FRAME};
use crate::wire::Wire;

const ROUTER: u64 = 2;
const DIALED: u64 = 5;
const ACCEPTED: u64 = 6;
const MIB: usize = 1 << 20;
const COUNT: u128 = 500;

struct Ends {
    context: Arc<Context>,
    watch: Arc<Watch>,
    epoll: Arc<OwnedFd>,
    gate: Authenticator,
    router: Arc<Router>,
    pair: Pair,
}

impl Ends {
    fn new() -> Option<Ends> {
        let context = context()?;
        // SAFETY: the system call takes numbers only, and touches no memory.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        let epoll = Arc::new(owned(epoll).unwrap());
        let watch = Arc::new(Watch::new(Arc::clone(&epoll), Arc::new(EventFd::new().unwrap())));
        let gate = Authenticator::new(&context).unwrap();
        let pair = Pair::new(context.library).unwrap();
        let router =
            Router::new(&context, &watch, ROUTER, "tcp://127.0.0.1:*", &pair, 10, 2 * MIB).unwrap();
        Some(Ends { context, watch, epoll, gate, router: Arc::new(router), pair })
    }

    fn dial(&self) -> Connection {
        let address = format!("tcp://127.0.0.1:{}", self.router.port);
        let Ends { context, watch, pair, .. } = self;
        Connection::dial(context, watch, DIALED, &address, pair, &pair.public, 2 * MIB).unwrap()
    }

    /// The next frame that comes to the ROUTER, with the number of its connection there.
    fn came(&mut self, dialed: &Connection) -> (Vec<u8>, Message) {
        eventually(|| {
            self.gate.answer(|_| Some("member".to_owned()))?;
            if self.watch.unseen().contains(&DIALED) {
                dialed.flush();
            }
            Ok(self.router.receive())
        })
    }

    /// Both ends of a connection over which a frame has come.
    fn pair(&mut self) -> (Connection, Connection) {
        let dialed = self.dial();
        dialed.put(frame(1, Class::Control, 50));
        let (route, first) = self.came(&dialed);
        let accepted = Connection::accepted(&self.router, ACCEPTED, &route, &first);
        assert!(accepted.descriptor().is_some());
        let fd = eventually(|| match dialed.event() {
            Some(Event::Connected(fd)) => Ok(Some(fd)),
            _ => Ok(None),
        });
        dialed.connected(fd);
        (dialed, accepted)
    }

    /// An end was noted, and everything before it gets its time to come.
    fn ends(&self, connection: &Connection) {
        let id = connection.id;
        assert!(!connection.is_over(), "what came before may be under way");
        assert!(self.watch.unseen().contains(&id), "it asks to be looked at again");
        assert!(connection.is_over());
    }
}

fn frame(receiver: u128, class: Class, length: usize) -> Arc<Vec<u8>> {
    let header = Header { receiver, class, length: length as u32, ..header() };
    let mut bytes = vec![0; header.frame()];
    header.write(&mut bytes);
    Arc::new(bytes)
}

fn receiver(frame: &Message) -> u128 {
    Header::read(frame.bytes()).unwrap().receiver
}

#[test]
fn a_state_passes_what_libzmq_does_not_have_yet() {
    let Some(mut ends) = Ends::new() else { return };
    let dialed = ends.dial();
    for nth in 1..=COUNT {
        dialed.put(frame(nth, Class::Bulk, FRAME / 2));
    }
    dialed.put_ahead(frame(0, Class::Status, 50));
    assert!(!dialed.is_flushed());
    let order: Vec<u128> = (0..=COUNT).map(|_| receiver(&ends.came(&dialed).1)).collect();
    let at = order.iter().position(|receiver| *receiver == 0).unwrap();
    let ahead = MIB * 4 / (FRAME / 2);
    assert!((ahead..ahead + 20).contains(&at), "{at}: libzmq has 4 MiB of what was before it");
    let others: Vec<u128> = order.into_iter().filter(|receiver| *receiver != 0).collect();
    assert_eq!(others, (1..=COUNT).collect::<Vec<u128>>());
    eventually(|| Ok(dialed.is_flushed().then_some(())));
}

/// Any call on a socket may take away the edge of its descriptor.
#[test]
fn what_comes_while_something_is_sent_is_told() {
    let Some(mut ends) = Ends::new() else { return };
    let (dialed, accepted) = ends.pair();
    ends.watch.unseen();
    accepted.put(frame(2, Class::Control, 50));
    eventually(|| {
        dialed.put(frame(1, Class::Control, 50));
        Ok(ends.watch.unseen().contains(&DIALED).then_some(()))
    });
    assert_eq!(receiver(&dialed.receive().unwrap()), 2);
}

#[test]
fn both_sides_hear_of_a_break() {
    let Some(mut ends) = Ends::new() else { return };
    let (dialed, accepted) = ends.pair();
    accepted.break_off();
    let is_end = |event: &Event| matches!(event, Event::Disconnected(_));
    eventually(|| Ok(dialed.event().filter(is_end)));
    eventually(|| Ok(ends.router.event().filter(is_end)));
    for connection in [&dialed, &accepted] {
        connection.note_end();
        ends.ends(connection);
    }
    assert_eq!(accepted.descriptor().unwrap().with(|_| ()), None, "libzmq has closed it");
}

#[test]
fn nothing_is_sent_on_a_connection_that_has_ended() {
    let Some(mut ends) = Ends::new() else { return };
    let (dialed, accepted) = ends.pair();
    dialed.end();
    dialed.put(frame(3, Class::Control, 50));
    assert!(dialed.has_ended() && dialed.is_flushed());
    let is_end = |event: &Event| matches!(event, Event::Disconnected(_));
    eventually(|| Ok(ends.router.event().filter(is_end)));
    // libzmq refuses it: its end is noted though nobody has reported it.
    eventually(|| {
        accepted.put(frame(4, Class::Control, 50));
        Ok(ends.watch.unseen().contains(&ACCEPTED).then_some(()))
    });
    ends.ends(&accepted);
}

/// A descriptor that libzmq has closed may be another's by now.
#[test]
fn a_reused_descriptor_is_not_taken_for_the_connection() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let dial = || std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (first, second) = (dial(), dial());
    let known = Descriptor::of(first.as_raw_fd()).unwrap();
    assert_eq!(known.with(|_| 1), Some(1));
    // SAFETY: two descriptors of ours; the first becomes another connection.
    unsafe { libc::dup2(second.as_raw_fd(), first.as_raw_fd()) };
    assert_eq!(known.with(|_| 1), None);
    known.shut_down();
    assert!(second.peer_addr().is_ok(), "it is still connected");
}

#[test]
fn a_socket_that_is_closed_is_not_watched() {
    let Some(ends) = Ends::new() else { return };
    let dialed = ends.dial();
    let count = || {
        let path = format!("/proc/self/fdinfo/{}", ends.epoll.as_raw_fd());
        std::fs::read_to_string(path).unwrap().lines().filter(|line| line.contains("tfd")).count()
    };
    let before = count();
    dialed.end();
    assert_eq!(before - count(), 2, "the socket and its report");
}

mod connections;

use std::io::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

/// The system's library. Only CI must have it.
fn context() -> Option<Arc<Context>> {
    match Library::load(&[]) {
        Ok(library) => Some(Context::new(library).unwrap()),
        Err(error) if std::env::var_os("SFM_CI").is_some() => panic!("{error}"),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn eventually<T>(mut step: impl FnMut() -> Result<Option<T>>) -> T {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(found) = step().unwrap() {
            return found;
        }
        assert!(Instant::now() < deadline, "nothing has come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn frames(library: &'static Library, parts: &[&[u8]]) -> Vec<Message> {
    parts.iter().map(|part| Message::copy(library, part).unwrap()).collect()
}

/// A ROUTER that admits one key, and its address.
struct Server {
    library: &'static Library,
    gate: Authenticator,
    router: Socket,
    pair: Pair,
    client: Pair,
    address: String,
}

impl Server {
    fn new(context: &Arc<Context>) -> Server {
        let library = Library::load(&[]).unwrap();
        let gate = Authenticator::new(context).unwrap();
        let mut router = Socket::new(context, SocketKind::Router).unwrap();
        router.set(Number::RouterMandatory, 1).unwrap();
        router.set(Number::HandshakeInterval, 3000).unwrap();
        let (pair, client) = (Pair::new(library).unwrap(), Pair::new(library).unwrap());
        pair.serve(&mut router).unwrap();
        let address = router.bind("tcp://127.0.0.1:*").unwrap();
        Server { library, gate, router, pair, client, address }
    }

    fn dial(&self, context: &Arc<Context>, pair: &Pair) -> Monitored {
        let mut dealer = Socket::new(context, SocketKind::Dealer).unwrap();
        dealer.set(Number::ReconnectInterval, -1).unwrap();
        pair.connect(&mut dealer, &self.pair.public).unwrap();
        let mut dealer = Monitored::new(dealer).unwrap();
        dealer.socket().connect(&self.address).unwrap();
        dealer
    }

    fn admit(&mut self) {
        let known = self.client.public;
        self.gate.answer(|key| (*key == known).then(|| "uid 7".to_string())).unwrap();
    }

    fn message(&mut self) -> Vec<Message> {
        eventually(|| {
            self.admit();
            self.router.receive_all()
        })
    }
}

#[test]
fn one_connection_carries_both_directions_and_tells_whose_it_is() {
    let Some(context) = context() else { return };
    let mut server = Server::new(&context);
    let mut dealer = server.dial(&context, &server.client.clone());
    let mut question = frames(server.library, &[b"first", b"second"]);
    assert!(dealer.socket().send(&mut question).unwrap());
    let came = server.message();
    let bytes: Vec<&[u8]> = came[1..].iter().map(|frame| frame.bytes()).collect();
    assert_eq!(bytes, [b"first".as_slice(), b"second"]);
    assert_eq!(came[1].user().as_deref(), Some("uid 7"));
    assert!(came[1].source().is_some());
    let mut answer = frames(server.library, &[came[0].bytes(), b"answer"]);
    assert!(server.router.send(&mut answer).unwrap());
    let came = eventually(|| dealer.socket().receive_all());
    assert_eq!(came[0].bytes(), b"answer");
    let mut seen = vec![];
    while let Some(event) = dealer.event().unwrap() {
        seen.push(event);
    }
    assert!(matches!(seen[..], [.., Event::Connected(_), Event::Greeted(_)]), "{seen:?}");
}

#[test]
fn a_key_that_is_announced_a_moment_later_is_let_in() {
    let Some(context) = context() else { return };
    let mut server = Server::new(&context);
    let early = Pair::new(server.library).unwrap();
    let mut dealer = server.dial(&context, &early);
    assert!(dealer.socket().send(&mut frames(server.library, &[b"early"])).unwrap());
    eventually(|| {
        server.admit();
        Ok(server.gate.is_waited_for().then_some(()))
    });
    server.client = early;
    let came = server.message();
    assert_eq!((came[1].bytes(), came[1].user().as_deref()), (&b"early"[..], Some("uid 7")));
    assert!(!server.gate.is_waited_for());
}

#[test]
fn a_stranger_is_refused_and_hears_nothing() {
    let Some(context) = context() else { return };
    let mut server = Server::new(&context);
    let stranger = Pair::new(server.library).unwrap();
    let mut dealer = server.dial(&context, &stranger);
    assert!(dealer.socket().send(&mut frames(server.library, &[b"let me in"])).unwrap());
    let end = eventually(|| {
        server.admit();
        Ok(dealer.event()?.filter(|event| matches!(event, Event::Disconnected(_))))
    });
    assert!(server.router.receive_all().unwrap().is_none(), "{end:?}");
}

#[test]
fn a_refused_connection_is_told() {
    let Some(context) = context() else { return };
    let mut server = Server::new(&context);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    server.address = format!("tcp://{free}");
    let mut dealer = server.dial(&context, &server.client.clone());
    eventually(|| Ok(dealer.event()?.filter(|event| *event == Event::Closed)));
}

#[test]
fn whoever_has_no_room_leaves_the_frames_with_their_sender() {
    let Some(context) = context() else { return };
    let server = Server::new(&context);
    let mut dealer = Socket::new(&context, SocketKind::Dealer).unwrap();
    dealer.set(Number::SendLimit, 1).unwrap();
    server.client.connect(&mut dealer, &server.pair.public).unwrap();
    dealer.connect(&server.address).unwrap(); // nobody answers the authenticator: it stays closed
    assert!(dealer.send(&mut frames(server.library, &[b"one"])).unwrap());
    let mut second = frames(server.library, &[b"two"]);
    assert!(!dealer.send(&mut second).unwrap());
    assert_eq!(second[0].bytes(), b"two");
    let mut lost = frames(server.library, &[b"nobody", b"lost"]);
    let mut router = Socket::new(&context, SocketKind::Router).unwrap();
    router.set(Number::RouterMandatory, 1).unwrap();
    assert_eq!(router.send(&mut lost).unwrap_err().raw_os_error(), Some(libc::EHOSTUNREACH));
}

#[test]
fn lent_bytes_are_dropped_when_they_have_gone() {
    struct Counted(Vec<u8>, Arc<AtomicUsize>);
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    impl Drop for Counted {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::SeqCst);
        }
    }
    let Some(context) = context() else { return };
    let mut server = Server::new(&context);
    let mut dealer = server.dial(&context, &server.client.clone());
    let gone = Arc::new(AtomicUsize::new(0));
    let bytes: Vec<u8> = (0..1_000_000u32).map(|index| index as u8).collect();
    let lent = Counted(bytes.clone(), Arc::clone(&gone));
    let mut frames = [Message::lend(server.library, lent).unwrap()];
    assert!(dealer.socket().send(&mut frames).unwrap());
    let came = server.message();
    assert!(came[1].bytes() == bytes);
    eventually(|| Ok((gone.load(Ordering::SeqCst) == 1).then_some(())));
    drop(Message::lend(server.library, Counted(bytes, Arc::clone(&gone))).unwrap());
    assert_eq!(gone.load(Ordering::SeqCst), 2);
}

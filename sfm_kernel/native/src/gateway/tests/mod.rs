//! Tests of gateways; raw TCP connections play the processes.

mod cost;
mod cut;
mod links;
mod order;
mod refused;
mod routes;
mod siblings;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::flow::Pair;
use super::handle::{Gateway, Listed, Options};
use super::schedule::Scheduler;
use crate::frame::control::{parse_dropped, ControlCodec, Reason, Role};
use crate::frame::gateway_key::gateway_key;
use crate::frame::seal::Secret;
use crate::frame::{site_number, Class, FrameKind, Header, Inner, HEADER, HOPS, INNER, VERSION};

const KEY: &[u8] = b"the key of a test's world";
/// After this time a test fails: what it waits for will not come.
const WATCHDOG: Duration = Duration::from_secs(60);

pub fn options(site: &str) -> Options {
    Options {
        site: site.into(),
        key: gateway_key(KEY),
        address: "127.0.0.1:0".parse().unwrap(),
        algorithm: None,
        connections: Some(1),
        mptcp: false,
        pacing: None,
        scheduler: Scheduler::RoundRobin,
        delay: Duration::ZERO,
        limit: None,
    }
}

pub fn gateway(site: &str) -> Gateway {
    Gateway::start(options(site)).unwrap()
}

/// Two connected gateways; the second is of site B.
pub fn connected_pair(first: Options) -> (Gateway, Gateway) {
    let (a, b) = (Gateway::start(first).unwrap(), gateway("B"));
    introduce(&[(&a, "A"), (&b, "B")]);
    wait_until(|| connections_up(&a) == 1 && connections_up(&b) == 1);
    (a, b)
}

/// Give each gateway the list of all.
pub fn introduce(gateways: &[(&Gateway, &str)]) {
    for (gateway, _) in gateways {
        introduce_to(gateway, gateways);
    }
}

/// Give a gateway this list.
pub fn introduce_to(gateway: &Gateway, others: &[(&Gateway, &str)]) {
    let listed = others.iter().map(|(other, site)| Listed {
        uid: other.uid,
        site: (*site).into(),
        address: other.address,
    });
    gateway.peers(listed.collect());
}

/// The number of connections to other gateways.
pub fn connections_up(gateway: &Gateway) -> usize {
    gateway.status().matches("\"algorithm_asked\"").count()
}

pub fn wait_until(condition: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !condition() {
        assert!(start.elapsed() < WATCHDOG, "it never comes");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The number after a name in a status.
pub fn number(gateway: &Gateway, name: &str) -> u64 {
    let status = gateway.status();
    let name = format!("\"{name}\":");
    let (_, rest) = status.split_once(&name).unwrap_or_else(|| panic!("{name} in {status}"));
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap()].parse().unwrap()
}

/// A process or gateway that is connected to a gateway.
pub struct Client {
    pub stream: TcpStream,
    pub codec: ControlCodec,
    counter: u64,
}

/// A frame that a client receives, or the end.
#[derive(Debug, PartialEq)]
pub enum Received {
    Frame { sender: u128, hops: u8, body: Vec<u8> },
    Dropped(Pair, Reason),
    Control(FrameKind, u64),
    End,
}

impl Client {
    pub fn raw(gateway: &Gateway, site: &str, uid: u128, key: &[u8]) -> Client {
        let stream = TcpStream::connect(gateway.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream.set_write_timeout(Some(WATCHDOG)).unwrap();
        Client { stream, codec: ControlCodec::of_process(key, uid, site_number(site)), counter: 0 }
    }

    /// An admitted process of `site`.
    pub fn process(gateway: &Gateway, site: &str, uid: u128) -> Client {
        Client::member(gateway, site, uid, Role::Process)
    }

    pub fn member(gateway: &Gateway, site: &str, uid: u128, role: Role) -> Client {
        let mut client = Client::raw(gateway, site, uid, KEY);
        let hello = client.codec.hello(role, gateway.uid, 0, 77);
        client.stream.write_all(&hello.bytes).unwrap();
        assert_eq!(client.receive(), Received::Control(FrameKind::Welcome, 77));
        client
    }

    /// A frame that no gateway can open.
    pub fn sealed(&mut self, to: u128, site: &str, class: Class, body: &[u8]) -> Vec<u8> {
        self.counter += 1;
        let header = Header {
            length: 0,
            hops: HOPS,
            class,
            ahead: 0,
            from_site: self.codec.site,
            to_site: site_number(site),
            clear: false,
            sender: self.codec.uid,
            receiver: to,
            counter: 0,
        };
        let inner = Inner { kind: FrameKind::Data, flag: false, number: self.counter, arrived: 0 };
        Secret::of_world(b"a secret of the world's")
            .sealer_from(self.codec.uid, to, self.counter)
            .seal(&header, &inner, body.len(), |room| room.copy_from_slice(body))
    }

    pub fn send(&mut self, to: u128, site: &str, body: &[u8]) {
        let class = if body.len() > 10_000 { Class::Bulk } else { Class::Message };
        let frame = self.sealed(to, site, class, body);
        self.stream.write_all(&frame).unwrap();
    }

    /// Begin again after a drop.
    pub fn resume(&mut self, to: u128, site: &str, body: &[u8]) {
        let frame = self.sealed(to, site, Class::Resume, body);
        self.stream.write_all(&frame).unwrap();
    }

    pub fn receive(&mut self) -> Received {
        let mut bytes = vec![0; HEADER];
        match self.stream.read_exact(&mut bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("nothing comes"),
            Err(_) => return Received::End,
            Ok(()) => {}
        }
        let header = Header::read(&bytes).expect("only frames come");
        bytes.resize(header.frame(), 0);
        self.stream.read_exact(&mut bytes[HEADER..]).unwrap();
        if let Some((inner, body)) = self.codec.open(&header, &mut bytes.clone()) {
            return match parse_dropped(&inner, body) {
                Some((pair, reason)) => Received::Dropped(pair, reason),
                None => Received::Control(inner.kind, inner.number),
            };
        }
        let opener =
            Secret::of_world(b"a secret of the world's").opener(header.sender, header.receiver);
        let (_, body) = opener.open(&header, &mut bytes).expect("what came is what was sealed");
        Received::Frame { sender: header.sender, hops: header.hops, body: body.to_vec() }
    }

    /// The next frame of a process; gateways' frames are skipped.
    pub fn frame(&mut self) -> (u128, Vec<u8>) {
        loop {
            match self.receive() {
                Received::Frame { sender, body, .. } => return (sender, body),
                Received::End => panic!("the gateway has hung up"),
                _ => {}
            }
        }
    }

    /// Why this client's last frame was dropped.
    pub fn drop_reason(&mut self) -> Reason {
        loop {
            match self.receive() {
                Received::Dropped(pair, reason) => {
                    assert_eq!(pair.sender, self.codec.uid);
                    return reason;
                }
                Received::End => panic!("the gateway has hung up"),
                _ => {}
            }
        }
    }
}

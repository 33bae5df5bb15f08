//! Frames to and from gateways, sealed with the secret that gateways share with the world's
//! processes.
//!
//! ```text
//! Hello     first on every connection, from the side that has made it. Class control, from its site,
//!           number: any, fresh. Body: role u8 ('P' a process, 'G' a gateway) · u64, fresh · of a
//!           gateway: slot u8, which of the pair's connections this is; of a process: its signature.
//!           Its counter is larger than that of every Hello before it from the same uid and role,
//!           or it is a replay: nanoseconds since 1970. Again on the same connection: asks whether
//!           the gateway is there
//! Welcome   the answer, with its number
//! Beat      between gateways, and ignored: keeps a connection's congestion window open
//! Dropped   to the sender of a flow. Body: receiver u128 · sender u128 · reason u8
//! Broken    before the gateway hangs up. Body: why, in a sentence
//! Bye       from a process that leaves
//! ```
//!
//! A process signs (gateway_key.rs) `sfm hello 1` · sender u128 · receiver u128 · its site u32 · the
//! frame's counter u64: who has the gateway key alone can neither take a process's place at a
//! gateway nor use a recorded Hello again.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use ::ring::signature::Ed25519KeyPair;

use super::gateway_key::{gateway_key, is_signed, shared, signer, GATEWAY_KEY, SIGNATURE};
use super::seal::Secret;
use super::{Class, FrameKind, Header, Inner, HOPS};

/// Largest frame of a connection that has not said Hello yet, in bytes.
pub const LARGEST_HELLO: usize = 512;

const PROCESS: u8 = b'P';
const GATEWAY: u8 = b'G';

/// A sender and a receiver: the key of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pair {
    pub sender: u128,
    pub receiver: u128,
}

/// The kind of process that has made a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Process,
    /// With the connection's number among those of this pair of gateways.
    Gateway(u8),
}

/// Why a frame was dropped. The numbers are the wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The receiver is not connected to this gateway, which is one of its site.
    Unknown = 1,
    /// No gateway of the receiver's site is known, or none can be reached now.
    NoRoute = 2,
    /// A frame was lost, and there is a route now: ask what has arrived, and resume there. A
    /// gateway also sends it when the cause of an earlier drop is over.
    PathBroke = 3,
    /// Too much waits for this receiver, or on this route.
    Full = 4,
    /// The frame has passed too many gateways.
    Loop = 5,
}

impl Reason {
    pub const ALL: [Reason; 5] =
        [Reason::Unknown, Reason::NoRoute, Reason::PathBroke, Reason::Full, Reason::Loop];

    pub fn name(self) -> &'static str {
        match self {
            Reason::Unknown => "unknown receiver",
            Reason::NoRoute => "no gateway for that site",
            Reason::PathBroke => "path broke",
            Reason::Full => "full",
            Reason::Loop => "loop",
        }
    }

    /// The consequence for the sender; "" if only a connection broke.
    pub fn sentence(self) -> &'static str {
        match self {
            Reason::Unknown => "no gateway of its site is connected to it",
            Reason::NoRoute => "no gateway of its site can be reached",
            Reason::PathBroke => "",
            Reason::Full => "too much waits for it at a gateway",
            Reason::Loop => "what is sent to it goes in a circle between gateways",
        }
    }

    pub fn from_u8(byte: u8) -> Option<Reason> {
        Reason::ALL.into_iter().find(|&reason| reason as u8 == byte)
    }
}

/// A sealed control frame, ready to send.
pub struct ControlFrame {
    pub header: Header,
    pub bytes: Vec<u8>,
}

/// Seals the control frames of one process or gateway, and opens those that it receives.
pub struct ControlCodec {
    secret: Secret,
    /// Recognises what processes have signed.
    key: [u8; GATEWAY_KEY],
    /// Signs, in a process.
    signer: Option<Ed25519KeyPair>,
    pub uid: u128,
    pub site: u32,
    counter: u64,
}

impl ControlCodec {
    pub fn of_process(world_key: &[u8], uid: u128, site: u32) -> ControlCodec {
        let codec = ControlCodec::of_gateway(&gateway_key(world_key), uid, site);
        ControlCodec { signer: Some(signer(world_key)), ..codec }
    }

    pub fn of_gateway(key: &[u8; GATEWAY_KEY], uid: u128, site: u32) -> ControlCodec {
        let secret = Secret::of_gateways(shared(key));
        ControlCodec { secret, key: *key, signer: None, uid, site, counter: 0 }
    }

    /// Larger than all counters before it, also those of an earlier process with this uid.
    pub fn next_counter(&mut self) -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        self.counter = (self.counter + 1).max(now as u64);
        self.counter
    }

    pub fn seal(
        &mut self,
        kind: FrameKind,
        receiver: u128,
        to_site: u32,
        number: u64,
        body: &[u8],
    ) -> ControlFrame {
        let counter = self.next_counter();
        self.seal_with(counter, kind, receiver, to_site, number, body)
    }

    fn seal_with(
        &self,
        counter: u64,
        kind: FrameKind,
        receiver: u128,
        to_site: u32,
        number: u64,
        body: &[u8],
    ) -> ControlFrame {
        let header = Header {
            length: 0,
            hops: HOPS,
            class: Class::Control,
            ahead: 0,
            from_site: self.site,
            to_site,
            clear: false,
            sender: self.uid,
            receiver,
            counter: 0,
        };
        let inner = Inner { kind, flag: false, number, arrived: 0 };
        let bytes = self.secret.sealer_from(self.uid, receiver, counter).seal(
            &header,
            &inner,
            body.len(),
            |room| room.copy_from_slice(body),
        );
        ControlFrame { header: Header::read(&bytes).expect("just written"), bytes }
    }

    pub fn hello(&mut self, role: Role, receiver: u128, to_site: u32, number: u64) -> ControlFrame {
        let counter = self.next_counter();
        let mut body = vec![if role == Role::Process { PROCESS } else { GATEWAY }];
        body.extend(number.to_le_bytes());
        match (role, &self.signer) {
            (Role::Gateway(slot), _) => body.push(slot),
            (Role::Process, Some(signer)) => {
                let text = signed_text(self.uid, receiver, self.site, counter);
                body.extend(signer.sign(&text).as_ref());
            }
            (Role::Process, None) => {} // nobody believes a gateway that it is a process
        }
        self.seal_with(counter, FrameKind::Hello, receiver, to_site, number, &body)
    }

    pub fn dropped(&mut self, pair: Pair, to_site: u32, reason: Reason) -> ControlFrame {
        let mut body = pair.receiver.to_le_bytes().to_vec();
        body.extend(pair.sender.to_le_bytes());
        body.push(reason as u8);
        self.seal(FrameKind::Dropped, pair.sender, to_site, 0, &body)
    }

    /// The content of a frame for this process; None if its sender does not have the gateway key.
    pub fn open<'a>(&self, header: &Header, bytes: &'a mut [u8]) -> Option<(Inner, &'a mut [u8])> {
        if header.receiver != self.uid {
            return None;
        }
        self.secret.opener(header.sender, self.uid).open(header, bytes)
    }

    /// The role in a Hello; None if the frame is not one, or says that it is a process's and is not.
    pub fn role(&self, header: &Header, inner: &Inner, body: &[u8]) -> Option<Role> {
        let role = *body.first()?;
        match (inner.kind, role, body.get(9..)?) {
            (FrameKind::Hello, GATEWAY, &[slot, ..]) => Some(Role::Gateway(slot)),
            (FrameKind::Hello, PROCESS, rest) => {
                let Header { sender, receiver, from_site, counter, .. } = *header;
                let text = signed_text(sender, receiver, from_site, counter);
                is_signed(&self.key, &text, rest.get(..SIGNATURE)?).then_some(Role::Process)
            }
            _ => None,
        }
    }
}

/// What a process signs in its Hello.
fn signed_text(sender: u128, receiver: u128, site: u32, counter: u64) -> Vec<u8> {
    let mut text = b"sfm hello 1".to_vec();
    text.extend(sender.to_le_bytes());
    text.extend(receiver.to_le_bytes());
    text.extend(site.to_le_bytes());
    text.extend(counter.to_le_bytes());
    text
}

/// The flow and the reason in a Dropped; None if the frame is not one.
pub fn parse_dropped(inner: &Inner, body: &[u8]) -> Option<(Pair, Reason)> {
    if inner.kind != FrameKind::Dropped || body.len() < 33 {
        return None;
    }
    let uid = |at: usize| u128::from_le_bytes(body[at..at + 16].try_into().expect("16"));
    Some((Pair { receiver: uid(0), sender: uid(16) }, Reason::from_u8(body[32])?))
}

/// Senders whose last counter is remembered.
const MAX_SENDERS: usize = 1 << 16;

/// The counters of accepted Hellos: a recorded Hello cannot be used again.
#[derive(Default)]
pub struct Counters {
    last: HashMap<u128, u64>,
    /// Other senders' Hellos must have a larger counter: the largest that was forgotten.
    floor: u64,
}

impl Counters {
    /// Whether this Hello is new. From then on it and all Hellos before it are old.
    pub fn is_new(&mut self, uid: u128, counter: u64) -> bool {
        if counter <= self.last.get(&uid).copied().unwrap_or(self.floor) {
            return false;
        }
        self.last.insert(uid, counter);
        if self.last.len() > MAX_SENDERS {
            let mut all: Vec<u64> = self.last.values().copied().collect();
            self.floor = *all.select_nth_unstable(MAX_SENDERS / 2).1;
            let floor = self.floor;
            self.last.retain(|_, last| *last > floor);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORLD: &[u8] = b"the key of a world";

    fn gateway(uid: u128, site: u32) -> ControlCodec {
        ControlCodec::of_gateway(&gateway_key(WORLD), uid, site)
    }

    /// The role and the number in a Hello.
    fn read(gateway: &ControlCodec, frame: &mut ControlFrame) -> Option<(Role, u64)> {
        let (inner, body) = gateway.open(&frame.header, &mut frame.bytes)?;
        Some((gateway.role(&frame.header, &inner, body)?, inner.number))
    }

    #[test]
    fn a_hello_gives_the_role() {
        let gateway = gateway(7, 70);
        let mut client = ControlCodec::of_process(WORLD, 8, 80);
        for role in [Role::Process, Role::Gateway(3)] {
            let mut frame = client.hello(role, 7, 70, 55);
            assert!(frame.bytes.len() <= LARGEST_HELLO);
            assert_eq!(read(&gateway, &mut frame), Some((role, 55)));
        }
        let mut beat = client.seal(FrameKind::Beat, 7, 70, 0, b"");
        let (inner, body) = gateway.open(&beat.header, &mut beat.bytes).unwrap();
        assert_eq!(gateway.role(&beat.header, &inner, body), None);
        let mut foreign = ControlCodec::of_process(b"another world's", 8, 80);
        let mut hello = foreign.hello(Role::Process, 7, 70, 1);
        assert!(gateway.open(&hello.header, &mut hello.bytes).is_none());
        let mut misdirected = client.hello(Role::Process, 9, 70, 1);
        assert!(gateway.open(&misdirected.header, &mut misdirected.bytes).is_none());
    }

    #[test]
    fn who_has_the_gateway_key_cannot_speak_as_a_process() {
        let (this, mut thief) = (gateway(7, 70), gateway(8, 80));
        assert_eq!(read(&this, &mut thief.hello(Role::Process, 7, 70, 1)), None);
        // Nor with what a process has signed before: under a later counter, or to another gateway.
        for receiver in [7, 9] {
            let mut signed = ControlCodec::of_process(WORLD, 8, 80).hello(Role::Process, 9, 70, 1);
            let (inner, body) = gateway(9, 70).open(&signed.header, &mut signed.bytes).unwrap();
            let at = if receiver == 9 { thief.next_counter() } else { signed.header.counter };
            let mut again = thief.seal_with(at, inner.kind, receiver, 70, inner.number, body);
            assert_eq!(read(&gateway(receiver, 70), &mut again), None);
        }
    }

    #[test]
    fn a_dropped_frame_gives_flow_and_reason() {
        let process = ControlCodec::of_process(WORLD, 1, 70);
        let mut gateway = gateway(7, 70);
        let pair = Pair { sender: 1, receiver: 2 };
        for reason in Reason::ALL {
            let mut frame = gateway.dropped(pair, 70, reason);
            let (inner, body) = process.open(&frame.header, &mut frame.bytes).unwrap();
            assert_eq!(parse_dropped(&inner, body), Some((pair, reason)));
        }
        assert_eq!(Reason::from_u8(0), None);
    }

    #[test]
    fn a_hello_is_accepted_once() {
        let mut counters = Counters::default();
        assert!(counters.is_new(1, 100));
        assert!(!counters.is_new(1, 100) && !counters.is_new(1, 99));
        assert!(counters.is_new(1, 101) && counters.is_new(2, 5));
    }

    #[test]
    fn remembered_counters_are_bounded_and_old_hellos_stay_refused() {
        let mut counters = Counters::default();
        for uid in 0..3 * MAX_SENDERS as u128 {
            assert!(counters.is_new(uid, 1000 + uid as u64));
            assert!(counters.last.len() <= MAX_SENDERS);
        }
        for uid in [0, MAX_SENDERS as u128, 3 * MAX_SENDERS as u128 - 1] {
            assert!(!counters.is_new(uid, 1000 + uid as u64));
        }
    }

    #[test]
    fn counters_grow() {
        let mut codec = gateway(1, 1);
        let all: Vec<u64> = (0..1000).map(|_| codec.next_counter()).collect();
        assert!(all.windows(2).all(|two| two[0] < two[1]));
    }
}

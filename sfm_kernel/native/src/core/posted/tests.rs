use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;

use super::*;
use crate::random::Random;
use crate::ring_sender::{RingSender, Step};
use crate::segment;

/// Records what it was given.
#[derive(Default)]
struct Recorder(Mutex<Vec<(Envelope, Vec<u8>)>>);

impl Receiver for Recorder {
    fn receive(self: Arc<Self>, envelope: &Envelope, payload: Payload<'_>) {
        let mut bytes = vec![0; payload.len()];
        // SAFETY: the vector has the length of the payload, so there is room for all of it.
        assert_eq!(unsafe { payload.copy(bytes.as_mut_ptr(), bytes.len()) }, bytes.len());
        self.0.lock().unwrap().push((*envelope, bytes));
    }
}

impl Recorder {
    fn take(&self) -> Option<(Envelope, Vec<u8>)> {
        self.0.lock().unwrap().pop()
    }
}

fn packet(envelope: &Envelope, bytes: &[u8]) -> Arc<Packet> {
    let front = envelope.front(bytes.len());
    // SAFETY: the bytes live until the packet is made.
    Arc::new(unsafe { front.with(bytes.as_ptr(), bytes.len()) }.to_packet().unwrap())
}

/// Messages and receives meet as in a model of two plain lists: a message goes to the first receive
/// that it fits, a receive takes the first message that fits it, and every message is counted once.
#[test]
fn behaves_as_two_plain_lists() {
    let (mut chance, rounds) = Random::new(40, 4000);
    for _ in 0..rounds {
        let core = Core::new(None, None).unwrap();
        let inbound = core.inbound(7, None);
        let mut waiting: Vec<(u64, Numbers, u64, Arc<Recorder>)> = Vec::new();
        let mut queued: Vec<(Envelope, u64)> = Vec::new();
        let (mut sent, mut received, mut cost_received) = (0, 0, 0);
        for _ in 0..400 {
            let context = 1 + 8 * chance.below(2) as u64;
            match chance.below(8) {
                0..=3 => {
                    let (source, tag) = (chance.below(3) as i64, chance.below(3) as i64);
                    let envelope = Envelope { context, source, tag, note: sent };
                    sent += 1;
                    let message = packet(&envelope, &envelope.note.to_le_bytes());
                    let cost = message.cost();
                    core.deliver(inbound, message, false);
                    let fits = |(id, numbers, ..): &(u64, Numbers, u64, Arc<Recorder>)| {
                        *id == context && numbers.fit(&envelope)
                    };
                    match waiting.iter().position(fits) {
                        Some(nth) => {
                            let (.., recorder) = waiting.remove(nth);
                            let bytes = envelope.note.to_le_bytes().to_vec();
                            assert_eq!(recorder.take(), Some((envelope, bytes)));
                            (received, cost_received) = (received + 1, cost_received + cost);
                        }
                        None => queued.push((envelope, cost)),
                    }
                }
                4..=6 => {
                    let mut number = || match chance.below(4) {
                        3 => None,
                        number => Some(number as i64),
                    };
                    let numbers = Numbers { source: number(), tag: number() };
                    let recorder = Arc::new(Recorder::default());
                    let posted = core.post(context, numbers, recorder.clone());
                    let fits = |entry: &(Envelope, u64)| {
                        entry.0.context == context && numbers.fit(&entry.0)
                    };
                    match queued.iter().position(fits) {
                        Some(nth) => {
                            let (envelope, cost) = queued.remove(nth);
                            assert_eq!(posted, None);
                            assert_eq!(recorder.take().unwrap().0, envelope);
                            (received, cost_received) = (received + 1, cost_received + cost);
                        }
                        None => waiting.push((context, numbers, posted.unwrap(), recorder)),
                    }
                }
                _ if !waiting.is_empty() => {
                    let (context, _, number, recorder) =
                        waiting.remove(chance.below(waiting.len()));
                    assert!(core.unpost(context, number));
                    assert!(!core.unpost(context, number));
                    assert!(recorder.take().is_none());
                }
                _ => {}
            }
            let shared = core.shared();
            assert_eq!(shared.arrived.load(Ordering::Relaxed), sent);
            assert_eq!(shared.received.load(Ordering::Relaxed), received);
            assert_eq!(core.taken(inbound)[0], cost_received);
            assert!(waiting.iter().all(|entry| entry.3.take().is_none()));
        }
    }
}

static WORLDS: AtomicU64 = AtomicU64::new(0);

/// A fresh folder with the cores of two processes; the first can send to the second.
struct Pair {
    folder: PathBuf,
    sender: Arc<RingSender>,
    receiver: Arc<Core>,
}

impl Pair {
    fn new(arena: usize) -> Pair {
        let nth = WORLDS.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("sfm-posted-{}-{nth}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let core = |uid: u128| {
            let segment =
                segment::create(&folder.join(format!("{uid:032x}.seg")), uid, "").unwrap();
            Arc::new(Core::new(Some(segment), Some(folder.clone())).unwrap())
        };
        let (sender, receiver) = (core(1), core(2));
        let peer = segment::open(&folder.join(format!("{:032x}.seg", 2)), Some(2)).unwrap();
        let sender = RingSender::create(sender, peer, &folder, 3, 1 << 17, arena).unwrap();
        Pair { folder, sender, receiver }
    }

    fn send(&self, envelope: &Envelope, bytes: &[u8], buffering: u64) -> bool {
        let front = envelope.front(bytes.len());
        let mut writing = self.sender.try_lock().unwrap();
        // SAFETY: the bytes live until the call returns.
        let packet = unsafe { front.with(bytes.as_ptr(), bytes.len()) };
        self.sender.try_send(&mut writing, &packet, buffering) == Step::Done
    }

    fn is_drained(&self) -> bool {
        let mut writing = self.sender.try_lock().unwrap();
        self.sender.drained(&mut writing, 0)
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Through a ring, whose end they cross, and through the arena; posted before and after.
#[test]
fn bytes_arrive_complete_through_ring_and_arena() {
    for arena in [0, 1 << 20] {
        let pair = Pair::new(arena);
        let (mut chance, rounds) = Random::new(3000, 300_000);
        for nth in 0..rounds as u64 {
            let length = [0, 8, 200, 7000, 8192, 40_000][chance.below(6)] + chance.below(9);
            let bytes: Vec<u8> = (0..length).map(|at| (at as u64 * 7 + nth) as u8).collect();
            let envelope = Envelope { context: 9, source: 0, tag: 5, note: nth };
            let numbers = Numbers { source: Some(0), tag: (nth % 2 == 0).then_some(5) };
            let recorder = Arc::new(Recorder::default());
            let first = chance.below(2) == 0;
            let posted = first.then(|| pair.receiver.post(9, numbers, recorder.clone()));
            assert!(pair.send(&envelope, &bytes, 1 << 20));
            pair.receiver.take_in();
            if posted.is_none() {
                assert!(pair.receiver.find_envelope(9, numbers, false).is_some());
                assert!(!pair.is_drained());
                assert_eq!(pair.receiver.post(9, numbers, recorder.clone()), None);
            }
            assert_eq!(recorder.take(), Some((envelope, bytes)));
            assert!(pair.is_drained(), "its sender has its credit back");
        }
    }
}

#[test]
fn try_send_sends_all_or_nothing() {
    let pair = Pair::new(0);
    let envelope = Envelope { context: 9, source: 0, tag: 0, note: 0 };
    let bytes = vec![1; 50_000];
    assert!(pair.send(&envelope, &bytes, u64::MAX) && pair.send(&envelope, &bytes, u64::MAX));
    assert!(!pair.send(&envelope, &bytes, u64::MAX), "the ring has no room for a third");
    assert!(!pair.send(&envelope, &[], 100), "nor has the peer given so much credit");
    assert!(pair.send(&envelope, &[], u64::MAX));
    let recorder = Arc::new(Recorder::default());
    pair.receiver.post_for_all(9, recorder.clone());
    pair.receiver.take_in();
    assert_eq!(recorder.0.lock().unwrap().len(), 3);
    assert!(pair.send(&envelope, &bytes, 1 << 20));
    pair.receiver.take_in();
    assert_eq!(recorder.0.lock().unwrap().len(), 4);
}

//! Model checking: every interleaving that the memory model allows, of the code that ships.
//!
//! `make loom` runs this with `--cfg loom`; without it the file is empty. Bound: two threads, three
//! at a tree, at most LOOM_MAX_PREEMPTIONS involuntary switches in each execution (3 by default
//! here; loom's own authors find 2 to 3 enough for nearly all bugs). Each model counts its executions: a model
//! that ran only once has explored nothing, and fails.
#![cfg(loom)]

mod biased_lock;
mod combining_tree;

use std::sync::atomic::{AtomicUsize, Ordering as Plain};
use std::sync::Arc as Plainly;
use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize as Counter, Ordering};
use loom::sync::Arc;
use loom::thread;
use sfm_native::arena::Flag;
use sfm_native::bell::Bell;
use sfm_native::packet::{Body, Builder, Gather, Kind, Packet, HEADER};
use sfm_native::ring::{
    wants_wake, Arrival, Control, Memory, Refused, RingReader, RingWriter, LEAST,
};

/// A ring in loom's memory: each access to a byte is checked for races.
struct Model {
    control: Control,
    bytes: Vec<UnsafeCell<u8>>,
    /// There is no memory for larger packets.
    limit: usize,
}

#[derive(Clone)]
struct Side(Arc<Model>);

impl Side {
    fn new(capacity: usize) -> Side {
        Side::with_limit(capacity, usize::MAX)
    }
    fn with_limit(capacity: usize, limit: usize) -> Side {
        let bytes = (0..capacity).map(|_| UnsafeCell::new(0)).collect();
        Side(Arc::new(Model { control: Control::default(), bytes, limit }))
    }
}

// SAFETY: the model lives behind an Arc and never moves.
unsafe impl Memory for Side {
    fn control(&self) -> &Control {
        &self.0.control
    }
    fn capacity(&self) -> u64 {
        self.0.bytes.len() as u64
    }
    fn put(&self, at: u64, bytes: &[u8]) {
        // One tracked access for eight bytes is as good as eight, and much cheaper to explore.
        for (nth, byte) in bytes.iter().enumerate() {
            let cell = &self.0.bytes[at as usize + nth];
            // SAFETY: loom checks that nobody else is at this byte.
            cell.with_mut(|to| unsafe { *to = *byte });
        }
    }
    unsafe fn get(&self, at: u64, to: *mut u8, length: usize) {
        for nth in 0..length {
            let cell = &self.0.bytes[at as usize + nth];
            // SAFETY: loom checks for races; the caller gives room for `length` bytes.
            cell.with(|from| unsafe { *to.add(nth) = *from });
        }
    }
    fn allocate(&self, length: usize) -> Option<Body> {
        Body::try_new(length).filter(|_| length <= self.0.limit)
    }
}

/// Write all of a packet, however often the ring is full.
fn write(writer: &mut RingWriter<Side>, packet: &Packet) {
    let mut done = 0;
    while done < packet.len() {
        let before = done;
        done = writer.write(&Gather::of(packet.contiguous().unwrap()), done);
        if done == before {
            thread::yield_now();
        }
    }
}

fn packet(value: i64) -> Packet {
    let mut builder = Builder::new();
    builder.attribute("n", Kind::Int, &[&value.to_le_bytes()]).unwrap();
    // SAFETY: it has no buffers.
    unsafe { builder.finish() }.to_packet().unwrap()
}

fn value(packet: &Packet) -> i64 {
    i64::from_le_bytes(packet.find("n").unwrap().value.try_into().unwrap())
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let executions = Plainly::new(AtomicUsize::new(0));
    let counted = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        counted.fetch_add(1, Plain::Relaxed);
        model();
    });
    let executions = executions.load(Plain::Relaxed);
    println!("{executions} executions");
    assert!(executions > 1, "the model explored nothing");
}

/// Packets larger than the ring's free space arrive complete, in order, and every byte is handed
/// over properly in both directions.
#[test]
fn ring_hands_over_every_byte_in_order() {
    check(|| {
        let ring = Side::new(128);
        let mut reader = RingReader::new(ring.clone());
        let sender = thread::spawn(move || {
            let mut writer = RingWriter::new(ring);
            for nth in 0..2 {
                let packet = packet(nth);
                write(&mut writer, &packet);
            }
        });
        let mut next = 0;
        while next < 2 {
            match reader.read().unwrap() {
                Arrival::Packet(body) => {
                    assert_eq!(value(&Packet::new(body).unwrap()), next);
                    next += 1;
                }
                Arrival::Fragment | Arrival::Split { .. } => {}
                Arrival::Nothing => thread::yield_now(),
            }
        }
        sender.join().unwrap();
    });
}

/// A sender that gives up half-way has sent nothing, and the next packet arrives complete.
#[test]
fn an_aborted_packet_leaves_no_trace() {
    check(|| {
        let ring = Side::new(128);
        let mut reader = RingReader::new(ring.clone());
        let sender = thread::spawn(move || {
            let mut writer = RingWriter::new(ring);
            let given_up = packet(1);
            let done = writer.write(&Gather::of(given_up.contiguous().unwrap()), 0);
            assert!(done > 0 && done < given_up.len());
            writer.abort();
            let packet = packet(2);
            write(&mut writer, &packet);
        });
        loop {
            match reader.read().unwrap() {
                Arrival::Packet(body) => {
                    assert_eq!(value(&Packet::new(body).unwrap()), 2);
                    break;
                }
                Arrival::Fragment | Arrival::Split { .. } => {}
                Arrival::Nothing => thread::yield_now(),
            }
        }
        sender.join().unwrap();
    });
}

/// A sender of a packet that its receiver has no memory for, and that the ring cannot hold at once,
/// learns of it before the end; the next packet is taken.
#[test]
fn a_refusal_is_seen_before_the_end() {
    check(|| {
        let ring = Side::with_limit(64, HEADER);
        let mut reader = RingReader::new(ring.clone());
        let sender = thread::spawn(move || {
            let mut writer = RingWriter::new(ring);
            let large = packet(1);
            let mut done = 0;
            while done == 0 || writer.refused() == Refused::Nothing {
                let before = done;
                done = writer.write(&Gather::of(large.contiguous().unwrap()), done);
                assert!(done < large.len(), "sent");
                if done == before {
                    thread::yield_now();
                }
            }
            assert_eq!(writer.refused(), Refused::Packet);
            writer.abort();
            assert_eq!(writer.refused(), Refused::Nothing);
            // SAFETY: it has no buffers.
            let empty = unsafe { Builder::new().finish() }.to_packet().unwrap();
            write(&mut writer, &empty);
        });
        loop {
            match reader.read().unwrap() {
                Arrival::Packet(body) => break assert_eq!(body.len(), HEADER),
                Arrival::Fragment | Arrival::Split { .. } => {}
                Arrival::Nothing => thread::yield_now(),
            }
        }
        sender.join().unwrap();
    });
}

/// No ring is lost: a sleeper that the ringer did not see has seen the news. (A lost wake-up would
/// leave the sleeper for ever, which loom reports as a deadlock.)
#[test]
fn the_bell_wakes_whoever_sleeps() {
    check(|| {
        let shared = Arc::new((Bell::default(), Counter::new(0)));
        let ringer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.1.store(1, Ordering::Relaxed);
                shared.0.ring();
            })
        };
        while shared.1.load(Ordering::Relaxed) == 0 {
            shared.0.sleep(Duration::MAX, || shared.1.load(Ordering::Relaxed) != 0);
        }
        ringer.join().unwrap();
    });
}

/// A sender that sleeps for room is woken by the receiver that makes it.
#[test]
fn a_sender_that_waits_for_room_is_woken() {
    check(|| {
        let ring = Side::new(64);
        let bell = Arc::new(Bell::default());
        let mut reader = RingReader::new(ring.clone());
        let sender = {
            let bell = bell.clone();
            thread::spawn(move || {
                let mut writer = RingWriter::new(ring);
                let packet = packet(7);
                let mut done = 0;
                while done < packet.len() {
                    let before = done;
                    done = writer.write(&Gather::of(packet.contiguous().unwrap()), done);
                    if done == before {
                        writer.announce_wait();
                        if !writer.has_room(LEAST) {
                            let writer = std::cell::RefCell::new(&mut writer);
                            bell.sleep(Duration::MAX, || writer.borrow_mut().has_room(LEAST));
                        }
                        writer.end_wait();
                    }
                }
            })
        };
        loop {
            let arrival = reader.read();
            if wants_wake(reader.control()) {
                bell.ring();
            }
            match arrival.unwrap() {
                Arrival::Packet(body) => {
                    assert_eq!(value(&Packet::new(body).unwrap()), 7);
                    break;
                }
                Arrival::Fragment | Arrival::Split { .. } => {}
                Arrival::Nothing => thread::yield_now(),
            }
        }
        sender.join().unwrap();
    });
}

/// A block of the arena is the receiver's from the frame that announces it to the flag that gives
/// it back: both may write there, never at one time.
#[test]
fn a_block_belongs_to_one_side_at_a_time() {
    check(|| {
        let ring = Side::new(128);
        let shared = Arc::new((Flag::default(), UnsafeCell::new(0)));
        let mut reader = RingReader::new(ring.clone());
        let sender = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut writer = RingWriter::new(ring);
                for nth in 1..=2 {
                    while shared.0.is_lent() {
                        thread::yield_now();
                    }
                    // SAFETY: loom checks for races.
                    shared.1.with_mut(|block| unsafe { *block = nth });
                    shared.0.lend();
                    let packet = packet(nth);
                    let head = packet.tables();
                    while !writer.has_room(80) {
                        thread::yield_now();
                    }
                    writer.write_split(head, head.len() + 1, 7, 4096);
                }
            })
        };
        let mut next = 1;
        while next <= 2 {
            match reader.read().unwrap() {
                Arrival::Split { head, total, block: 7, offset: 4096 } => {
                    assert_eq!(total as usize, head.len() + 1);
                    // SAFETY: loom checks for races.
                    shared.1.with_mut(|block| unsafe {
                        assert_eq!(*block, next);
                        *block = 99; // the receiver's values are writable
                    });
                    shared.0.give_back();
                    next += 1;
                }
                Arrival::Nothing => thread::yield_now(),
                _ => panic!("only split packets were sent"),
            }
        }
        sender.join().unwrap();
    });
}

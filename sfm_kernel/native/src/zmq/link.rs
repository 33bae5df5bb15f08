//! The sending side of one peer: everything goes out in order, exactly once.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use super::library::{Frame, Library, Socket};
use super::wire::{Header, Kind, HEADER};
use crate::core::Core;
use crate::outflow::Outflow;
use crate::packet::Gather;
use crate::reentry::Holder;

/// Packets larger than `WHOLE` go in parts of so many bytes. A part's memory is used again for the next one,
/// where the memory of a large frame would be new each time, and its pages cost more than copying.
pub const CHUNK: usize = 1 << 20;
/// Packets of up to so many bytes go in one piece.
/// (What ZeroMQ takes in is bounded by this: transport/zmq/limits.py.)
pub const WHOLE: usize = CHUNK * WINDOW as usize;
/// Parts under way to one peer that it has not taken in: what a large packet may occupy beyond
/// its source and its destination.
const WINDOW: u64 = 2;

/// The way to one incarnation of a peer. Thread-safe.
pub struct Link {
    pub uid: u128,
    pub address: String,
    pub outflow: Arc<Outflow>,
    /// The peer was reached, and nothing tells that it has gone.
    pub up: AtomicBool,
    /// The peer has confirmed our `Bye`.
    pub done: AtomicBool,
    own: u128,
    greeting: String,
    lost: OnceLock<String>,
    /// Parts that the peer has taken in.
    took: AtomicU64,
    /// Number of the first part of the packet that the peer has no memory for.
    refused: AtomicU64,
    /// Held while a packet of several parts goes out.
    turn: Mutex<()>,
    /// Who has `turn`.
    pub holder: Holder,
    wire: Mutex<Wire>,
}

#[derive(Default)]
struct Wire {
    socket: Option<Socket>,
    closed: bool,
    /// Messages that wait for the socket.
    outbox: VecDeque<Vec<u8>>,
    number: u64,
    parts: u64,
    /// Number of the first part of the packet that goes out in parts.
    first: u64,
}

impl Link {
    pub fn new(core: Arc<Core>, own: u128, greeting: &str, uid: u128, address: &str) -> Link {
        Link {
            uid,
            address: address.to_owned(),
            outflow: Arc::new(Outflow::new(core, uid)),
            up: AtomicBool::new(false),
            done: AtomicBool::new(false),
            own,
            greeting: greeting.to_owned(),
            lost: OnceLock::new(),
            took: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            turn: Mutex::new(()),
            holder: Holder::default(),
            wire: Mutex::default(),
        }
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // ---- opening, losing, closing ----

    /// Send through `socket` from now on: greet, and send what has gathered.
    pub fn open(&self, mut socket: Socket) -> std::io::Result<()> {
        let wire = &mut *self.wire();
        if wire.closed {
            return Ok(());
        }
        let library = socket.library;
        let hello = self.greeting.as_bytes();
        let mut greeting = frame(library, hello.len())?;
        self.fill(greeting.bytes_mut(), Kind::Greet, false, 0, |body| body.copy_from_slice(hello));
        socket.send(greeting)?;
        for message in wire.outbox.drain(..) {
            let mut frame = Frame::of_size(library, message.len()).ok_or_else(no_memory)?;
            frame.bytes_mut().copy_from_slice(&message);
            socket.send(frame)?;
        }
        wire.socket = Some(socket);
        self.outflow.core().ring(); // a large packet may be waiting for it
        Ok(())
    }

    /// Say who we are and how much was sent, so that the peer sees what is missing.
    pub fn greet(&self) {
        let wire = &mut *self.wire();
        let number = wire.number;
        let hello = self.greeting.as_bytes();
        self.put(wire, Kind::Greet, false, number, hello.len(), |body| body.copy_from_slice(hello));
    }

    /// Nothing will ever arrive at the peer any more; the first reason stays.
    pub fn lose(&self, why: &str) {
        let _ = self.lost.set(why.to_owned());
        self.outflow.core().ring();
    }

    pub fn lost(&self) -> Option<&str> {
        self.lost.get().map(String::as_str)
    }

    /// Lose it, and leave the socket to its owner. What was not sent is given up.
    pub fn close(&self, why: &str) {
        self.lose(why);
        self.up.store(false, Ordering::Release);
        let wire = &mut *self.wire();
        wire.socket = None;
        wire.closed = true;
        wire.outbox.clear();
    }

    // ---- messages ----

    /// Send a message without body.
    pub fn control(&self, kind: Kind, number: u64) {
        self.put(&mut self.wire(), kind, false, number, 0, |_| {});
    }

    /// Say how much was received of it since the beginning, on an account.
    pub fn acknowledge(&self, account: usize, total: u64) {
        self.put(&mut self.wire(), Kind::Ack, account != 0, total, 0, |_| {});
    }

    /// We wait for room: the peer is to say what it has received.
    pub fn ask(&self) {
        self.control(Kind::Ask, 0);
    }

    /// Send a packet of at most `WHOLE` bytes. `urgent`: it is to be acknowledged at once.
    pub fn send(&self, packet: &Gather<'_>, urgent: bool) {
        self.numbered(&mut self.wire(), Kind::Data, urgent, packet.len(), |memory| {
            copy(packet, 0, memory)
        });
    }

    /// The right to send a packet in parts, if no other thread of this process has it.
    pub fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Whether the next part may go.
    pub fn has_room(&self) -> bool {
        let wire = self.wire();
        wire.socket.is_some() && wire.parts - self.took.load(Ordering::SeqCst) < WINDOW
    }

    /// Send the next part of `packet`, of which `done` bytes have gone.
    pub fn send_part(&self, packet: &Gather<'_>, done: &mut usize, urgent: bool) {
        let (at, part) = (*done, CHUNK.min(packet.len() - *done));
        let wire = &mut *self.wire();
        wire.parts += 1;
        if at == 0 {
            wire.first = wire.number + 1;
            let length = (packet.len() as u64).to_le_bytes();
            self.numbered(wire, Kind::First, urgent, 8 + part, |memory| {
                memory[..8].copy_from_slice(&length);
                copy(packet, 0, &mut memory[8..]);
            });
        } else {
            self.numbered(wire, Kind::Part, urgent, part, |memory| copy(packet, at, memory));
        }
        *done += part;
    }

    /// The packet of which parts have gone will not be completed.
    pub fn abort(&self) {
        self.numbered(&mut self.wire(), Kind::Abort, false, 0, |_| {});
    }

    /// The peer has taken in so many parts.
    pub fn took(&self, parts: u64) {
        self.took.fetch_max(parts, Ordering::SeqCst);
        self.outflow.core().ring();
    }

    /// The peer has no memory for the packet whose first part has this number.
    pub fn refused(&self, number: u64) {
        self.refused.store(number, Ordering::SeqCst);
        self.outflow.core().ring();
    }

    /// The peer has no memory for the packet that goes out in parts.
    pub fn is_refused(&self) -> bool {
        let refused = self.refused.load(Ordering::SeqCst);
        refused != 0 && refused == self.wire().first
    }

    fn numbered(
        &self,
        wire: &mut Wire,
        kind: Kind,
        flag: bool,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        wire.number += 1;
        self.put(wire, kind, flag, wire.number, length, fill);
    }

    /// Send a message whose body has `length` bytes; or keep it until there is a socket.
    fn put(
        &self,
        wire: &mut Wire,
        kind: Kind,
        flag: bool,
        number: u64,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) {
        if wire.closed {
            return;
        }
        let Some(socket) = &mut wire.socket else {
            let mut message = vec![0; HEADER + length];
            self.fill(&mut message, kind, flag, number, fill);
            wire.outbox.push_back(message);
            return;
        };
        let sent = frame(socket.library, length).and_then(|mut frame| {
            self.fill(frame.bytes_mut(), kind, flag, number, fill);
            socket.send(frame)
        });
        if let Err(error) = sent {
            // Its number is missing from now on: nothing later may arrive.
            wire.socket = None;
            wire.closed = true;
            let _ = self.lost.set(format!("(a message could not be sent to it: {error})"));
        }
    }

    fn fill(
        &self,
        memory: &mut [u8],
        kind: Kind,
        flag: bool,
        number: u64,
        fill: impl FnOnce(&mut [u8]),
    ) {
        Header { kind, flag, sender: self.own, receiver: self.uid, number }.write(memory);
        fill(&mut memory[HEADER..]);
    }
}

fn copy(packet: &Gather<'_>, at: usize, to: &mut [u8]) {
    // SAFETY: all of `to`.
    unsafe { packet.copy(at, to.as_mut_ptr(), to.len()) };
}

/// A frame with room for a body of `length` bytes.
fn frame(library: &'static Library, length: usize) -> std::io::Result<Frame> {
    Frame::of_size(library, HEADER + length).ok_or_else(no_memory)
}

fn no_memory() -> std::io::Error {
    std::io::Error::from(std::io::ErrorKind::OutOfMemory)
}

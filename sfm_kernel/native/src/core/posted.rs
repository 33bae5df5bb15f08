//! Posted receives: who said beforehand where a message is to go.
//!
//! An envelope that somebody waits for need not be queued: it goes from the ring to its place, and
//! no packet is made of it. Receives are tried in the order in which they were posted; one that is
//! posted looks at the queue first (`Core::post`), so that a message which came earlier goes before
//! those which come now. Both happen under the lock of the queue: no message slips between.
//!
//! Whose receive it is knows what to do with the bytes (`Receiver`): copy them into an array, spread
//! them over a matrix's column, or note that an offer is to be fetched.

use std::sync::Arc;

use super::{Core, Found, State, Via};
use crate::matching::{Numbers, Taken, Template, Ticket};
use crate::packet::{cost, Envelope, Packet};
use crate::peers::bump;

/// The bytes of a message that has come. They may lie in two places, one behind the other.
#[derive(Clone, Copy)]
pub struct Payload<'a>(pub &'a [u8], pub &'a [u8]);

impl Payload<'_> {
    pub fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copy as many bytes as there are, and at most `room`; how many.
    ///
    /// # Safety
    /// `to` has room for so many.
    pub unsafe fn copy(&self, to: *mut u8, room: usize) -> usize {
        let first = self.0.len().min(room);
        let second = self.1.len().min(room - first);
        // SAFETY: what comes in is nobody's own memory yet; the caller has the room.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.as_ptr(), to, first);
            if second > 0 {
                std::ptr::copy_nonoverlapping(self.1.as_ptr(), to.add(first), second);
            }
        }
        first + second
    }
}

/// What a posted receive does with its message.
pub trait Receiver: Send + Sync {
    /// The message. Called once, or again and again where the receive stays; under the lock of the
    /// queue: to copy, and to call nothing of the core's.
    fn receive(self: Arc<Self>, envelope: &Envelope, payload: Payload<'_>);
}

struct Receive {
    number: u64,
    wanted: Numbers,
    stays: bool,
    receiver: Arc<dyn Receiver>,
}

/// The posted receives by context, in their order.
#[derive(Default)]
pub struct Posted {
    /// Few contexts are in use at a time, so that a list is faster than a map.
    contexts: Vec<(u64, Vec<Receive>)>,
    count: usize,
    numbers: u64,
}

impl Posted {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(
        &mut self,
        context: u64,
        wanted: Numbers,
        stays: bool,
        receiver: Arc<dyn Receiver>,
    ) -> u64 {
        self.count += 1;
        self.numbers += 1;
        let number = self.numbers;
        let receive = Receive { number, wanted, stays, receiver };
        match self.contexts.iter_mut().find(|(own, _)| *own == context) {
            Some((_, list)) => list.push(receive),
            None => {
                self.contexts.retain(|(_, list)| !list.is_empty());
                self.contexts.push((context, vec![receive]));
            }
        }
        number
    }

    fn remove(&mut self, context: u64, number: u64) -> bool {
        let list = self.contexts.iter_mut().find(|(own, _)| *own == context);
        let Some((_, list)) = list else { return false };
        let Some(nth) = list.iter().position(|one| one.number == number) else { return false };
        list.remove(nth);
        self.count -= 1;
        true
    }

    /// Who gets a message: the first receive that wants it, which is then no more posted.
    pub fn claim(&mut self, envelope: &Envelope) -> Option<Arc<dyn Receiver>> {
        let list = self.contexts.iter_mut().find(|(own, _)| *own == envelope.context);
        let (_, list) = list?;
        let nth = list.iter().position(|one| one.wanted.fit(envelope))?;
        if list[nth].stays {
            return Some(list[nth].receiver.clone());
        }
        self.count -= 1;
        Some(list.remove(nth).receiver)
    }
}

impl Core {
    /// Give the first message that `wanted` fits to `receiver`: now, if it has come (None), or when
    /// it comes (the receive's number, for `unpost`).
    pub fn post(&self, context: u64, wanted: Numbers, receiver: Arc<dyn Receiver>) -> Option<u64> {
        let mut state = self.lock();
        if let Some(taken) = self.take_for(&mut state, context, wanted) {
            self.tell_senders(&mut state);
            drop(state);
            give(&taken.packet, receiver);
            return None;
        }
        Some(state.posted.add(context, wanted, false, receiver))
    }

    /// Give all messages of a context to `receiver`, from now on, as they come.
    pub fn post_for_all(&self, context: u64, receiver: Arc<dyn Receiver>) -> u64 {
        let mut state = self.lock();
        let all = Numbers { source: None, tag: None };
        while let Some(taken) = self.take_for(&mut state, context, all) {
            give(&taken.packet, receiver.clone());
        }
        self.tell_senders(&mut state);
        state.posted.add(context, all, true, receiver)
    }

    /// Take a receive back; false where it has its message.
    pub fn unpost(&self, context: u64, number: u64) -> bool {
        self.lock().posted.remove(context, number)
    }

    /// Receives that are posted in such contexts, without those that stay.
    pub fn posted(&self, is_wanted: impl Fn(u64) -> bool) -> usize {
        let state = self.lock();
        let lists = state.posted.contexts.iter().filter(|(context, _)| is_wanted(*context));
        lists.flat_map(|(_, list)| list).filter(|one| !one.stays).count()
    }

    /// The first envelope in the queue that is wanted; with `take` it leaves the queue.
    pub fn look_for(&self, context: u64, wanted: Numbers, take: bool) -> Option<Found> {
        match self.look(context, &Template::of(wanted), 0, None, take, false) {
            Found::Nothing { .. } => None,
            found => Some(found),
        }
    }

    fn take_for(&self, state: &mut State, context: u64, wanted: Numbers) -> Option<Taken> {
        if !state.queue.has(context) {
            return None;
        }
        let candidate = state.queue.find(context, &Template::of(wanted), 0, None)?;
        let taken = state.queue.take(&candidate)?;
        self.account(state, &taken);
        Some(taken)
    }

    /// Give the next message of a ring to the receive that waits for it; false where none does.
    pub(super) fn land(&self, state: &mut State, inbound: u32) -> bool {
        let State { inbounds, posted, .. } = state;
        let Via::Ring { reader, .. } = &mut inbounds[inbound as usize].via else { return false };
        let Some(frame) = reader.envelope() else { return false };
        let envelope = frame.opened.envelope;
        let Some(receiver) = posted.claim(&envelope) else { return false };
        reader.take(&frame, |first, second| receiver.receive(&envelope, Payload(first, second)));
        self.landed(state, inbound, false, frame.total, envelope.context);
        true
    }

    /// A message of so many bytes has come in and was received at once.
    pub(super) fn landed(
        &self,
        state: &mut State,
        inbound: u32,
        ack: bool,
        bytes: usize,
        context: u64,
    ) {
        let from = &mut state.inbounds[inbound as usize];
        from.arrived += 1;
        let (number, uid, shared) = (from.arrived, from.uid as u64, self.shared());
        let peer = shared.peers.of(uid);
        bump(&shared.arrived, 1);
        bump(&peer.arrived, 1);
        bump(&peer.received, 1);
        shared.record_received(uid, number, bytes, context);
        let ticket = Ticket { inbound, ack, number, ..Ticket::default() };
        self.credit(state, &ticket, cost(bytes), context);
    }
}

/// Hand over an envelope that is a packet of its own.
pub(super) fn give(packet: &Packet, receiver: Arc<dyn Receiver>) {
    let envelope = packet.envelope().expect("only envelopes have numbers");
    receiver.receive(&envelope, Payload(packet.payload(), &[]));
}

#[cfg(test)]
mod tests;

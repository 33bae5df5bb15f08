//! Posted receives, which name a message's destination before it arrives.
//!
//! An envelope that fits a posted receive is not queued: it goes from the ring to its destination,
//! and no packet is made of it. Receives are tried in the order in which they were posted; a
//! receive that is posted searches the queue first (`Core::post`), so that a message which came
//! earlier goes before those which come now. Both happen under the lock of the queue: no message
//! slips between.
//!
//! The receive's owner decides what happens to the bytes (`Receiver`): it copies them into an
//! array, spreads them over a matrix's column, or notes that an offer is to be fetched.

use std::sync::Arc;

use super::{Core, Found, InboxState, Via};
use crate::matching::{Numbers, Taken, Template, Ticket};
use crate::packet::{cost, Envelope, Packet};
use crate::peers::bump;

/// The bytes of a message that has arrived. They may lie in two slices, one after the other.
#[derive(Clone, Copy)]
pub struct Payload<'a>(pub &'a [u8], pub &'a [u8]);

impl Payload<'_> {
    pub fn len(&self) -> usize {
        self.0.len() + self.1.len()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copy the bytes, at most `room` of them. Returns their number.
    ///
    /// # Safety
    /// `to` has room for `room` bytes.
    pub unsafe fn copy(&self, to: *mut u8, room: usize) -> usize {
        let first = self.0.len().min(room);
        let second = self.1.len().min(room - first);
        // SAFETY: an arriving message overlaps no memory of the program; the caller has the room.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.as_ptr(), to, first);
            if second > 0 {
                std::ptr::copy_nonoverlapping(self.1.as_ptr(), to.add(first), second);
            }
        }
        first + second
    }
}

/// The destination of a posted receive's message.
pub trait Receiver: Send + Sync {
    /// Take the message. Called once, or again and again if the receive stays; under the lock of
    /// the queue: it may copy, and must call nothing of the core.
    fn receive(self: Arc<Self>, envelope: &Envelope, payload: Payload<'_>);
}

struct Receive {
    number: u64,
    numbers: Numbers,
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
        numbers: Numbers,
        stays: bool,
        receiver: Arc<dyn Receiver>,
    ) -> u64 {
        self.count += 1;
        self.numbers += 1;
        let number = self.numbers;
        let receive = Receive { number, numbers, stays, receiver };
        match self.contexts.iter_mut().find(|(id, _)| *id == context) {
            Some((_, list)) => list.push(receive),
            None => {
                self.contexts.retain(|(_, list)| !list.is_empty());
                self.contexts.push((context, vec![receive]));
            }
        }
        number
    }

    fn remove(&mut self, context: u64, number: u64) -> bool {
        let list = self.contexts.iter_mut().find(|(id, _)| *id == context);
        let Some((_, list)) = list else { return false };
        let Some(nth) = list.iter().position(|receive| receive.number == number) else {
            return false;
        };
        list.remove(nth);
        self.count -= 1;
        true
    }

    /// The receiver of a message: that of the first receive it fits, which is then no longer
    /// posted.
    pub fn claim(&mut self, envelope: &Envelope) -> Option<Arc<dyn Receiver>> {
        let list = self.contexts.iter_mut().find(|(id, _)| *id == envelope.context);
        let (_, list) = list?;
        let nth = list.iter().position(|receive| receive.numbers.fit(envelope))?;
        if list[nth].stays {
            return Some(list[nth].receiver.clone());
        }
        self.count -= 1;
        Some(list.remove(nth).receiver)
    }
}

impl Core {
    /// Give the first message that fits `numbers` to `receiver`: now, if it has arrived (None), or
    /// when it arrives (the receive's number, for `unpost`).
    pub fn post(&self, context: u64, numbers: Numbers, receiver: Arc<dyn Receiver>) -> Option<u64> {
        let mut state = self.lock();
        if let Some(taken) = self.take_for(&mut state, context, numbers) {
            self.wake_senders(&mut state);
            drop(state);
            give(&taken.packet, receiver);
            return None;
        }
        Some(state.posted.add(context, numbers, false, receiver))
    }

    /// Give all messages of a context to `receiver`, from now on, as they arrive.
    pub fn post_for_all(&self, context: u64, receiver: Arc<dyn Receiver>) -> u64 {
        let mut state = self.lock();
        let all = Numbers { source: None, tag: None };
        while let Some(taken) = self.take_for(&mut state, context, all) {
            give(&taken.packet, receiver.clone());
        }
        self.wake_senders(&mut state);
        state.posted.add(context, all, true, receiver)
    }

    /// Take a receive back; false if it has its message.
    pub fn unpost(&self, context: u64, number: u64) -> bool {
        self.lock().posted.remove(context, number)
    }

    /// The number of posted receives in these contexts, without those that stay.
    pub fn posted(&self, matches: impl Fn(u64) -> bool) -> usize {
        let state = self.lock();
        let lists = state.posted.contexts.iter().filter(|(context, _)| matches(*context));
        lists.flat_map(|(_, list)| list).filter(|receive| !receive.stays).count()
    }

    /// The first envelope in the queue that fits; with `take` it leaves the queue.
    pub fn find_envelope(&self, context: u64, numbers: Numbers, take: bool) -> Option<Found> {
        match self.find(context, &Template::of(numbers), 0, None, take, false) {
            Found::Nothing { .. } => None,
            found => Some(found),
        }
    }

    fn take_for(&self, state: &mut InboxState, context: u64, numbers: Numbers) -> Option<Taken> {
        if !state.queue.has(context) {
            return None;
        }
        let candidate = state.queue.find(context, &Template::of(numbers), 0, None)?;
        let taken = state.queue.take(&candidate)?;
        self.account(state, &taken);
        Some(taken)
    }

    /// Give the next message of a ring to the posted receive that it fits; false if there is none.
    pub(super) fn land(&self, state: &mut InboxState, inbound: u32) -> bool {
        let InboxState { inbounds, posted, .. } = state;
        let Via::Ring { reader, .. } = &mut inbounds[inbound as usize].via else { return false };
        let Some(frame) = reader.envelope() else { return false };
        let envelope = frame.opened.envelope;
        let Some(receiver) = posted.claim(&envelope) else { return false };
        reader.take(&frame, |first, second| receiver.receive(&envelope, Payload(first, second)));
        self.landed(state, inbound, false, frame.total, envelope.context);
        true
    }

    /// Count a message that has arrived and was received at once.
    pub(super) fn landed(
        &self,
        state: &mut InboxState,
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

/// Hand over an envelope that is a packet already.
pub(super) fn give(packet: &Packet, receiver: Arc<dyn Receiver>) {
    let envelope = packet.envelope().expect("only envelopes have numbers");
    receiver.receive(&envelope, Payload(packet.payload(), &[]));
}

#[cfg(test)]
mod tests;

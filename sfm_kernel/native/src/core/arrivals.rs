//! Inbounds, and the packets that arrive on them.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::posted::give;
use super::SendCredit;
use super::{Core, InboxState, Trouble, Via, NO_INBOUND};
use crate::clock::coarse;
use crate::matching::{Taken, Ticket};
use crate::packet::{is_news, Packet};
use crate::peers::bump;
use crate::ring::{wants_wake, Arrival, RingReader};
use crate::ring_file::RingFile;
use crate::segment::{self, segment_of, SLOTS};
use crate::shm::{is_dead, ShmError};

/// Nanoseconds between two checks of all senders' slots, which fill 8 kB.
const ADOPT_EVERY: u64 = 500_000_000;

impl Core {
    /// The inbound for packets that `uid` delivers by another transport than a ring.
    pub fn inbound(&self, uid: u128, credit: Option<Arc<SendCredit>>) -> u32 {
        let mut state = self.lock();
        if let Some(&inbound) = state.by_uid.get(&uid) {
            return inbound;
        }
        let source = credit.map_or(Via::Remote, Via::Local);
        let inbound = self.add_inbound(&mut state, uid, source);
        state.by_uid.insert(uid, inbound);
        inbound
    }

    /// The ring on which `uid` sends to this process, if there is one.
    pub fn ring_from(&self, uid: u128) -> Option<Arc<RingFile>> {
        let state = self.lock();
        let inbound = state.inbounds.iter().rev().find(|inbound| inbound.uid == uid)?;
        match &inbound.via {
            Via::Ring { reader, .. } => Some(reader.memory().clone()),
            _ => None,
        }
    }

    /// Take in a packet that has arrived on `inbound`.
    pub fn deliver(&self, inbound: u32, packet: Arc<Packet>, ack: bool) {
        let mut state = self.lock();
        let remote = matches!(state.inbounds[inbound as usize].via, Via::Remote);
        self.remote.store(remote, Ordering::Relaxed);
        self.admit(&mut state, packet, inbound, ack);
        self.after_arrival(&state);
    }

    /// Take in what has arrived in the rings. `all`: read every ring, not only the announced ones
    /// (a sender may have died between writing and ringing).
    pub(super) fn pump(&self, state: &mut InboxState, all: bool) {
        let shared = self.shared();
        let mut arrived = false;
        for (nth, word) in shared.arrivals.0.iter().enumerate() {
            let bits = word.load(Ordering::SeqCst);
            if bits == 0 {
                continue;
            }
            state.expect(nth * 64 + bits.trailing_zeros() as usize);
            // Before the bits are taken: a receiver that finds none left must see that something
            // has changed, and read the queue. So nobody need ring again for an announced arrival.
            self.version.fetch_add(1, Ordering::SeqCst);
            // SYNC POINT segment/arrivals: with `announce_arrival`.
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                let slot = nth * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if let Some(inbound) = self.ring_inbound(state, slot) {
                    arrived |= self.drain(state, inbound);
                }
            }
        }
        if arrived {
            self.remote.store(false, Ordering::Relaxed);
            self.after_pump(state);
        }
        if all {
            let mut found = self.reopen(state);
            for inbound in 0..state.inbounds.len() {
                if matches!(&state.inbounds[inbound].via, Via::Ring { reader, .. } if reader.pending())
                {
                    found |= self.drain(state, inbound as u32);
                }
            }
            if found {
                self.after_arrival(state);
            }
        }
    }

    /// Take in what was announced.
    pub fn take_in(&self) {
        let mut state = self.lock();
        self.pump(&mut state, false);
        self.wake_senders(&mut state);
    }

    /// Take in everything, also from dead senders. Returns a number for `is_decided`
    /// and `is_handled`.
    pub fn take_in_all(&self) -> u64 {
        let mut state = self.lock();
        self.pump(&mut state, true);
        self.adopt(&mut state);
        self.wake_senders(&mut state);
        state.undecided_total
    }

    /// `adopt`, twice a second however often this is called.
    pub(super) fn adopt_in_time(&self, state: &mut InboxState) {
        let now = coarse();
        if now.saturating_sub(state.adopted) >= ADOPT_EVERY {
            state.adopted = now;
            self.adopt(state);
        }
    }

    /// Open the rings of senders that died before they could announce them: nobody else would
    /// remove these rings, and nobody would receive what they hold.
    fn adopt(&self, state: &mut InboxState) {
        let Some(folder) = &self.folder else { return };
        let mut arrived = false;
        for slot in 0..SLOTS {
            let uid = self.shared().ring_of(slot);
            let inbound = state.by_slot.get(slot).copied().unwrap_or(NO_INBOUND);
            let known = inbound != NO_INBOUND && state.inbounds[inbound as usize].uid == uid;
            if uid != 0 && !known && is_dead(&segment_of(folder, uid)) {
                if let Some(inbound) = self.ring_inbound(state, slot) {
                    arrived |= self.drain(state, inbound);
                }
            }
        }
        if arrived {
            self.after_arrival(state);
        }
    }

    /// The inbound of the ring that `slot` announced; opened now if it is new.
    fn ring_inbound(&self, state: &mut InboxState, slot: usize) -> Option<u32> {
        let uid = self.shared().ring_of(slot);
        match state.by_slot.get(slot) {
            Some(&inbound) if inbound != NO_INBOUND => {
                if state.inbounds[inbound as usize].uid == uid {
                    return Some(inbound);
                }
                // The slot has a new owner. The former owner's messages come first; then its ring
                // is dropped.
                self.drain(state, inbound);
                state.inbounds[inbound as usize].via = Via::Closed;
            }
            _ => {}
        }
        let folder = self.folder.as_ref()?;
        let path = folder.join(format!("{uid:032x}-{:032x}.ring", self.shared().uid()));
        let opened = RingFile::open(&path).and_then(|file| {
            // The sender may have left; but if its segment cannot be opened yet, nobody could wake
            // it.
            match segment::open(&segment_of(folder, uid), Some(uid)) {
                Ok(sender) => Ok((file, Some(sender))),
                Err(ShmError::Io(error)) if is_out_of_resources(&error) => Err(ShmError::Io(error)),
                Err(_) => Ok((file, None)),
            }
        });
        let (file, sender) = match opened {
            Ok(opened) => opened,
            Err(ShmError::Io(error)) if error.kind() == ErrorKind::NotFound => {
                state.unopened.retain(|&other| other != slot);
                return None;
            }
            Err(ShmError::Io(error)) if is_out_of_resources(&error) => {
                if !state.unopened.contains(&slot) {
                    state.unopened.push(slot);
                    self.report(state, Trouble::Unopened(error));
                }
                return None;
            }
            Err(error) => {
                let why = format!("a new sender's ring cannot be mapped ({error:?})");
                self.report(state, Trouble::Damaged(why));
                return None;
            }
        };
        state.unopened.retain(|&other| other != slot);
        // Both sides have mapped it: without a name it vanishes with them, however they end.
        let _ = std::fs::remove_file(&path);
        self.release_dead(state, folder);
        let inbound =
            self.add_inbound(state, uid, Via::Ring { reader: RingReader::new(file), sender });
        if state.by_slot.len() <= slot {
            state.by_slot.resize(slot + 1, NO_INBOUND);
        }
        state.by_slot[slot] = inbound;
        Some(inbound)
    }

    /// Open the rings for which there was no descriptor or memory; whether there was something in
    /// them.
    fn reopen(&self, state: &mut InboxState) -> bool {
        let mut found = false;
        for slot in state.unopened.clone() {
            if let Some(inbound) = self.ring_inbound(state, slot) {
                found |= self.drain(state, inbound);
            }
        }
        found
    }

    /// Unmap the rings of processes that have died or left, once they are empty. Done when a new
    /// ring comes: any number of processes may come and go.
    fn release_dead(&self, state: &mut InboxState, folder: &Path) {
        for inbound in 0..state.inbounds.len() {
            let Via::Ring { .. } = state.inbounds[inbound].via else { continue };
            if is_dead(&segment_of(folder, state.inbounds[inbound].uid)) {
                // A dead process writes nothing more: this is all of it.
                if self.drain(state, inbound as u32) {
                    self.after_arrival(state);
                }
                state.inbounds[inbound].via = Via::Closed;
            }
        }
    }

    /// Take every complete packet out of a ring; whether there was any.
    fn drain(&self, state: &mut InboxState, inbound: u32) -> bool {
        let mut arrived = false;
        let mut fragments = 0;
        loop {
            if !state.posted.is_empty() && self.land(state, inbound) {
                arrived = true;
                continue;
            }
            let Via::Ring { reader, .. } = &mut state.inbounds[inbound as usize].via else {
                return arrived;
            };
            let packet = match reader.read() {
                Ok(Arrival::Nothing) => {
                    state.to_wake.push(inbound);
                    return arrived;
                }
                Ok(Arrival::Fragment) => {
                    // A large packet: let its sender write while we read on.
                    fragments += 1;
                    if fragments % 2 == 0 {
                        wake_sender(&state.inbounds[inbound as usize].via);
                    }
                    continue;
                }
                Ok(Arrival::Packet(body)) => Packet::new(body),
                Ok(Arrival::Split { head, total, block, offset }) => total
                    .checked_sub(head.len() as u64)
                    .ok_or_else(|| "its parts do not add up".to_string())
                    .and_then(|length| reader.memory().lease(block, offset, length))
                    .and_then(|tail| Packet::split(head, tail, total)),
                Err(why) => Err(why),
            };
            match packet {
                Ok(packet) => {
                    arrived = true;
                    self.admit(state, Arc::new(packet), inbound, false);
                }
                Err(why) => {
                    let source = &state.inbounds[inbound as usize].via;
                    if let Via::Ring { reader, .. } = source {
                        reader.close();
                        wake_sender(source);
                    }
                    state.inbounds[inbound as usize].via = Via::Closed;
                    // Its sender makes a new ring when it learns of this.
                    if let Some(slot) = state.by_slot.iter_mut().find(|known| **known == inbound) {
                        *slot = NO_INBOUND;
                    }
                    self.report(state, Trouble::Damaged(why));
                    return true;
                }
            }
        }
    }

    /// Wake the senders that wait for room or credit, if they have got some now.
    pub(super) fn wake_senders(&self, state: &mut InboxState) {
        while let Some(inbound) = state.to_wake.pop() {
            wake_sender(&state.inbounds[inbound as usize].via);
        }
    }

    fn admit(&self, state: &mut InboxState, packet: Arc<Packet>, inbound: u32, ack: bool) {
        let envelope = if state.posted.is_empty() { None } else { packet.envelope() };
        if let Some(receiver) = envelope.and_then(|envelope| state.posted.claim(&envelope)) {
            give(&packet, receiver);
            return self.landed(state, inbound, ack, packet.len(), packet.context());
        }
        let from = &mut state.inbounds[inbound as usize];
        from.arrived += 1;
        let (number, shared) = (from.arrived, self.shared());
        bump(&shared.arrived, 1);
        bump(&shared.peers.of(from.uid as u64).arrived, 1);
        // Notifications that nobody reads keep no sender waiting.
        let ticket = Ticket { inbound, ack, paid: is_news(packet.context()), number };
        if ticket.paid {
            self.credit(state, &ticket, packet.cost(), packet.context());
        }
        // Behind a message that is not decided yet, or order would be lost.
        let active = self.shared().callbacks.load(Ordering::Relaxed) != 0;
        let undecided = active || state.deciding > 0 || !state.undecided.is_empty();
        if undecided && packet.context() == 0 {
            state.undecided_total += 1;
            state.undecided.push_back(Taken { seq: 0, packet, ticket });
        } else {
            state.queue.push(packet, ticket);
        }
    }

    /// After `pump` has taken in what was announced. The announcing sender has rung the bell.
    fn after_pump(&self, state: &InboxState) {
        let shared = self.shared();
        shared.set_depth(state.queue.len() + state.undecided.len(), state.queue.bytes());
        self.poke_driver();
        if !state.undecided.is_empty() {
            shared.network.0.ring();
        }
    }

    /// After something has arrived that nobody has announced.
    pub(super) fn after_arrival(&self, state: &InboxState) {
        self.version.fetch_add(1, Ordering::SeqCst);
        self.after_pump(state);
        self.shared().bell.0.ring();
    }
}

impl InboxState {
    /// The ring that `slot` announced is about to be read: prefetch its first bytes.
    fn expect(&self, slot: usize) {
        let inbound =
            self.by_slot.get(slot).and_then(|inbound| self.inbounds.get(*inbound as usize));
        if let Some(Via::Ring { reader, .. }) = inbound.map(|inbound| &inbound.via) {
            reader.expect();
        }
    }
}

fn wake_sender(source: &Via) {
    if let Via::Ring { reader, sender: Some(sender) } = source {
        if wants_wake(reader.control()) {
            sender.bell.0.ring();
        }
    }
}

/// Whether this process has run out of a resource, which says nothing about the file.
fn is_out_of_resources(error: &std::io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}

//! Lanes and what comes in on them.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::{Core, Source, State};
use crate::matching::Taken;
use crate::outflow::Outflow;
use crate::packet::Packet;
use crate::ring::{Arrival, Reader};
use crate::ring_file::RingFile;
use crate::segment;
use crate::shm::{is_dead, ShmError};

impl Core {
    /// The lane of what `uid` delivers from outside the rings.
    pub fn lane(&self, uid: u128, outflow: Option<Arc<Outflow>>) -> u32 {
        let mut state = self.lock();
        if let Some(&lane) = state.by_uid.get(&uid) {
            return lane;
        }
        let source = outflow.map_or(Source::Remote, Source::Local);
        let lane = state.add_lane(uid, source);
        state.by_uid.insert(uid, lane);
        lane
    }

    /// A packet has come in on `lane`.
    pub fn deliver(&self, lane: u32, packet: Arc<Packet>, ack: bool) {
        let mut state = self.lock();
        self.admit(&mut state, Taken { seq: 0, packet, lane, ack });
        self.after_arrival(&state);
    }

    /// Take in what has arrived in the rings. `all`: look at every ring, not only at those that
    /// were announced (a sender may have died between writing and ringing).
    pub(super) fn pump(&self, state: &mut State, all: bool) {
        let shared = self.shared();
        let mut arrived = false;
        for (nth, word) in shared.arrivals.0.iter().enumerate() {
            if word.load(Ordering::SeqCst) == 0 {
                continue;
            }
            // SYNC POINT segment/arrivals: with `announce_arrival`.
            let mut bits = word.swap(0, Ordering::SeqCst);
            while bits != 0 {
                let slot = nth * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if let Some(lane) = self.ring_lane(state, slot) {
                    arrived |= self.drain(state, lane);
                }
            }
        }
        if all {
            for lane in 0..state.lanes.len() {
                if matches!(&state.lanes[lane].source, Source::Ring { reader, .. } if reader.pending())
                {
                    arrived |= self.drain(state, lane as u32);
                }
            }
        }
        if arrived {
            self.after_arrival(state);
        }
    }

    /// The lane of the ring that `slot` announced; opened now if it is new.
    fn ring_lane(&self, state: &mut State, slot: usize) -> Option<u32> {
        let uid = self.shared().ring_of(slot);
        if let Some(&lane) = state.by_slot.get(&slot) {
            if state.lanes[lane as usize].uid == uid {
                return Some(lane);
            }
            // The slot has a new owner. What the old one wrote comes first; then its ring goes.
            self.drain(state, lane);
            state.lanes[lane as usize].source = Source::Gone;
        }
        let folder = self.folder.as_ref()?;
        let path = folder.join(format!("{uid:032x}-{:032x}.ring", self.shared().uid()));
        let file = match RingFile::open(&path) {
            Ok(file) => file,
            Err(ShmError::Io(error)) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => {
                state.damaged.push(format!("a new sender's ring cannot be mapped ({error:?})"));
                return None;
            }
        };
        // Both sides have it mapped: without a name it vanishes with them, however they end.
        let _ = std::fs::remove_file(&path);
        self.release_dead(state, folder);
        let sender = segment::open(&folder.join(format!("{uid:032x}.seg")), Some(uid)).ok();
        let lane = state.add_lane(uid, Source::Ring { reader: Reader::new(file), sender });
        state.by_slot.insert(slot, lane);
        Some(lane)
    }

    /// Unmap the rings of processes that have died or left, once they are empty. Done when a new
    /// ring comes: as many processes may come and go as like.
    fn release_dead(&self, state: &mut State, folder: &Path) {
        for lane in 0..state.lanes.len() {
            let Source::Ring { .. } = state.lanes[lane].source else { continue };
            let segment = folder.join(format!("{:032x}.seg", state.lanes[lane].uid));
            if is_dead(&segment) {
                // The dead write nothing any more: what is there now is all.
                if self.drain(state, lane as u32) {
                    self.after_arrival(state);
                }
                state.lanes[lane].source = Source::Gone;
            }
        }
    }

    /// Take every whole packet out of a ring; whether there was any.
    fn drain(&self, state: &mut State, lane: u32) -> bool {
        let mut arrived = false;
        loop {
            let Source::Ring { reader, sender, .. } = &mut state.lanes[lane as usize].source else {
                return arrived;
            };
            let arrival = reader.read();
            if reader.should_tell(&arrival) {
                if let Some(sender) = sender {
                    sender.bell.0.ring();
                }
            }
            match arrival.and_then(|arrival| match arrival {
                Arrival::Packet(body) => Packet::new(body).map(|packet| Some(Some(packet))),
                Arrival::Part => Ok(Some(None)),
                Arrival::Nothing => Ok(None),
            }) {
                Ok(Some(Some(packet))) => {
                    arrived = true;
                    let packet = Arc::new(packet);
                    self.admit(state, Taken { seq: 0, packet, lane, ack: false });
                }
                Ok(Some(None)) => {}
                Ok(None) => return arrived,
                Err(why) => {
                    state.lanes[lane as usize].source = Source::Gone;
                    state.damaged.push(why);
                    return true;
                }
            }
        }
    }

    fn admit(&self, state: &mut State, news: Taken) {
        // Behind a message that is not decided yet, or order would be lost.
        let active = self.shared().callbacks.load(Ordering::Relaxed) != 0;
        if active || state.deciding > 0 || !state.undecided.is_empty() {
            state.undecided.push_back(news);
        } else {
            state.queue.push(news.packet, news.lane, news.ack);
        }
    }

    pub(super) fn after_arrival(&self, state: &State) {
        let shared = self.shared();
        shared.set_depth(state.queue.len() + state.undecided.len(), state.queue.bytes());
        self.version.fetch_add(1, Ordering::SeqCst);
        shared.bell.0.ring();
        if !state.undecided.is_empty() {
            shared.network.0.ring();
        }
    }
}

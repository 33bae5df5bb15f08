//! Bytes of large messages that come through the ring, in fragments: all of them, where the kernel
//! does not let the receiver read the sender's memory, or the chunks that the sender copies.

use std::sync::Arc;

use sfm_native::core::Payload;
use sfm_native::packet::Envelope;

use super::control::{Kind, Note};
use super::offers::Offer;
use super::together::Shared;
use super::{lock, Engine, Receiving};
use crate::data::Data;

/// The destination of fragments.
pub struct Streaming {
    receiving: Arc<Receiving>,
    /// Contiguous: the user's memory, or a packed copy.
    to: Data,
    of: Of,
}

enum Of {
    Whole(Whole),
    /// The chunks of a message that both sides copy.
    Chunks(Shared),
}

/// A message all of whose bytes come so.
struct Whole {
    envelope: Envelope,
    length: usize,
    come: usize,
    /// Holds the bytes until all have come, if the user's memory is not contiguous.
    packed: Vec<u8>,
}

impl Streaming {
    fn of_message(receiving: &Arc<Receiving>, envelope: Envelope, length: usize) -> Streaming {
        let room = length.min(receiving.data.len());
        let mut packed = Vec::new();
        let start = receiving.data.contiguous().unwrap_or_else(|| {
            packed.resize(room, 0);
            packed.as_mut_ptr()
        });
        let of = Of::Whole(Whole { envelope, length, come: 0, packed });
        Streaming { receiving: receiving.clone(), to: Data::bytes(start, room), of }
    }

    pub(super) fn of_chunks(receiving: &Arc<Receiving>, to: Data, shared: Shared) -> Streaming {
        Streaming { receiving: receiving.clone(), to, of: Of::Chunks(shared) }
    }

    /// Take a fragment. True if that was the last one of the message.
    fn take(&mut self, at: usize, payload: Payload<'_>) -> bool {
        let (start, room) = (self.to.contiguous().expect("it is contiguous"), self.to.len());
        if at < room {
            // SAFETY: inside the message's memory.
            unsafe { payload.copy(start.add(at), room - at) };
        }
        match &mut self.of {
            Of::Whole(whole) => {
                whole.come += payload.len();
                whole.come >= whole.length
            }
            Of::Chunks(shared) => {
                shared.claim().copied();
                false
            }
        }
    }

    /// True if it is of this receive, and nobody waits for its end.
    pub(super) fn is_open(&self, receiving: &Arc<Receiving>) -> bool {
        matches!(self.of, Of::Whole(_)) && Arc::ptr_eq(&self.receiving, receiving)
    }

    fn finish(self) {
        let Of::Whole(Whole { envelope, length, packed, .. }) = self.of else { return };
        if self.receiving.data.contiguous().is_none() {
            // SAFETY: the receive owns the memory until it has ended.
            unsafe { self.receiving.data.fill(Payload(&packed, &[])) };
        }
        self.receiving.finish(&envelope, length);
    }
}

impl Engine {
    /// Make the sender stream the bytes.
    pub(super) fn pull(&self, receiving: &Arc<Receiving>, envelope: &Envelope, offer: &Offer) {
        let note = Note::of(envelope);
        let key = self.stream_to(Streaming::of_message(receiving, *envelope, offer.length));
        self.send_control(Kind::Pull, note.rank, note.number, i64::from(key), &[]);
    }

    /// The number by which fragments name their destination.
    pub(super) fn stream_to(&self, streaming: Streaming) -> u32 {
        let mut streamed = lock(&self.streamed);
        let key = streamed.next();
        streamed.all.insert(key, streaming);
        key
    }

    /// Take a fragment of a large message.
    pub(super) fn take_streamed(&self, envelope: &Envelope, payload: Payload<'_>) {
        let key = envelope.tag as u32;
        let mut streamed = lock(&self.streamed);
        let Some(message) = streamed.all.get_mut(&key) else { return };
        if message.take(envelope.source as usize, payload) {
            let message = streamed.all.remove(&key).expect("found above");
            drop(streamed);
            message.finish();
        }
    }
}

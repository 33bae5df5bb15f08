//! Bytes of large messages that come through the ring, in fragments: all of them, where the kernel
//! does not let the receiver read the sender's memory, or the chunks that the sender copies.

use std::sync::Arc;

use sfm_native::core::Payload;
use sfm_native::packet::Envelope;

use super::control::{MessageKind, Note};
use super::landing::Landing;
use super::offers::Offer;
use super::together::Shared;
use super::{lock, Engine, Receiving};
use crate::data::Data;

/// The destination of fragments.
pub struct Streaming {
    receiving: Arc<Receiving>,
    of: Of,
}

enum Of {
    Whole(Whole),
    /// The chunks of a message that both sides copy, to contiguous memory.
    Chunks(Data, Shared),
}

/// A message all of whose bytes come so.
struct Whole {
    envelope: Envelope,
    length: usize,
    come: usize,
    landing: Landing,
}

impl Streaming {
    fn of_message(receiving: &Arc<Receiving>, envelope: Envelope, length: usize) -> Streaming {
        let landing = Landing::of(receiving, length);
        let of = Of::Whole(Whole { envelope, length, come: 0, landing });
        Streaming { receiving: receiving.clone(), of }
    }

    pub(super) fn of_chunks(receiving: &Arc<Receiving>, to: Data, shared: Shared) -> Streaming {
        Streaming { receiving: receiving.clone(), of: Of::Chunks(to, shared) }
    }

    /// Take a fragment. True if that was the last one of the message.
    fn take(&mut self, at: usize, payload: Payload<'_>) -> bool {
        let (Of::Whole(Whole { landing: Landing { to, .. }, .. }) | Of::Chunks(to, _)) = &self.of;
        let (start, room) = (to.contiguous().expect("it is contiguous"), to.len());
        if at < room {
            // SAFETY: `at` is less than `room`, so all is written inside of the message's memory.
            self.receiving.write(|| unsafe { payload.copy(start.add(at), room - at) });
        }
        match &mut self.of {
            Of::Whole(whole) => {
                whole.come += payload.len();
                whole.come >= whole.length
            }
            Of::Chunks(_, shared) => {
                shared.claim().copied();
                false
            }
        }
    }

    fn finish(self) {
        let Streaming { receiving, of } = self;
        let Of::Whole(Whole { envelope, length, mut landing, .. }) = of else { return };
        landing.finish(&receiving);
        receiving.finish(&envelope, length);
    }
}

impl Engine {
    /// Make the sender stream the bytes.
    pub(super) fn pull(&self, receiving: &Arc<Receiving>, envelope: &Envelope, offer: &Offer) {
        let note = Note::of(envelope);
        let key = self.stream_to(Streaming::of_message(receiving, *envelope, offer.length));
        self.send_control(MessageKind::Pull, note.rank, note.number, i64::from(key), &[]);
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

//! Sealing: nobody but the receiver reads or changes what a process sends to one of another site.
//!
//! AES-256-GCM (NIST SP 800-38D) under a key for each ordered pair of processes, derived from a
//! secret of the world (HKDF, RFC 5869). A process's uid is chosen at random when it joins, so no
//! two pairs of processes have the same key, and a counter for each pair is a nonce that never
//! repeats. What is sent again is the same sealed text.
//!
//! Nothing is negotiated, so the first message can go with the first packet of a connection.
//! Counters and numbers inside the frames expose replays. The price: somebody who learns the
//! world's key later can read what was recorded before. (Within a site ZeroMQ seals each connection
//! under keys of its own, and frames are clear.)

use ::ring::aead::{Aad, LessSafeKey, Nonce, UnboundKey, AES_256_GCM, NONCE_LEN};
use ::ring::hkdf::{Prk, Salt, HKDF_SHA256};

use super::{Header, Inner, HEADER, INNER, LARGEST, LARGEST_CLEAR, TAG};

/// A secret, from which the keys of all pairs are derived.
#[derive(Clone)]
pub struct Secret(Prk);

impl Secret {
    /// The secret of processes, from the world's key.
    pub fn of_world(key: &[u8]) -> Secret {
        Secret(Salt::new(HKDF_SHA256, b"sfm frames 1").extract(key))
    }

    /// The secret of processes and gateways, from what they share (gateway_key.rs).
    pub fn of_gateways(key: &[u8]) -> Secret {
        Secret(Salt::new(HKDF_SHA256, b"sfm links 1").extract(key))
    }

    /// The key of one direction of a pair.
    fn key(&self, sender: u128, receiver: u128) -> LessSafeKey {
        let info = [sender.to_le_bytes(), receiver.to_le_bytes()].concat();
        let info = [&info[..]];
        let derived = self.0.expand(&info, &AES_256_GCM).expect("32 bytes are few enough");
        LessSafeKey::new(UnboundKey::from(derived))
    }

    pub fn sealer(&self, sender: u128, receiver: u128) -> Sealer {
        self.sealer_from(sender, receiver, 1)
    }

    /// A sealer whose pair may have been sealed for before: the caller knows that no counter from
    /// `first` on was used. Nanoseconds since 1970 satisfy this.
    pub fn sealer_from(&self, sender: u128, receiver: u128, first: u64) -> Sealer {
        Sealer { key: Some(self.key(sender, receiver)), next: first }
    }

    pub fn opener(&self, sender: u128, receiver: u128) -> Opener {
        Opener(Some(self.key(sender, receiver)))
    }
}

/// Seals for one receiver, or writes clear frames.
pub struct Sealer {
    key: Option<LessSafeKey>,
    next: u64,
}

impl Sealer {
    /// Writes clear frames, to a process of the same site.
    pub fn clear() -> Sealer {
        Sealer { key: None, next: 1 }
    }

    /// Bytes of the largest body.
    pub fn largest(&self) -> usize {
        if self.key.is_some() {
            LARGEST
        } else {
            LARGEST_CLEAR
        }
    }

    /// Seal a frame: `header` except its length and counter, `inner`, and `length` bytes of body
    /// that `fill` writes.
    pub fn seal(
        &mut self,
        header: &Header,
        inner: &Inner,
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Vec<u8> {
        let counter = self.next;
        self.next += 1;
        let text = INNER + length;
        let tag = if self.key.is_some() { TAG } else { 0 };
        let mut frame = Vec::with_capacity(HEADER + text + tag);
        frame.resize(HEADER + text, 0);
        let (length, clear) = ((text + tag) as u32, self.key.is_none());
        Header { length, counter, clear, ..*header }.write(&mut frame);
        inner.write(&mut frame[HEADER..]);
        fill(&mut frame[HEADER + INNER..]);
        if let Some(key) = &self.key {
            let aad = authenticated(&frame[..HEADER]);
            let tag = key
                .seal_in_place_separate_tag(nonce(counter), Aad::from(aad), &mut frame[HEADER..])
                .expect("a frame is short enough");
            frame.extend_from_slice(tag.as_ref());
        }
        frame
    }
}

/// Opens what one sender has sealed for one receiver, or reads clear frames.
pub struct Opener(Option<LessSafeKey>);

impl Opener {
    /// Reads clear frames, from a process of the same site.
    pub fn clear() -> Opener {
        Opener(None)
    }

    /// The front and the body of a frame, decrypted in place. None if this sender has not sealed it
    /// for this receiver, if it is invalid, or if it is clear and must not be, or the reverse.
    pub fn open<'a>(&self, header: &Header, frame: &'a mut [u8]) -> Option<(Inner, &'a mut [u8])> {
        if header.clear != self.0.is_none() {
            return None;
        }
        let (front, text) = frame.split_at_mut_checked(HEADER)?;
        let text = match &self.0 {
            Some(key) => {
                let aad = Aad::from(authenticated(front));
                key.open_in_place(nonce(header.counter), aad, text).ok()?
            }
            None => text,
        };
        let inner = Inner::read(text)?;
        Some((inner, &mut text[INNER..]))
    }
}

/// The header without the field that gateways change.
fn authenticated(header: &[u8]) -> [u8; HEADER] {
    let mut clear: [u8; HEADER] = header.try_into().expect("a header");
    clear[5] = 0;
    clear
}

fn nonce(counter: u64) -> Nonce {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 8..].copy_from_slice(&counter.to_le_bytes());
    Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::super::{tests::header, FrameKind};
    use super::*;

    const INNER_HEADER: Inner = Inner { kind: FrameKind::Data, flag: true, number: 5, arrived: 6 };

    fn sealed(secret: &Secret) -> (Header, Vec<u8>) {
        let mut sealer = secret.sealer(header().sender, header().receiver);
        let frame = sealer.seal(&header(), &INNER_HEADER, 5, |body| body.copy_from_slice(b"hello"));
        (Header::read(&frame).unwrap(), frame)
    }

    #[test]
    fn the_receiver_opens_a_sealed_frame() {
        let secret = Secret::of_world(b"sixteen bytes...");
        let (read, mut frame) = sealed(&secret);
        assert_eq!(read.frame(), frame.len());
        assert!(!frame.windows(5).any(|part| part == b"hello"));
        frame[5] -= 1; // a hop
        let opener = secret.opener(read.sender, read.receiver);
        let (inner, body) = opener.open(&read, &mut frame).unwrap();
        assert_eq!((inner, &*body), (INNER_HEADER, &b"hello"[..]));
    }

    #[test]
    fn changed_frames_and_others_frames_are_not_opened() {
        let secret = Secret::of_world(b"sixteen bytes...");
        let (read, frame) = sealed(&secret);
        let opener = secret.opener(read.sender, read.receiver);
        for at in [6, 8, 12, 24, 40, 56, HEADER, HEADER + 20, frame.len() - 1] {
            let mut changed = frame.clone();
            changed[at] ^= 1;
            assert!(opener.open(&read, &mut changed).is_none(), "{at}");
        }
        let others = [
            secret.opener(read.receiver, read.sender),
            Secret::of_world(b"another secret..").opener(read.sender, read.receiver),
            Secret::of_gateways(b"sixteen bytes...").opener(read.sender, read.receiver),
        ];
        for other in others {
            assert!(other.open(&read, &mut frame.clone()).is_none());
        }
    }

    #[test]
    fn clear_frames_are_read_only_where_they_are_expected() {
        let secret = Secret::of_world(b"sixteen bytes...");
        let mut sealer = Sealer::clear();
        let mut frame =
            sealer.seal(&header(), &INNER_HEADER, 5, |body| body.copy_from_slice(b"hello"));
        let read = Header::read(&frame).unwrap();
        assert_eq!((read.frame(), read.clear), (frame.len(), true));
        assert!(secret.opener(read.sender, read.receiver).open(&read, &mut frame).is_none());
        let opened = Opener::clear().open(&read, &mut frame).unwrap();
        assert_eq!((opened.0, &*opened.1), (INNER_HEADER, &b"hello"[..]));
        let (read, mut frame) = sealed(&secret);
        assert!(Opener::clear().open(&read, &mut frame).is_none());
    }

    #[test]
    fn no_two_texts_are_sealed_alike() {
        let secret = Secret::of_world(b"sixteen bytes...");
        let mut sealer = secret.sealer(1, 2);
        let mut seal = || sealer.seal(&header(), &INNER_HEADER, 0, |_| {});
        assert_ne!(seal(), seal());
    }
}

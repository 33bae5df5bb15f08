//! Pairs of keys for CURVE, ZeroMQ's encryption.

use std::ffi::c_char;
use std::io::Result;

use ::ring::hmac;

use super::library::Library;
use super::socket::{Bytes, Number, Socket};

/// Half a pair.
pub type Key = [u8; 32];

/// Letters of a key in Z85, with the zero at the end.
const LETTERS: usize = 41;

#[derive(Clone)]
pub struct Pair {
    pub public: Key,
    pub secret: Key,
}

impl Pair {
    /// A fresh pair.
    pub fn new(library: &Library) -> Result<Pair> {
        let (mut public, mut secret) = ([0; LETTERS], [0; LETTERS]);
        // SAFETY: room for 40 letters and a zero each.
        let done = unsafe { (library.curve_keypair)(public.as_mut_ptr(), secret.as_mut_ptr()) };
        library.done(done)?;
        Ok(Pair { public: decode(library, &public), secret: decode(library, &secret) })
    }

    /// The pair with this secret half.
    pub fn of_secret(library: &Library, secret: Key) -> Result<Pair> {
        let (mut letters, mut public) = ([0; LETTERS], [0; LETTERS]);
        // SAFETY: 32 bytes become 40 letters and a zero, for which there is room; and so the second.
        library.done(unsafe {
            (library.z85_encode)(letters.as_mut_ptr(), secret.as_ptr(), secret.len());
            (library.curve_public)(public.as_mut_ptr(), letters.as_ptr())
        })?;
        Ok(Pair { public: decode(library, &public), secret })
    }

    /// The pair that all derive who have this key, for one purpose: others give unrelated pairs.
    /// (HMAC-SHA256, RFC 2104.)
    pub fn derived(library: &Library, key: &[u8], purpose: &[u8]) -> Result<Pair> {
        let secret = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), purpose);
        Pair::of_secret(library, secret.as_ref().try_into().expect("32 bytes"))
    }

    /// Make a binding socket encrypt, and ask the context's authenticator who may connect.
    pub fn serve(&self, socket: &mut Socket) -> Result<()> {
        socket.set(Number::CurveServer, 1)?;
        socket.set_bytes(Bytes::CurveSecretKey, &self.secret)?;
        socket.set_bytes(Bytes::ZapDomain, b"sfm")
    }

    /// Make a connecting socket show this pair, and talk only to the server with that public half.
    pub fn connect(&self, socket: &mut Socket, server: &Key) -> Result<()> {
        socket.set_bytes(Bytes::CurveServerKey, server)?;
        socket.set_bytes(Bytes::CurvePublicKey, &self.public)?;
        socket.set_bytes(Bytes::CurveSecretKey, &self.secret)
    }
}

fn decode(library: &Library, letters: &[c_char; LETTERS]) -> Key {
    let mut key = [0; 32];
    // SAFETY: the letters end with a zero, and 40 of them become 32 bytes, for which there is room.
    unsafe { (library.z85_decode)(key.as_mut_ptr(), letters.as_ptr()) };
    key
}

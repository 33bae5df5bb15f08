//! The keys of a world, and the pairs that are derived from them.

use std::ffi::CString;

use sfm_native::wire::zmq::{Library, Pair};

use crate::error::{Error, Kind, Result};

/// Bytes that a key needs, and of one that is used as it is.
const SHORTEST: usize = 16;
const FULL: usize = 32;

/// What a process shows a directory server when it comes.
#[derive(Clone, Copy)]
pub enum Secret<'a> {
    /// The world's key, which opens all.
    World(&'a [u8]),
    /// The key that gateways get (`frame::gateway_key`), which opens less.
    Gateways(&'a [u8]),
}

impl Secret<'_> {
    /// The key that is used for this one; see `stretched`.
    pub fn key(self) -> Result<Vec<u8>> {
        match self {
            Secret::World(key) => stretched(key),
            Secret::Gateways(key) => Ok(key.to_vec()),
        }
    }

    /// The pair that all derive who have `key`. Nothing on the wire helps to find the key.
    pub fn pair(self, library: &Library, key: &[u8]) -> Result<Pair> {
        let purpose: &[u8] = match self {
            Secret::World(_) => b"sfm directory",
            Secret::Gateways(_) => b"sfm gateways' directory",
        };
        check_key(key)?;
        Pair::derived(library, key, purpose).map_err(|error| Error::system("no key pair", &error))
    }
}

/// Refuse a key that is empty, or so short that it could be guessed.
pub fn check_key(key: &[u8]) -> Result<()> {
    match key.len() {
        SHORTEST.. => Ok(()),
        length => {
            let text = format!(
                "the world's key has {length} bytes, but needs {SHORTEST}: without a secret \
                 anybody could join and run code here. With ipyparallel's CURVE, set \
                 IPP_SESSION_KEY too"
            );
            Err(Error::new(Kind::WorldAccess, text))
        }
    }
}

/// The key that is used for a given one: short ones, which somebody may have made up, stretched.
///
/// Who has recorded what passes gateways can try keys. For one of fewer than 32 bytes each try costs
/// what it costs here: some 50 ms, and 16 MB (scrypt, RFC 7914).
pub fn stretched(key: &[u8]) -> Result<Vec<u8>> {
    check_key(key)?;
    if key.len() >= FULL {
        return Ok(key.to_vec());
    }
    let mut long = vec![0; FULL];
    let effort = scrypt::Params::new(14, 8, 1, FULL).expect("numbers that scrypt allows");
    scrypt::scrypt(key, b"sfm world", &effort, &mut long).expect("a length that scrypt allows");
    Ok(long)
}

/// libzmq, which has the curve of the keys: see `Library::load`.
pub fn library(candidates: &[CString]) -> Result<&'static Library> {
    let failed = |why| Error::new(Kind::World, format!("no key pair: {why}"));
    Library::load(candidates).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digits(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Processes of one version derive the same; the values are those of Python's hashlib.
    #[test]
    fn short_keys_are_stretched_and_shorter_ones_refused() {
        assert_eq!(
            digits(&stretched(b"sixteen letters!").unwrap()),
            "416eae10cdc901d3d93c9f592b45777c83eab8fa09127504301e015d7d456132"
        );
        assert_eq!(stretched(&[7; 32]).unwrap(), [7; 32]);
        let refused = stretched(&[7; 15]).unwrap_err();
        assert_eq!(refused.kind, Kind::WorldAccess);
        assert!(refused.text.starts_with("the world's key has 15 bytes, but needs 16"));
    }

    #[test]
    fn each_purpose_has_its_pair() {
        let Ok(library) = library(&[]) else { return }; // no libzmq here
        let key: Vec<u8> = (0..32).collect();
        let [world, gateways] = [Secret::World(&key), Secret::Gateways(&key)]
            .map(|secret| secret.pair(library, &key).unwrap());
        let secret = "5003885368da7ab38ae6284af9ed25947374cba3558bf2dee545050aa01ad9b0";
        let public = "bf9b2d222a4807a0a34386e16b5cd99182a245ec26660d3e8ceecbf7dd4be173";
        assert_eq!((digits(&world.secret), digits(&world.public)), (secret.into(), public.into()));
        assert_ne!(gateways.public, world.public);
        assert!(Secret::World(b"").pair(library, b"").is_err());
    }
}

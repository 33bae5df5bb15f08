//! The key that gateways get instead of the world's.
//!
//! Both parts are derived from the world's key (HKDF, RFC 5869), and reveal nothing about it: a
//! secret that processes and gateways share, under which they seal what they say to each other; and
//! the public half of the pair with which processes sign (Ed25519, RFC 8032), so that a gateway
//! knows a process from somebody who has only what gateways have.

use ::ring::hkdf::{KeyType, Salt, HKDF_SHA256};
use ::ring::signature::{Ed25519KeyPair, KeyPair, UnparsedPublicKey, ED25519};

const PART: usize = 32;
/// Bytes of the gateway key.
pub const GATEWAY_KEY: usize = 2 * PART;
/// Bytes of a signature.
pub const SIGNATURE: usize = 64;

/// The gateway key: the shared secret, and the public half.
pub fn gateway_key(world: &[u8]) -> [u8; GATEWAY_KEY] {
    let mut key = [0; GATEWAY_KEY];
    key[..PART].copy_from_slice(&derived(world, b"key"));
    key[PART..].copy_from_slice(signer(world).public_key().as_ref());
    key
}

/// The pair with which the world's processes sign.
pub fn signer(world: &[u8]) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&derived(world, b"sign")).expect("any 32 bytes are a seed")
}

/// The secret that processes and gateways share.
pub fn shared(key: &[u8; GATEWAY_KEY]) -> &[u8] {
    &key[..PART]
}

/// Whether a process has signed this text.
pub fn is_signed(key: &[u8; GATEWAY_KEY], text: &[u8], signature: &[u8]) -> bool {
    UnparsedPublicKey::new(&ED25519, &key[PART..]).verify(text, signature).is_ok()
}

fn derived(world: &[u8], purpose: &[u8]) -> [u8; PART] {
    struct Part;
    impl KeyType for Part {
        fn len(&self) -> usize {
            PART
        }
    }
    let (extracted, purpose) = (Salt::new(HKDF_SHA256, b"sfm gateways").extract(world), [purpose]);
    let expanded = extracted.expand(&purpose, Part).expect("32 bytes are few enough");
    let mut part = [0; PART];
    expanded.fill(&mut part).expect("as long as asked for");
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateways_recognise_what_processes_sign_and_nothing_else() {
        let (key, other) = (gateway_key(b"one world's"), gateway_key(b"another's"));
        let signature = signer(b"one world's").sign(b"a text");
        assert_eq!(signature.as_ref().len(), SIGNATURE);
        assert!(is_signed(&key, b"a text", signature.as_ref()));
        assert!(!is_signed(&other, b"a text", signature.as_ref()));
        assert!(!is_signed(&key, b"another text", signature.as_ref()));
        assert!(!is_signed(&key, b"a text", b""));
        assert_ne!(shared(&key), shared(&other));
    }

    /// Processes and gateways of one version of the format derive the same.
    #[test]
    fn the_derivation_stays_as_it_is() {
        let world: Vec<u8> = (0..32).collect();
        let key: String =
            shared(&gateway_key(&world)).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(key, "e22b838fee4c3c0aa0d333e27f3c6952ae4e0264669a09841ad6d4d8ee3ec3cd");
    }
}

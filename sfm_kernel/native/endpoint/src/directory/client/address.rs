//! The address of a directory server, as it is printed, and given to processes and gateways.

use sfm_native::net::parse_key;
use sfm_native::wire::zmq::Key;

use crate::error::{Error, Kind, Result};
use crate::wait_facts::quoted;

/// Where a server listens, and by which key it is recognised there: "tcp://10.0.0.7:41234/" and the
/// key in 64 hexadecimal digits, which neither a shell nor a JSON file takes for something else.
#[derive(Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// "tcp://10.0.0.7:41234".
    pub place: String,
    /// The public half of the server's pair. Whoever listens there and does not have the secret half
    /// is not talked to.
    pub public: Key,
}

impl ServerAddress {
    pub fn parse(text: &str) -> Result<ServerAddress> {
        let rest = text.strip_prefix("tcp://").unwrap_or_default();
        let (ends, key) = match rest.split_once('/') {
            Some((ends, key)) => (ends, Some(key)),
            None => (rest, None),
        };
        let is_host = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
        let is_port =
            |port: &str| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit());
        let is_place =
            ends.rsplit_once(':').is_some_and(|(host, port)| is_host(host) && is_port(port));
        let is_key =
            |key: &&str| key.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        let (place, public) = (format!("tcp://{ends}"), key.filter(is_key).and_then(parse_key));
        match (is_place, key, public) {
            (true, Some(_), Some(public)) => Ok(ServerAddress { place, public }),
            (true, None, _) => Err(Error::new(
                Kind::World,
                format!(
                    "the address {place} lacks the directory server's public key: copy all that \
                     `python -m sfm_kernel.directory` prints for SFM_DIRECTORY, with the 64 digits \
                     at its end"
                ),
            )),
            _ => Err(Error::new(
                Kind::World,
                format!(
                    "{} is no address of a directory server: 'tcp://IP:port/KEY' is needed, as \
                     `python -m sfm_kernel.directory` prints it",
                    quoted(text)
                ),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_place_and_a_key() {
        let digits = "0f".repeat(32);
        for place in ["tcp://10.0.0.7:41234", "tcp://[::1]:5", "tcp://*:0"] {
            let found = ServerAddress::parse(&format!("{place}/{digits}")).unwrap();
            assert_eq!(found, ServerAddress { place: place.into(), public: [15; 32] });
            let bare = ServerAddress::parse(place).unwrap_err();
            assert!(bare.text.contains("lacks the directory server's public key: copy all"));
        }
    }

    #[test]
    fn anything_else_is_none() {
        let digits = "0f".repeat(32);
        for text in [
            "",
            "/",
            "tcp:/é/",
            "ipc://a:1",
            "tcp://:1",
            "tcp://a b:1",
            "tcp://a:",
            "tcp://a:1x",
            "tcp://a:1/",
            &format!("tcp://a:1/{}", &digits[1..]),
            &format!("tcp://a:1/{digits}/"),
            &format!("tcp://a:1/{}", digits.to_uppercase()),
            &format!(" tcp://a:1/{digits}"),
        ] {
            let found = ServerAddress::parse(text).unwrap_err();
            assert!(found.text.contains("is no address"), "{text:?}: {found}");
            assert_eq!(found.kind, Kind::World);
        }
    }
}

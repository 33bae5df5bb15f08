//! A restarted firewall: it resets connections whose beginning it has not seen.
//!
//! Until `forget` is called for the first time it passes everything unread. After that, it drops a
//! packet of a connection whose SYN it has not seen since, and sends both ends a reset in the name
//! of the other, with the sequence number that each expects (RFC 9293, 3.10.7.4; RFC 5961 ignores
//! others). So a silent end learns of it when it, or its peer, sends something.

use std::collections::HashSet;

const TCP: u8 = 6;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A packet without data: an IP and a TCP header.
const BARE_LENGTH: usize = 40;
pub type Bare = [u8; BARE_LENGTH];

#[derive(Default)]
pub struct Firewall {
    /// Both ends, the smaller first: address and port.
    known: Option<HashSet<[[u8; 6]; 2]>>,
    /// Packets of connections that it has dropped.
    pub dropped: u64,
}

impl Firewall {
    pub fn forget(&mut self) {
        self.known = Some(HashSet::new());
    }

    /// None: the packet may pass. Otherwise it is dropped, and these two are sent: one back to its
    /// sender, one on to its receiver.
    pub fn inspect(&mut self, packet: &[u8]) -> Option<[Bare; 2]> {
        let known = self.known.as_mut()?;
        let segment = Segment::of(packet)?;
        if segment.flags & RST != 0 {
            return None;
        }
        let mut ends = [segment.from, segment.to];
        ends.sort_unstable();
        if segment.flags & (SYN | ACK) == SYN {
            known.insert(ends);
        }
        if known.contains(&ends) {
            return None;
        }
        self.dropped += 1;
        Some(segment.resets())
    }
}

/// The fields of a TCP packet that the firewall reads.
struct Segment {
    from: [u8; 6],
    to: [u8; 6],
    sequence: u32,
    acknowledged: u32,
    flags: u8,
    /// Sequence numbers that it takes: its bytes, and one each for SYN and FIN.
    length: u32,
}

impl Segment {
    fn of(packet: &[u8]) -> Option<Segment> {
        let first = *packet.first()?;
        let header = usize::from(first & 15) * 4;
        if first >> 4 != 4 || header < 20 || *packet.get(9)? != TCP {
            return None;
        }
        let tcp = packet.get(header..)?;
        let data = usize::from(tcp.get(12)? >> 4) * 4;
        let flags = *tcp.get(13)?;
        let end = |address: usize, port: usize| {
            let mut end = [0; 6];
            end[..4].copy_from_slice(&packet[address..address + 4]);
            end[4..].copy_from_slice(&tcp[port..port + 2]);
            end
        };
        let number =
            |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        let both = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        Some(Segment {
            from: end(12, 0),
            to: end(16, 2),
            sequence: number(4),
            acknowledged: number(8),
            flags,
            length: tcp.len().saturating_sub(data) as u32 + both,
        })
    }

    fn resets(&self) -> [Bare; 2] {
        let after = self.sequence.wrapping_add(self.length);
        let expected = if self.flags & ACK != 0 { self.acknowledged } else { 0 };
        let backward = bare(self.to, self.from, expected, after, RST | ACK);
        let forward = bare(self.from, self.to, self.sequence, self.acknowledged, RST | ACK);
        [backward, forward]
    }
}

fn bare(from: [u8; 6], to: [u8; 6], sequence: u32, acknowledged: u32, flags: u8) -> Bare {
    let mut packet = [0; BARE_LENGTH];
    packet[0] = 0x45; // version 4, 5 words
    packet[3] = BARE_LENGTH as u8;
    packet[8] = 64; // remaining hops
    packet[9] = TCP;
    packet[12..16].copy_from_slice(&from[..4]);
    packet[16..20].copy_from_slice(&to[..4]);
    packet[20..22].copy_from_slice(&from[4..]);
    packet[22..24].copy_from_slice(&to[4..]);
    packet[24..28].copy_from_slice(&sequence.to_be_bytes());
    packet[28..32].copy_from_slice(&acknowledged.to_be_bytes());
    packet[32] = 5 << 4; // words
    packet[33] = flags;
    // TCP's checksum also covers both addresses, the protocol and the length (RFC 9293, 3.1).
    let about = u32::from(TCP) + (BARE_LENGTH - 20) as u32;
    let sum = checksum(&packet[12..], about);
    packet[36..38].copy_from_slice(&sum);
    let sum = checksum(&packet[..20], 0);
    packet[10..12].copy_from_slice(&sum);
    packet
}

/// RFC 1071.
fn checksum(bytes: &[u8], start: u32) -> [u8; 2] {
    let words = bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(two[1]));
    let mut sum = start + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!(sum as u16)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: [u8; 6] = [10, 1, 0, 1, 0x10, 0];
    const B: [u8; 6] = [10, 2, 0, 1, 0, 80];

    fn with_data(mut packet: Bare, bytes: usize) -> Vec<u8> {
        packet[2..4].copy_from_slice(&((BARE_LENGTH + bytes) as u16).to_be_bytes());
        [&packet[..], &vec![7; bytes]].concat()
    }

    #[test]
    fn everything_passes_before_it_forgets() {
        assert!(Firewall::default().inspect(&bare(A, B, 1, 2, ACK)).is_none());
    }

    #[test]
    fn a_connection_from_before_is_reset_with_the_numbers_that_both_expect() {
        let mut firewall = Firewall::default();
        firewall.forget();
        let [backward, forward] =
            firewall.inspect(&with_data(bare(A, B, 1000, 50, ACK), 500)).unwrap();
        let (backward, forward) = (Segment::of(&backward).unwrap(), Segment::of(&forward).unwrap());
        assert_eq!((backward.from, backward.to, backward.flags & RST), (B, A, RST));
        assert_eq!((backward.sequence, backward.acknowledged), (50, 1500));
        assert_eq!((forward.from, forward.to, forward.flags & RST), (A, B, RST));
        assert_eq!((forward.sequence, forward.acknowledged), (1000, 50));
        assert_eq!(firewall.dropped, 1);
    }

    #[test]
    fn a_new_connection_passes_in_both_directions() {
        let mut firewall = Firewall::default();
        firewall.forget();
        assert!(firewall.inspect(&bare(A, B, 1, 0, SYN)).is_none());
        assert!(firewall.inspect(&bare(B, A, 9, 2, SYN | ACK)).is_none());
        assert!(firewall.inspect(&bare(A, B, 2, 10, ACK)).is_none());
        firewall.forget();
        assert!(firewall.inspect(&bare(B, A, 10, 2, ACK)).is_some());
        assert!(firewall.inspect(&bare(A, B, 2, 10, RST)).is_none(), "no answer to a reset");
    }

    #[test]
    fn other_packets_pass_and_damaged_ones_do_no_harm() {
        let mut firewall = Firewall::default();
        firewall.forget();
        let complete = with_data(bare(A, B, 1, 2, ACK), 3);
        let mut other = complete.clone();
        other[9] = 17; // UDP
        assert!(firewall.inspect(&other).is_none());
        for length in 0..BARE_LENGTH - 6 {
            assert!(firewall.inspect(&complete[..length]).is_none(), "{length}");
        }
        for at in 0..BARE_LENGTH {
            for byte in 0..=255 {
                let mut damaged = complete.clone();
                damaged[at] = byte;
                firewall.inspect(&damaged);
            }
        }
    }

    #[test]
    fn checksums_are_those_of_the_standard() {
        // The sum over a packet with its checksum is all ones, so its complement is 0.
        let packet = bare(A, B, 0x1234_5678, 0x9abc_def0, RST);
        assert_eq!(checksum(&packet[..20], 0), [0, 0]);
        assert_eq!(checksum(&packet[12..], u32::from(TCP) + 20), [0, 0]);
    }
}

//! What stands in front of every message: one frame is this header and a body.

/// kind u8, flag u8, sender u128, receiver u128, number u64, zeros. So many that the body is aligned
/// to 16 bytes, as malloc would: libzmq has 40 of its own in front of a large frame.
pub const HEADER: usize = 56;

/// What a message is. The numbers are the wire format.
///
/// `Data`, `First`, `Part` and `Abort` are numbered together, from 1, for each pair of processes;
/// a gap shows that messages were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Body: a packet. Flag: acknowledge as soon as it is received.
    Data = b'D',
    /// Body: length of a large packet (u64), and its first part.
    First = b'F',
    /// Body: the next part. Flag, of the last one: as above.
    Part = b'P',
    /// The packet that has begun will not be completed.
    Abort = b'X',
    /// Body: the sender's address; number: that of its last numbered message. Sent whenever a
    /// line comes up.
    Greet = b'G',
    /// Number: what was received since the beginning, in the units of `Outflow`. Flag: on the
    /// library's account.
    Ack = b'A',
    /// The sender waits for room: acknowledge what is received next, or already was.
    Ask = b'Q',
    /// Number: how many parts of large packets were taken in since the beginning.
    Took = b'T',
    /// There is no memory for the packet whose first part has this number.
    Refused = b'R',
    /// The sender is about to close, and waits for `Done`: all before has arrived.
    Bye = b'B',
    Done = b'E',
    /// Messages are missing: nothing more of this process is accepted.
    Broken = b'L',
}

impl Kind {
    fn from_u8(byte: u8) -> Option<Kind> {
        use Kind::*;
        [Data, First, Part, Abort, Greet, Ack, Ask, Took, Refused, Bye, Done, Broken]
            .into_iter()
            .find(|&kind| kind as u8 == byte)
    }
}

/// The uid of the receiver is there because a port may be given to a new process as soon as its
/// owner died; the sender's, because a ROUTER's own name for a connection changes when it is made
/// anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub kind: Kind,
    pub flag: bool,
    pub sender: u128,
    pub receiver: u128,
    pub number: u64,
}

impl Header {
    pub fn write(&self, to: &mut [u8]) {
        to[0] = self.kind as u8;
        to[1] = u8::from(self.flag);
        to[2..18].copy_from_slice(&self.sender.to_le_bytes());
        to[18..34].copy_from_slice(&self.receiver.to_le_bytes());
        to[34..42].copy_from_slice(&self.number.to_le_bytes());
        to[42..HEADER].fill(0);
    }

    /// The header of a frame; None if it is none of ours.
    pub fn read(frame: &[u8]) -> Option<Header> {
        let head = frame.get(..HEADER)?;
        Some(Header {
            kind: Kind::from_u8(head[0])?,
            flag: head[1] != 0,
            sender: u128::from_le_bytes(head[2..18].try_into().ok()?),
            receiver: u128::from_le_bytes(head[18..34].try_into().ok()?),
            number: u64::from_le_bytes(head[34..42].try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back() {
        let header =
            Header { kind: Kind::Took, flag: true, sender: 1 << 100, receiver: 7, number: 1 << 60 };
        let mut frame = [9; HEADER + 3];
        header.write(&mut frame);
        assert_eq!(Header::read(&frame), Some(header));
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let mut frame = [b'D'; HEADER];
        assert!(Header::read(&frame).is_some());
        assert_eq!(Header::read(&frame[1..]), None);
        frame[0] = b'?';
        assert_eq!(Header::read(&frame), None);
        assert_eq!(Header::read(&[]), None);
    }
}

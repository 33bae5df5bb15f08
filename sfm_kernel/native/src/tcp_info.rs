//! The kernel's state of a TCP connection, and its congestion control.
//!
//! The kernel's `struct tcp_info` (include/uapi/linux/tcp.h) only grows at its end, and
//! getsockopt(2) returns its length: a field that an older kernel lacks is None. The structs of the
//! C library and of the crate libc end long before the kernel's, so this file lists the offsets.
//!
//! The congestion control in use may differ from the one that was set: if it may not be chosen
//! (`tcp_allowed_congestion_control`), or the network namespace is new, the kernel's errors do not
//! name the cause, and a route can override it. So it is read back after it was set.

use std::ffi::CStr;
use std::io;
use std::os::fd::RawFd;

/// The unit of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets, bytes, counts, bytes per second: reported as it is.
    Plain,
    /// Both times are reported as seconds.
    Milliseconds,
    Microseconds,
}

/// A field: its offset and its length.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    offset: usize,
    bytes: usize,
    unit: Unit,
}

/// Makes a constant of each field, and the list of them all.
macro_rules! fields {
    ($($(#[$about:meta])* $field:ident: $name:literal, $offset:literal, $bytes:literal, $unit:ident;)*) => {
        $(
            $(#[$about])*
            pub const $field: Field =
                Field { name: $name, offset: $offset, bytes: $bytes, unit: Unit::$unit };
        )*

        /// All reported fields, in the kernel's order.
        pub const FIELDS: &[Field] = &[$($field),*];
    };
}

fields! {
    STATE: "state", 0, 1, Plain;
    /// 0 open, 1 disorder, 2 congestion window reduced, 3 recovery, 4 loss.
    CA_STATE: "ca_state", 1, 1, Plain;
    RETRANSMITS: "retransmits", 2, 1, Plain;
    /// Unanswered window probes.
    PROBES: "probes", 3, 1, Plain;
    BACKOFF: "backoff", 4, 1, Plain;
    RTO: "rto_s", 8, 4, Microseconds;
    SND_MSS: "snd_mss", 16, 4, Plain;
    UNACKED: "unacked", 24, 4, Plain;
    SACKED: "sacked", 28, 4, Plain;
    LOST: "lost", 32, 4, Plain;
    RETRANS: "retrans", 36, 4, Plain;
    LAST_DATA_SENT: "last_data_sent_s", 44, 4, Milliseconds;
    LAST_DATA_RECV: "last_data_recv_s", 52, 4, Milliseconds;
    LAST_ACK_RECV: "last_ack_recv_s", 56, 4, Milliseconds;
    PMTU: "pmtu", 60, 4, Plain;
    RTT: "rtt_s", 68, 4, Microseconds;
    RTTVAR: "rttvar_s", 72, 4, Microseconds;
    /// Packets; 0x7fffffff as long as nothing was lost.
    SND_SSTHRESH: "snd_ssthresh", 76, 4, Plain;
    /// Packets.
    SND_CWND: "snd_cwnd", 80, 4, Plain;
    REORDERING: "reordering", 88, 4, Plain;
    TOTAL_RETRANS: "total_retrans", 100, 4, Plain;
    /// Bytes per second; all ones: not limited.
    PACING_RATE: "pacing_rate", 104, 8, Plain;
    BYTES_ACKED: "bytes_acked", 120, 8, Plain;
    BYTES_RECEIVED: "bytes_received", 128, 8, Plain;
    SEGS_OUT: "segs_out", 136, 4, Plain;
    SEGS_IN: "segs_in", 140, 4, Plain;
    NOTSENT_BYTES: "notsent_bytes", 144, 4, Plain;
    MIN_RTT: "min_rtt_s", 148, 4, Microseconds;
    /// Bytes per second.
    DELIVERY_RATE: "delivery_rate", 160, 8, Plain;
    BUSY_TIME: "busy_time_s", 168, 8, Microseconds;
    RWND_LIMITED: "rwnd_limited_s", 176, 8, Microseconds;
    SNDBUF_LIMITED: "sndbuf_limited_s", 184, 8, Microseconds;
    DELIVERED: "delivered", 192, 4, Plain;
    BYTES_SENT: "bytes_sent", 200, 8, Plain;
    BYTES_RETRANS: "bytes_retrans", 208, 8, Plain;
    DSACK_DUPS: "dsack_dups", 216, 4, Plain;
    REORD_SEEN: "reord_seen", 220, 4, Plain;
    RCV_OOOPACK: "rcv_ooopack", 224, 4, Plain;
    /// Bytes: what the peer has room for.
    SND_WND: "snd_wnd", 228, 4, Plain;
    RCV_WND: "rcv_wnd", 232, 4, Plain;
    TOTAL_RTO: "total_rto", 240, 2, Plain;
    TOTAL_RTO_RECOVERIES: "total_rto_recoveries", 242, 2, Plain;
    TOTAL_RTO_TIME: "total_rto_time_s", 244, 4, Milliseconds;
}

/// Larger than any kernel's struct today.
const ROOM: usize = 512;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Number(u64),
    Seconds(f64),
}

/// The kernel's knowledge of a connection at one moment.
#[derive(Clone)]
pub struct TcpInfo {
    bytes: [u8; ROOM],
    length: usize,
}

impl TcpInfo {
    /// Read it of a TCP socket; an error for any other socket.
    pub fn read(socket: RawFd) -> io::Result<TcpInfo> {
        let mut bytes = [0; ROOM];
        let length = option(socket, libc::TCP_INFO, &mut bytes)?;
        Ok(TcpInfo { bytes, length })
    }

    /// The number as the kernel has it; None if the kernel is too old.
    pub fn number(&self, field: Field) -> Option<u64> {
        let field_bytes =
            self.bytes[..self.length].get(field.offset..field.offset + field.bytes)?;
        Some(match *field_bytes {
            [a] => a.into(),
            [a, b] => u16::from_ne_bytes([a, b]).into(),
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            _ => u64::from_ne_bytes(field_bytes.try_into().ok()?),
        })
    }

    /// The value, in seconds if it is a time.
    pub fn value(&self, field: Field) -> Option<Value> {
        self.number(field).map(|number| match field.unit {
            Unit::Plain => Value::Number(number),
            Unit::Milliseconds => Value::Seconds(number as f64 / 1e3),
            Unit::Microseconds => Value::Seconds(number as f64 / 1e6),
        })
    }
}

/// Linux' TCP_CA_NAME_MAX.
const MAX_NAME: usize = 16;

/// The name of the congestion control that a TCP socket uses, such as "cubic".
pub fn congestion(socket: RawFd) -> io::Result<String> {
    let mut name = [0; MAX_NAME + 1]; // the last byte stays 0
    option(socket, libc::TCP_CONGESTION, &mut name[..MAX_NAME])?;
    let name = CStr::from_bytes_until_nul(&name).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(name.to_string_lossy().into_owned())
}

/// Set the congestion control of a TCP socket, and verify it by reading it back.
///
/// Errors: ENOENT, this kernel has none of that name; EPERM, it may not be chosen here; EOPNOTSUPP,
/// the kernel has accepted it and uses another.
pub fn set_congestion(socket: RawFd, name: &str) -> io::Result<()> {
    // SAFETY: the kernel reads so many bytes from there.
    let failed = unsafe {
        let length = name.len() as libc::socklen_t;
        let (level, option) = (libc::IPPROTO_TCP, libc::TCP_CONGESTION);
        libc::setsockopt(socket, level, option, name.as_ptr().cast(), length)
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    if congestion(socket)? != name {
        return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
    }
    Ok(())
}

/// Read a TCP option into `room`; returns the number of bytes.
fn option(socket: RawFd, option: libc::c_int, room: &mut [u8]) -> io::Result<usize> {
    let mut length = room.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most so many bytes there.
    let failed = unsafe {
        let buffer = room.as_mut_ptr().cast();
        libc::getsockopt(socket, libc::IPPROTO_TCP, option, buffer, &mut length)
    };
    if failed == 0 {
        Ok(length as usize)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;

    use super::*;

    /// Two connected sockets.
    pub fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn the_kernel_counts_what_a_connection_carries() {
        const BYTES: u64 = 10_000;
        let (mut near, mut far) = pair();
        near.write_all(&[7; BYTES as usize]).unwrap();
        far.read_exact(&mut [0; BYTES as usize]).unwrap();
        far.write_all(&[1]).unwrap();
        near.read_exact(&mut [0]).unwrap();
        // The answer brought the acknowledgement along.
        let (sender, receiver) =
            (TcpInfo::read(near.as_raw_fd()).unwrap(), TcpInfo::read(far.as_raw_fd()).unwrap());
        let known = |info: &TcpInfo, field| info.number(field).unwrap();
        assert_eq!(known(&sender, STATE), 1, "established");
        assert!(known(&sender, SND_CWND) >= 1 && known(&sender, SND_MSS) >= 500);
        assert!(known(&sender, RTT) > 0);
        assert_eq!(known(&sender, TOTAL_RETRANS), 0);
        // What follows came with Linux 4.1 (bytes_acked) to 4.19 (bytes_sent). The kernel counts the
        // SYN as a byte that was acknowledged.
        assert!((BYTES..=BYTES + 1).contains(&known(&sender, BYTES_ACKED)));
        assert_eq!(known(&sender, BYTES_SENT), BYTES);
        assert_eq!(known(&receiver, BYTES_RECEIVED), BYTES);
        assert_eq!(known(&sender, NOTSENT_BYTES), 0);
        assert!(known(&sender, MIN_RTT) <= known(&sender, RTT) * 8);
        let Some(Value::Seconds(rtt)) = sender.value(RTT) else { panic!("a time") };
        assert!((rtt - known(&sender, RTT) as f64 * 1e-6).abs() < 1e-9);
    }

    #[test]
    fn fields_lie_one_after_the_other() {
        for two in FIELDS.windows(2) {
            assert!(two[0].offset + two[0].bytes <= two[1].offset, "{two:?}");
            assert_eq!(two[1].offset % two[1].bytes, 0, "{:?}", two[1]);
        }
    }

    #[test]
    fn fields_that_an_older_kernel_lacks_are_missing() {
        let (near, _other) = pair();
        let mut info = TcpInfo::read(near.as_raw_fd()).unwrap();
        info.length = 104; // Linux 3.10
        assert!(info.number(TOTAL_RETRANS).is_some());
        let newer = FIELDS.iter().filter(|field| field.offset >= 104);
        assert!(newer.clone().count() > 20);
        for field in newer {
            assert_eq!(info.number(*field), None, "{field:?}");
        }
        info.length = RTT.offset + 2;
        assert_eq!(info.value(RTT), None, "half of it");
    }

    #[test]
    fn a_congestion_control_is_set_and_read_back() {
        let (near, far) = pair();
        set_congestion(near.as_raw_fd(), "reno").unwrap(); // in every kernel
        assert_eq!(congestion(near.as_raw_fd()).unwrap(), "reno");
        let before = congestion(far.as_raw_fd()).unwrap();
        let unknown = set_congestion(far.as_raw_fd(), "no such").unwrap_err();
        assert!(matches!(unknown.raw_os_error(), Some(libc::ENOENT | libc::EPERM)), "{unknown}");
        assert_eq!(congestion(far.as_raw_fd()).unwrap(), before);
    }

    #[test]
    fn other_sockets_are_refused() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(TcpInfo::read(socket.as_raw_fd()).is_err());
        assert!(congestion(socket.as_raw_fd()).is_err());
        assert_eq!(congestion(-1).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}

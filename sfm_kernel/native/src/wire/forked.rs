//! What a forked child gives up: its copies of the parent's connections, which would make the parent
//! look alive after its death.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicI32, Ordering};

/// An array of numbers, because a fork may happen while another thread holds any lock.
struct Noted([AtomicI32; MOST]);
const MOST: usize = 4096;

/// Descriptors of the core's own sockets.
static DESCRIPTORS: Noted = Noted::new();
/// Ports of this process's ends of libzmq's connections, which are found by them: libzmq opens and
/// closes descriptors as it likes.
static PORTS: Noted = Noted::new();

impl Noted {
    const fn new() -> Noted {
        Noted([const { AtomicI32::new(-1) }; MOST])
    }

    fn note(&'static self, number: i32) -> Note {
        let free = |entry: &&AtomicI32| {
            entry.compare_exchange(-1, number, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        };
        Note(self.0.iter().find(free)) // if there is no room, a child keeps this one
    }

    fn has(&self, number: i32) -> bool {
        self.0.iter().any(|entry| entry.load(Ordering::SeqCst) == number)
    }
}

/// Noted until it is dropped.
pub struct Note(Option<&'static AtomicI32>);

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(entry) = self.0 {
            entry.store(-1, Ordering::SeqCst);
        }
    }
}

pub fn note_descriptor(descriptor: RawFd) -> Note {
    DESCRIPTORS.note(descriptor)
}

pub fn note_port(port: u16) -> Note {
    PORTS.note(port.into())
}

/// In a forked child: give up its copies. The descriptors stay taken, so closing them later harms
/// nobody.
pub fn abandon_all() {
    // SAFETY: the path is a constant that ends with a zero.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
    let open = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open = open.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    for descriptor in open.collect::<Vec<RawFd>>() {
        let port = local_port(descriptor);
        if DESCRIPTORS.has(descriptor) || port.is_some_and(|port| PORTS.has(port.into())) {
            // SAFETY: as above; a descriptor that is closed stays closed or becomes this.
            unsafe { libc::dup3(null, descriptor, libc::O_CLOEXEC) };
        }
    }
    // SAFETY: the descriptor was opened above, and nothing else closes it.
    unsafe { libc::close(null) };
}

/// The port of this end of a TCP connection, or of a listening socket; None for all others.
fn local_port(descriptor: RawFd) -> Option<u16> {
    // SAFETY: plain numbers, of which zero is one.
    let mut name: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_in6>() as u32;
    // SAFETY: room for an address of this length.
    let done = unsafe { libc::getsockname(descriptor, (&raw mut name).cast(), &mut length) };
    let is_ip = [libc::AF_INET, libc::AF_INET6].contains(&i32::from(name.sin6_family));
    (done == 0 && is_ip).then(|| u16::from_be(name.sin6_port)) // where sockaddr_in has it, too
}

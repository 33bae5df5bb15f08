//! A path that is cut and restored: in a network namespace, which only root may make.

use super::*;

/// The second gateway's address, on the loopback interface of the namespace.
const FAR_ADDRESS: [u8; 4] = [10, 9, 9, 9];

/// An interface request of the kernel (struct ifreq), with one of its values.
#[repr(C)]
struct Request<T> {
    name: [u8; 16],
    value: T,
    rest: [u8; 24],
}

fn request<T>(socket: i32, operation: libc::Ioctl, name: &str, value: T) -> bool {
    let mut request = Request { name: [0; 16], value, rest: [0; 24] };
    request.name[..name.len()].copy_from_slice(name.as_bytes());
    // SAFETY: the kernel reads and writes at most the 40 bytes of a struct ifreq.
    unsafe { libc::ioctl(socket, operation, &raw mut request) == 0 }
}

/// The loopback interface in this thread's network namespace, with a second address.
struct LoopbackPath(i32);

impl LoopbackPath {
    fn new() -> Option<LoopbackPath> {
        // SAFETY: the system calls take numbers only, and touch no memory.
        unsafe {
            if libc::unshare(libc::CLONE_NEWNET) != 0 {
                return None;
            }
            let path =
                LoopbackPath(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0));
            assert!(path.set_up("lo", true));
            path.restore();
            Some(path)
        }
    }

    fn set_up(&self, name: &str, up: bool) -> bool {
        let flags = if up { libc::IFF_UP as i16 } else { 0 };
        request(self.0, libc::SIOCSIFFLAGS as libc::Ioctl, name, flags)
    }

    fn restore(&self) {
        let mut address = [0u8; 16];
        address[0] = libc::AF_INET as u8;
        address[4..8].copy_from_slice(&FAR_ADDRESS);
        assert!(request(self.0, libc::SIOCSIFADDR as libc::Ioctl, "lo:1", address));
    }

    fn cut(&self) {
        assert!(self.set_up("lo:1", false));
    }
}

impl Drop for LoopbackPath {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and nothing else closes it.
        unsafe { libc::close(self.0) };
    }
}

#[test]
fn a_restored_path_is_used_again_and_senders_are_notified() {
    // In a separate thread, because the namespace stays with it.
    let cut = || {
        let Some(path) = LoopbackPath::new() else {
            // SAFETY: the system call takes no arguments, and cannot fail.
            let is_root = unsafe { libc::geteuid() } == 0;
            assert!(!is_root || std::env::var_os("SFM_CI").is_none(), "root, and no namespace");
            return println!("skipped: no network namespace can be made");
        };
        let (a, b) = (
            gateway("A"),
            Gateway::start(Options { address: "0.0.0.0:0".parse().unwrap(), ..options("B") })
                .unwrap(),
        );
        let of_b = std::net::SocketAddr::from((FAR_ADDRESS, b.address.port()));
        a.peers(vec![Listed { uid: b.uid, site: "B".into(), address: of_b }]);
        wait_until(|| connections_up(&a) == 1);
        let mut near = Client::process(&a, "A", 1);
        let mut far = Client::process(&b, "B", 2);
        for round in 0..2u8 {
            near.send(2, "B", &[round]);
            assert_eq!(far.frame(), (1, vec![round]));
            path.cut();
            near.send(2, "B", b"into the gap");
            assert_eq!(near.drop_reason(), Reason::NoRoute);
            let unreachable = number(&a, "no gateway for that site");
            near.send(2, "B", b"as well");
            wait_until(|| number(&a, "no gateway for that site") > unreachable);
            path.restore();
            // Once they know that there is a route again, sender and receiver find out what is
            // missing. (What was in the old connection may come or not.)
            while near.drop_reason() != Reason::PathBroke {}
            near.resume(2, "B", b"after it");
            while far.frame().1 != b"after it" {}
        }
    };
    std::thread::spawn(cut).join().unwrap();
}

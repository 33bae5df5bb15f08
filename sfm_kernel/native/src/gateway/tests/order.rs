//! The order of frames, and which senders are held up.

use std::os::fd::AsRawFd;

use super::*;

const BULK: usize = 50_000;
/// Large frames: more than one process may have waiting at the gateway.
const MANY: usize = 220;

/// A gateway, and a connected one with a small receive buffer that does not read.
fn bottleneck(scheduler: Scheduler) -> (Gateway, Client) {
    let a = Gateway::start(Options { scheduler, ..options("A") }).unwrap();
    let other = Client::member(&a, "B", 50, Role::Gateway(0));
    let size: libc::c_int = 16 << 10;
    // SAFETY: the kernel reads a number that lives until the call returns.
    let failed = unsafe {
        let (fd, to) = (other.stream.as_raw_fd(), (&raw const size).cast());
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, to, 4)
    };
    assert_eq!(failed, 0);
    (a, other)
}

/// The number of large frames that come before a small one, which is sent when the large ones fill
/// everything before the bottleneck.
fn before_the_small_one(scheduler: Scheduler) -> usize {
    let (a, mut other) = bottleneck(scheduler);
    let (mut bulk, mut small) = (Client::process(&a, "A", 1), Client::process(&a, "A", 2));
    let sender = std::thread::spawn(move || {
        for _ in 0..MANY {
            bulk.send(9, "B", &[0; BULK]);
        }
        bulk
    });
    // More of its frames wait than one process may have: the gateway has stopped reading it.
    wait_until(|| a.status().contains("\"held_up\":true"));
    small.send(9, "B", b"small");
    // It still reads others.
    wait_until(|| a.status().contains("\"waiting_frames\":1,"));
    let mut before = 0;
    while other.frame().0 == 1 {
        before += 1;
    }
    for _ in before..MANY {
        assert_eq!(other.frame().0, 1);
    }
    drop(sender.join());
    before
}

#[test]
fn a_small_message_passes_large_ones_as_the_scheduler_says() {
    let fifo = before_the_small_one(Scheduler::Fifo);
    let in_turn = before_the_small_one(Scheduler::RoundRobin);
    let smallest = before_the_small_one(Scheduler::Smallest);
    // In fifo the small frame waits for as much as a process may have at the gateway; otherwise
    // only for what is in the sockets.
    let per_process = super::super::HELD_OF_ONE.1 / BULK;
    assert!(fifo >= per_process, "{fifo}");
    assert!(
        in_turn < fifo - per_process / 2 && smallest < fifo - per_process / 2,
        "{in_turn} {smallest} {fifo}"
    );
}

#[test]
fn a_held_up_process_hears_that_its_gateway_lives() {
    let (a, _other) = bottleneck(Scheduler::RoundRobin);
    let mut bulk = Client::process(&a, "A", 1);
    let mut writer = bulk.stream.try_clone().unwrap();
    let frame = bulk.sealed(9, "B", Class::Bulk, &[0; BULK]);
    let sender = std::thread::spawn(move || while writer.write_all(&frame).is_ok() {});
    wait_until(|| a.status().contains("\"held_up\":true"));
    assert_eq!(bulk.receive(), Received::Control(FrameKind::Beat, 0));
    bulk.stream.shutdown(std::net::Shutdown::Both).unwrap();
    sender.join().unwrap();
}

#[test]
fn a_receiver_that_does_not_read_holds_up_nobody() {
    let (a, b) = connected_pair(options("A"));
    let mut stopped = Client::process(&b, "B", 2);
    let mut awake = Client::process(&b, "B", 3);
    let mut near = Client::process(&a, "A", 1);
    let mut bodies = 0;
    // The gateway keeps what it may keep for a process, then notifies the sender.
    while number(&b, "full") == 0 {
        near.send(2, "B", &[0; BULK]);
        bodies += 1;
    }
    assert!(bodies * BULK > super::super::FOR_PROCESS);
    near.send(3, "B", b"to one who reads");
    assert_eq!(awake.frame(), (1, b"to one who reads".to_vec()));
    assert_eq!(near.drop_reason(), Reason::Full);
    // As soon as there is room again, the sender may resume.
    let reader = std::thread::spawn(move || {
        while stopped.frame().1 != b"again" {}
        stopped.frame().1
    });
    while near.drop_reason() != Reason::PathBroke {}
    // Messages that follow a loss are useless.
    let full = number(&b, "full");
    near.send(2, "B", b"too early");
    wait_until(|| number(&b, "path broke") == 1);
    assert_eq!(number(&b, "full"), full);
    near.resume(2, "B", b"again");
    near.send(2, "B", b"next");
    assert_eq!(reader.join().unwrap(), b"next");
}

#[test]
fn an_emulated_path_keeps_order_and_says_what_it_cannot_show() {
    let emulated = |site| Options {
        delay: Duration::from_millis(5),
        limit: Some(20_000_000),
        ..options(site)
    };
    let (a, b) = connected_pair(emulated("A"));
    assert!(a.status().contains("congestion control cannot be seen"));
    assert!(b.status().contains("\"emulation\":null"));
    let mut near = Client::process(&a, "A", 1);
    let mut far = Client::process(&b, "B", 2);
    for number in 0..50u8 {
        near.send(2, "B", &vec![number; 1 + usize::from(number) * 1000]);
    }
    for number in 0..50u8 {
        assert_eq!(far.frame().1[0], number);
    }
}

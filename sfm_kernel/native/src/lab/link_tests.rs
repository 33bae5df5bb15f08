//! The link between two datagram sockets, which keep packets apart as the devices do.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use super::*;

fn device() -> (UnixDatagram, OwnedFd) {
    let (ours, its) = UnixDatagram::pair().unwrap();
    its.set_nonblocking(true).unwrap();
    ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (ours, its.into())
}

fn link(settings: Settings) -> (UnixDatagram, UnixDatagram, Link) {
    let ((a, first), (b, second)) = (device(), device());
    (a, b, Link::start([first, second], [settings; 2], 1).unwrap())
}

fn received(socket: &UnixDatagram) -> Vec<u8> {
    let mut room = [0; 2000];
    let length = socket.recv(&mut room).unwrap();
    room[..length].to_vec()
}

#[test]
fn packets_go_there_and_back_in_order_and_late_at_most() {
    let before = monotonic();
    let (a, b, link) = link(Settings { delay: 3_000_000, ..Settings::default() });
    for number in 0..100 {
        a.send(&[number; 700]).unwrap();
        if number % 2 == 0 {
            b.send(&[number; 3]).unwrap();
        }
    }
    (0..100).for_each(|number| assert_eq!(received(&b), [number; 700]));
    (0..50).for_each(|number| assert_eq!(received(&a), [number * 2; 3]));
    assert!(monotonic() - before >= 3_000_000);
    let report = link.report();
    let [forward, backward] = report.counts;
    assert_eq!((forward.delivered, forward.delivered_bytes, backward.delivered), (100, 70_000, 50));
    assert_eq!((report.late.count(), report.refused, report.failure), (150, 0, None));
    link.clear();
    assert_eq!(link.report().counts, [Counts::default(); 2]);
}

#[test]
fn a_cut_keeps_nothing_and_ends() {
    let (a, b, link) = link(Settings::default());
    let up = link.settings(Direction::Forward);
    link.set(Direction::Forward, Settings { down: true, ..up });
    a.send(&[1]).unwrap();
    b.send(&[2]).unwrap();
    assert_eq!(received(&a), [2], "the other direction goes on");
    while link.report().counts[0].cut == 0 {
        std::thread::yield_now();
    }
    link.set(Direction::Forward, up);
    a.send(&[3]).unwrap();
    assert_eq!(received(&b), [3]);
}

#[test]
fn a_lost_device_is_reported() {
    let (a, b, link) = link(Settings::default());
    drop((a, b));
    // A socket only reports that nothing has come; reading a directory fails as a lost device does.
    assert_eq!(link.report().failure, None);
    let folder = || OwnedFd::from(File::open("/").unwrap());
    let broken = Link::start([folder(), folder()], [Settings::default(); 2], 1).unwrap();
    while broken.report().failure.is_none() {
        std::thread::yield_now();
    }
}

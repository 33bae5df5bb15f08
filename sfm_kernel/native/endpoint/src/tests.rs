//! Endpoints of one process in their own world.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sfm_native::calls::{deadline, Deadline};
use sfm_native::packet::{u64_at, Builder, Kind as Value};
use sfm_native::sync::lock;

use crate::receive::{peek, take, wait, Expected, Template};
use crate::{Endpoint, JoinRequest, Kind, Name, Program};

/// A fresh private folder.
pub fn folder() -> PathBuf {
    let path = std::env::temp_dir().join(format!("sfm-test-{:032x}", crate::random().unwrap()));
    std::fs::create_dir(&path).unwrap();
    path
}

/// The folder of all worlds of this test: the environment is the process's.
struct Root(PathBuf, #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Root {
    fn new() -> Root {
        static TEST: Mutex<()> = Mutex::new(());
        let turn = lock(&TEST);
        let root = folder().join("worlds");
        std::env::set_var("SFM_DIR", &root);
        Root(root, turn)
    }

    fn join(&self, name: Option<&str>) -> Endpoint {
        let request = JoinRequest { name: name.map(Name::from), ..JoinRequest::default() };
        Endpoint::join("w", &request, None, std::sync::Arc::new(Program)).unwrap()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(std::fs::read_dir(&self.0).unwrap().count(), 0, "the world has gone");
        }
        std::fs::remove_dir_all(self.0.parent().unwrap()).unwrap();
    }
}

fn send(from: &Endpoint, dest: &Name, tag: i64, data: &[u8], buffering: u64) -> crate::Result<()> {
    let route = from.route(dest)?;
    let mut builder = Builder::new();
    builder.extend(route.ends(), 2);
    builder.attribute("tag", Value::Int, &[&tag.to_le_bytes()]).unwrap();
    let nth = builder.buffer(data.as_ptr(), data.len());
    builder.attribute("data", Value::BigBytes, &[&nth.to_le_bytes()]).unwrap();
    // SAFETY: the data outlives the call.
    let packet = unsafe { builder.finish() };
    route.send(from, &packet, buffering)
}

fn tagged(tag: i64) -> Template {
    Template { attributes: vec![("tag".into(), Expected::Int(tag))], src: None }
}

fn seconds(seconds: u64) -> Deadline {
    deadline(Some(Duration::from_secs(seconds)))
}

#[test]
fn two_endpoints_find_each_other_and_exchange_messages() {
    let root = Root::new();
    let (a, b) = (root.join(None), root.join(Some("B")));
    assert_eq!((a.member().rank, b.member().rank, a.size().unwrap()), (Some(0), Some(1), 2));
    let large = vec![7u8; 5 << 20];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for tag in 0..1000 {
                send(&a, &Name::from("B"), tag, b"small", 1 << 26).unwrap();
            }
            send(&a, &Name::Rank(1), 2000, &large, 1 << 26).unwrap();
        });
        for tag in [999, 0, 500] {
            let request = tagged(tag);
            let taken = wait(&b, &request, seconds(60)).unwrap().unwrap();
            assert_eq!(u64_at(taken.packet.find("tag").unwrap().value, 0), tag as u64);
        }
        let request = Template { src: Some(Name::Rank(0)), ..tagged(2000) };
        let taken = wait(&b, &request, seconds(60)).unwrap().unwrap();
        assert_eq!(taken.packet.buffer_bytes(0), large);
    });
    let request = tagged(-1);
    assert!(!peek(&b, &request).unwrap());
    assert!(take(&b, &request).unwrap().is_none());
    assert!(wait(&b, &request, deadline(Some(Duration::from_millis(1)))).unwrap().is_none());
}

#[test]
fn a_message_to_oneself_is_received_by_any_thread() {
    let root = Root::new();
    let endpoint = root.join(Some("one"));
    std::thread::scope(|scope| {
        scope.spawn(|| send(&endpoint, &Name::from("one"), 1, &[1; 1 << 20], 0).unwrap());
        let request = Template { src: Some("one".into()), ..tagged(1) };
        assert!(wait(&endpoint, &request, seconds(60)).unwrap().is_some());
    });
}

#[test]
fn an_unknown_peer_is_named_and_a_departed_one_is_lost() {
    let root = Root::new();
    let a = root.join(Some("A"));
    let unknown = send(&a, &Name::from("B"), 1, b"", 1).unwrap_err();
    assert_eq!(unknown.kind, Kind::UnknownName);
    assert!(unknown.text.contains("'A'"), "{unknown}");
    let b = root.join(Some("B"));
    send(&a, &Name::from("B"), 1, b"", 1 << 20).unwrap();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            let request = Template { src: Some("B".into()), ..tagged(1) };
            wait(&a, &request, seconds(60)).map(|_| ())
        });
        let blocked = scope.spawn(|| send(&a, &Name::from("B"), 2, b"", 0));
        std::thread::sleep(Duration::from_millis(300));
        b.leave();
        assert_eq!(waits.join().unwrap().unwrap_err().kind, Kind::PeerLost);
        assert_eq!(blocked.join().unwrap().unwrap_err().kind, Kind::PeerLost);
    });
    assert_eq!(send(&a, &Name::from("B"), 3, b"", 1).unwrap_err().kind, Kind::PeerLost);
    // Another process takes its place.
    let _again = root.join(Some("B"));
    send(&a, &Name::from("B"), 4, b"", 1 << 20).unwrap();
}

#[test]
fn a_rank_belongs_to_the_process_that_took_it_over() {
    let root = Root::new();
    let (a, b) = (root.join(Some("A")), root.join(Some("B")));
    let from_rank = |tag| Template { src: Some(Name::Rank(0)), ..tagged(tag) };
    send(&a, &Name::from("B"), 1, b"", 1 << 20).unwrap();
    assert!(wait(&b, &from_rank(1), seconds(60)).unwrap().is_some());
    a.leave();
    let c = root.join(Some("C"));
    assert_eq!(c.member().rank, Some(0));
    std::thread::scope(|scope| {
        // C's first message is yet to come.
        let waits =
            scope.spawn(|| wait(&b, &from_rank(2), seconds(60)).map(|taken| taken.is_some()));
        std::thread::sleep(Duration::from_millis(300));
        send(&c, &Name::from("B"), 2, b"", 1 << 20).unwrap();
        assert!(waits.join().unwrap().unwrap());
    });
}

#[test]
fn waiting_ends_when_the_endpoint_is_closed_or_the_program_wants_it() {
    let root = Root::new();
    let a = Arc::new(root.join(Some("A")));
    for (end, kind) in [
        (Endpoint::interrupt as fn(&Endpoint), Kind::Interrupted),
        (Endpoint::leave as fn(&Endpoint), Kind::Closed),
    ] {
        let other = a.clone();
        let waits =
            std::thread::spawn(move || wait(&other, &tagged(1), None).map(|_| ()).unwrap_err());
        while !a.core().shared().activity_is(sfm_native::segment::Activity::Receiving) {
            std::thread::yield_now();
        }
        end(&a);
        assert_eq!(waits.join().unwrap().kind, kind);
    }
}

#[test]
fn others_are_waited_for() {
    let root = Root::new();
    let a = root.join(None);
    assert!(!a.wait_for(&[Name::Rank(1)], deadline(Some(Duration::from_millis(5)))).unwrap());
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| a.wait_for(&["B".into(), Name::Rank(0)], None).unwrap());
        let b = root.join(Some("B"));
        assert!(waits.join().unwrap());
        drop(b);
    });
}

#[test]
fn a_forked_child_is_not_in_its_parent_s_world() {
    let root = Root::new();
    let a = root.join(Some("A"));
    // SAFETY: the child ends without running anything of the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let closed =
            send(&a, &Name::from("A"), 1, b"", 1).is_err_and(|error| error.kind == Kind::Closed);
        a.leave();
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!closed)) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    assert!(a.members().unwrap().iter().any(|member| a.alive(member)));
}

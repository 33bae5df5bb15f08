use std::path::PathBuf;

use super::*;
use crate::random::Random;
use crate::segment::{self, Segment, OBSERVER_SHIFT, PREPARED};
use crate::trace::EventKind;

const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

/// A segment in its own folder, which is removed with it.
struct Fixture {
    segment: Segment,
    folder: PathBuf,
    path: PathBuf,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let folder =
            std::env::temp_dir().join(format!("sfm-observed-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.seg");
        let segment = segment::create(&path, 5, r#"{"name": "A"}"#).unwrap();
        let mut about = crate::packet::Builder::new();
        // SAFETY: the packet has no buffers outside of itself that would have to live.
        let about = unsafe { about.finish() }.to_packet().unwrap();
        for peer in 1..=20u64 {
            segment.peers.of(peer).sent.fetch_add(peer, Ordering::Relaxed);
            segment.record_sent(peer, 1, 100, about.contiguous().unwrap());
        }
        let code = crate::code_location::register("7\tid\t0\tf\tfile.py".into());
        crate::code_location::set_current(crate::code_location::location(code, 3));
        segment.begin_call(Activity::Receiving, "recv(tag=1)", "{}", 0);
        segment.summary.write("0\t10\ttag\u{1f}1\n");
        Fixture { segment, folder, path }
    }

    fn observed(&self) -> ObservedSegment {
        ObservedSegment::open(&self.path).unwrap()
    }

    fn cut(&self, length: usize) {
        let file = OpenOptions::new().write(true).open(&self.path).unwrap();
        file.set_len(length as u64).unwrap();
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_segment_is_read_from_outside() {
    let fixture = Fixture::new("read");
    let observed = fixture.observed();
    let state = observed.state().unwrap();
    assert_eq!((state.uid, state.activity, state.call), (5, "blocked in recv", 1));
    assert_eq!(state.waits.as_deref(), Some("recv(tag=1)"));
    assert_eq!(state.info.as_deref(), Some(r#"{"name": "A"}"#));
    assert_eq!(state.code.as_deref(), Some("7\tid\t0\tf\tfile.py"));
    assert_eq!(state.peers.len(), 20);
    let (events, next, texts) = observed.events(0).unwrap();
    assert_eq!((events.len() as u64, texts.len()), (next, 1));
    let sent = events.iter().filter(|(_, event, _)| event.kind == EventKind::Sent);
    assert_eq!(sent.count(), 20);
    assert_eq!(observed.events(next - 1).unwrap().0.len(), 1);
    assert_eq!(observed.call(), Ok(("blocked in recv", 1)));
    let before = observed.pulse().unwrap();
    assert_eq!(observed.pulse().unwrap(), before);
    fixture.segment.end_call();
    assert_ne!(observed.pulse().unwrap(), before);
    assert!(!observed.is_dead());
}

#[test]
fn a_call_is_ended_once_its_judgement_is_committed_and_its_process_rung() {
    let fixture = Fixture::new("judge");
    let (observed, segment) = (fixture.observed(), &fixture.segment);
    let long = "because ".repeat(2000);
    let judged = || segment.judged.load(Ordering::Acquire);
    for judgement in ["why", long.as_str()] {
        assert_eq!(observed.prepare(7, judgement), Ok(false));
        assert_eq!((observed.commit(1), observed.abort(1)), (Ok(false), Ok(false)));
        assert_eq!((observed.prepare(1, judgement), judged()), (Ok(true), 1 | PREPARED));
        assert_eq!((observed.abort(1), judged()), (Ok(true), 0));
        assert_eq!(observed.prepare(1, judgement), Ok(true));
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| segment.bell.0.sleep(LIMIT, || judged() == 1));
            assert_eq!(observed.commit(1), Ok(true));
            assert_eq!(sleeper.join().unwrap(), crate::bell::Woken::Rung);
        });
        let written = segment.judgement.read().unwrap();
        assert_eq!(written, judgement[..judgement.len().min(8192)]);
        // Another observer comes too late.
        assert_eq!((observed.prepare(1, "late"), observed.abort(1)), (Ok(true), Ok(false)));
        assert_eq!((observed.commit(1), judged()), (Ok(true), 1));
        segment.judged.store(0, Ordering::Release);
    }
}

#[test]
fn an_observer_prepares_nothing_that_another_commits_meanwhile() {
    let fixture = Fixture::new("observers");
    let (first, second) = (fixture.observed(), fixture.observed());
    assert_eq!(first.prepare(1, "first"), Ok(true));
    let lock = first.lock_judged().unwrap();
    std::thread::scope(|scope| {
        let late = scope.spawn(|| second.prepare(1, "second"));
        std::thread::sleep(std::time::Duration::from_millis(20));
        first.set_judged(1).unwrap(); // as `commit` does
        drop(lock);
        assert_eq!(late.join().unwrap(), Ok(true));
    });
    assert_eq!(second.abort(1), Ok(false));
    let segment = &fixture.segment;
    assert_eq!(segment.judged.load(Ordering::Acquire), 1);
    assert_eq!(segment.judgement.read().as_deref(), Some("first"));
}

#[test]
fn an_observer_aborts_nothing_that_another_has_prepared() {
    let fixture = Fixture::new("prepared");
    let (observed, segment) = (fixture.observed(), &fixture.segment);
    let [first, second] = [5, 6].map(|observer| observer << OBSERVER_SHIFT | 1);
    assert_eq!(observed.prepare(first, "first"), Ok(true));
    assert_eq!(observed.prepare(second, "second"), Ok(false));
    assert_eq!((observed.abort(second), observed.commit(second)), (Ok(false), Ok(false)));
    assert_eq!(segment.judged.load(Ordering::Acquire), first | PREPARED);
    assert_eq!(segment.judgement.read().as_deref(), Some("first"));
    // The first one gives up, and the second one ends the call.
    assert_eq!((observed.abort(first), observed.prepare(second, "second")), (Ok(true), Ok(true)));
    assert_eq!((observed.commit(second), segment.judged.load(Ordering::Acquire)), (Ok(true), 1));
    assert_eq!(segment.judgement.read().as_deref(), Some("second"));
}

#[test]
fn a_request_wakes_the_owner_and_differs_from_the_last_one() {
    let fixture = Fixture::new("request");
    let (observed, segment) = (fixture.observed(), &fixture.segment);
    let requests = || segment.requests.load(Ordering::SeqCst);
    for _ in 0..100 {
        let (before, version) = (requests(), segment.summary.version());
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| segment.network.0.sleep(LIMIT, || requests() != before));
            assert_eq!(observed.request_summary(), Ok(version));
            assert_eq!(sleeper.join().unwrap(), crate::bell::Woken::Rung);
        });
        assert_ne!(requests(), before);
    }
}

#[test]
fn a_segment_that_is_cut_kills_no_observer() {
    let fixture = Fixture::new("cut");
    let observed = fixture.observed();
    let size = size_of::<Shared>();
    for length in [size - 1, size / 2, FRONT.end, FRONT.end - 1, HEAD.end - 1, 4096, 100, 1, 0] {
        fixture.cut(size);
        let _ = observed.request_summary(); // its page of bells is mapped
        fixture.cut(length);
        assert_eq!(observed.state().is_ok(), length > FRONT.end, "{length}");
        assert_eq!(observed.pulse().is_ok(), length >= HEAD.end, "{length}");
        let _ = (
            observed.events(0),
            observed.request_summary(),
            observed.prepare(1, "why"),
            observed.is_awaited(0),
        );
    }
}

#[test]
fn a_damaged_segment_is_read_or_refused() {
    let fixture = Fixture::new("damage");
    let observed = fixture.observed();
    let mut intact = vec![0; size_of::<Shared>()];
    observed.file().read_exact_at(&mut intact, 0).unwrap();
    let (mut chance, rounds) = Random::new(100, 23_500);
    let interesting = [HEAD.end, FRONT.end, offset_of!(Shared, trace) + 40 * 128, intact.len()];
    for _ in 0..rounds {
        let mut damaged = intact.clone();
        let end = interesting[chance.below(interesting.len())];
        chance.damage(&mut damaged, end, 2000);
        observed.file().write_all_at(&damaged, 0).unwrap();
        if let Ok((events, ..)) = observed.events(chance.below(30) as u64) {
            for (_, _, about) in events {
                crate::summary::summary_of(&about);
            }
        }
        let _ = (
            observed.state().is_ok(),
            observed.call(),
            observed.pulse(),
            observed.prepare(1, "why"),
            observed.request_summary(),
        );
    }
}

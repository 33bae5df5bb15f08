//! Tests of a pipe, whose clock is a number.

use super::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
const MBIT: f64 = 1e6;

fn pipe(settings: Settings) -> Pipe<u32> {
    Pipe::new(settings, 7, 0)
}

fn arrivals(pipe: &mut Pipe<u32>) -> Vec<(u64, u32)> {
    let mut arrivals = Vec::new();
    while let Some((due, packet)) = pipe.take(u64::MAX) {
        arrivals.extend(packet.ok().map(|packet| (due, packet)));
    }
    arrivals
}

#[test]
fn a_packet_takes_its_time_to_be_sent_and_the_delay() {
    let mut pipe = pipe(Settings { delay: 10 * MS, rate: 12.0 * MBIT, ..Settings::default() });
    assert!(pipe.offer(5 * MS, 1500, 1).is_none()); // 1 ms at 12 Mbit/s
    assert!(pipe.offer(5 * MS, 1500, 2).is_none());
    assert!(pipe.offer(30 * MS, 750, 3).is_none());
    assert_eq!(pipe.due(), Some(16 * MS));
    assert!(pipe.take(16 * MS - 1).is_none());
    assert_eq!(arrivals(&mut pipe), [(16 * MS, 1), (17 * MS, 2), (40 * MS + MS / 2, 3)]);
    assert_eq!((pipe.counts.delivered, pipe.counts.delivered_bytes), (3, 3750));
    assert_eq!(pipe.counts.deepest, 3000);
}

#[test]
fn without_a_rate_there_is_no_queue() {
    let mut pipe = pipe(Settings { delay: MS, queue: 0, ..Settings::default() });
    (0..100).for_each(|packet| assert!(pipe.offer(3, 1500, packet).is_none()));
    assert!(arrivals(&mut pipe).iter().all(|(due, _)| *due == MS + 3));
}

#[test]
fn a_full_queue_drops_what_comes_last_until_it_has_room_again() {
    let mut pipe = pipe(Settings { rate: 12.0 * MBIT, queue: 4500, ..Settings::default() });
    let fits = |pipe: &mut Pipe<u32>, now, packet| pipe.offer(now, 1500, packet).is_none();
    assert!((0..3).all(|packet| fits(&mut pipe, 0, packet)));
    assert_eq!(pipe.offer(0, 1500, 3), Some(3));
    assert!(pipe.offer(0, 40, 4).is_some(), "not even a small one");
    assert!(fits(&mut pipe, MS, 5));
    assert_eq!(arrivals(&mut pipe), [(MS, 0), (2 * MS, 1), (3 * MS, 2), (4 * MS, 5)]);
    assert_eq!((pipe.counts.full, pipe.counts.offered), (2, 6));
}

#[test]
fn the_rate_is_kept_under_load() {
    let mut pipe = pipe(Settings { rate: 100.0 * MBIT, queue: 64_000, ..Settings::default() });
    // Twice as much as fits, for a second.
    for packet in 0..16_667 {
        pipe.offer(u64::from(packet) * 60_000, 1500, packet);
    }
    while pipe.take(SECOND).is_some() {}
    let bits = pipe.counts.delivered_bytes as f64 * 8.0;
    assert!((99.0 * MBIT..=100.1 * MBIT).contains(&bits), "{bits}");
}

#[test]
fn loss_takes_its_share_and_the_same_for_the_same_seed() {
    let run = || {
        let mut pipe = pipe(Settings { loss: 0.01, ..Settings::default() });
        let lost: Vec<u32> =
            (0..100_000).filter_map(|packet| pipe.offer(packet.into(), 1500, packet)).collect();
        assert_eq!(pipe.counts.lost, lost.len() as u64);
        lost
    };
    let lost = run();
    assert!((800..1200).contains(&lost.len()), "{}", lost.len());
    assert_eq!(lost, run());
}

#[test]
fn lost_packets_were_in_the_queue() {
    let mut pipe = pipe(Settings { rate: 12.0 * MBIT, loss: 1.0, ..Settings::default() });
    assert!(pipe.offer(0, 1500, 1).is_some());
    pipe.set(Settings { loss: 0.0, ..pipe.settings() }, 0);
    pipe.offer(0, 1500, 2);
    assert_eq!(arrivals(&mut pipe), [(2 * MS, 2)]);
}

#[test]
fn other_peoples_packets_take_their_share_of_the_rate() {
    let settings =
        Settings { rate: 100.0 * MBIT, queue: 30_000, cross: 40.0 * MBIT, ..Settings::default() };
    let mut pipe = pipe(settings);
    for packet in 0..8_333 {
        // 100 Mbit/s, at irregular times: regular packets would take all room just when there is
        // some.
        let pause = u64::from(packet) * 7919 % 119 * 1000;
        pipe.offer(u64::from(packet) * 120_000 + pause, 1500, packet);
    }
    while pipe.take(SECOND).is_some() {}
    let others = pipe.counts.others as f64 * CROSS_PACKET * 8.0;
    let ours = pipe.counts.delivered_bytes as f64 * 8.0;
    assert!((97.0 * MBIT..=100.5 * MBIT).contains(&(others + ours)), "{others} {ours}");
    assert!(others > 20.0 * MBIT && pipe.counts.others_full > 0 && pipe.counts.full > 0);
}

#[test]
fn a_long_silence_with_other_peoples_traffic_is_no_work() {
    let mut pipe = pipe(Settings { rate: 1e9, cross: 5e8, queue: 10_000, ..Settings::default() });
    assert!(pipe.offer(1_000_000 * SECOND, 1500, 1).is_none());
    assert!(pipe.counts.others < 6_000);
}

#[test]
fn a_cut_takes_what_is_on_its_way() {
    let mut pipe = pipe(Settings { delay: 10 * MS, ..Settings::default() });
    let up = pipe.settings();
    pipe.offer(0, 100, 1);
    pipe.offer(5 * MS, 100, 2);
    pipe.set(Settings { down: true, ..up }, 6 * MS);
    assert_eq!(pipe.offer(7 * MS, 100, 3), Some(3));
    assert_eq!(pipe.take(10 * MS), Some((10 * MS, Err(1))));
    pipe.set(up, 12 * MS); // the second had not arrived yet
    assert_eq!(arrivals(&mut pipe), [(15 * MS, 2)]);
    assert_eq!((pipe.counts.cut, pipe.counts.delivered), (2, 1));
}

#[test]
fn nothing_overtakes_when_the_path_gets_shorter() {
    let mut pipe = pipe(Settings { delay: 100 * MS, ..Settings::default() });
    pipe.offer(0, 100, 1);
    pipe.set(Settings { delay: MS, ..pipe.settings() }, MS);
    pipe.offer(2 * MS, 100, 2);
    assert_eq!(arrivals(&mut pipe), [(100 * MS, 1), (100 * MS, 2)]);
}

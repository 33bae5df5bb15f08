use super::*;
use crate::packet::{Builder, Kind};
use crate::splitmix::SplitMix;
use crate::value::Scalar;

fn message(attributes: &[(&str, i64)]) -> Arc<Packet> {
    let mut builder = Builder::new();
    for (name, value) in attributes {
        builder.attribute(name, Kind::Int, &[&value.to_le_bytes()]).unwrap();
    }
    // SAFETY: the packet has no buffers outside of itself that would have to live.
    Arc::new(unsafe { builder.finish() }.to_packet().unwrap())
}

fn template<'a>(conditions: &[(&'a str, i64)]) -> Template<'a> {
    let entry = |&(name, value): &(&'a str, i64)| Condition {
        name,
        expected: Some(Scalar::Int(value)),
        never_native: false,
    };
    Template { conditions: conditions.iter().map(entry).collect(), ..Template::default() }
}

fn value(packet: &Packet, name: &str) -> i64 {
    crate::packet::u64_at(packet.find(name).unwrap().value, 0) as i64
}

/// The queue does what the paper's linear walk over a list does, whatever the order of calls.
#[test]
fn behaves_as_a_plain_list() {
    for seed in 0..60 {
        let mut random = SplitMix::new(seed);
        let mut queue = Queue::default();
        let mut list: Vec<(u64, Arc<Packet>)> = Vec::new();
        let mut out: Vec<Taken> = Vec::new();
        let mut last = None;
        let mut burst = 0;
        for _ in 0..1500 {
            if burst == 0 && random.below(100) == 0 {
                burst = 70;
            }
            let action = if burst > 0 { 0 } else { random.below(10) };
            burst = burst.max(1) - 1;
            match action {
                0..=4 => {
                    let packet = match random.below(3) {
                        0 => message(&[("a", random.below(4) as i64)]),
                        1 => message(&[
                            ("a", random.below(40) as i64),
                            ("b", random.below(3) as i64),
                        ]),
                        _ => message(&[("b", random.below(50) as i64)]),
                    };
                    list.push((queue.next_seq(), packet.clone()));
                    queue.push(packet, Ticket::default());
                }
                5 if !out.is_empty() => {
                    let taken = out.swap_remove(random.below(out.len()));
                    let position = list.partition_point(|entry| entry.0 < taken.seq);
                    list.insert(position, (taken.seq, taken.packet.clone()));
                    queue.put_back(taken);
                }
                _ => {
                    let template = match random.below(4) {
                        0 => template(&[]),
                        1 => template(&[("a", random.below(40) as i64)]),
                        2 => template(&[("b", random.below(50) as i64)]),
                        _ => template(&[
                            ("a", random.below(4) as i64),
                            ("b", random.below(3) as i64),
                        ]),
                    };
                    let (cursor, near) = match (random.below(4), last) {
                        (0, _) => (random.below(queue.next_seq() as usize) as u64, None),
                        (1, Some((seq, slot))) => (seq, Some(slot)),
                        _ => (0, None),
                    };
                    let expected = list.iter().position(|(seq, packet)| {
                        *seq > cursor && matches(&template, packet) == Some(true)
                    });
                    let found = queue.find(&template, cursor, near);
                    last = found.as_ref().map(|entry| (entry.seq, entry.slot));
                    assert_eq!(
                        found.as_ref().map(|entry| entry.seq),
                        expected.map(|position| list[position].0),
                        "seed {seed}"
                    );
                    if let (Some(candidate), true) = (found, random.below(4) > 0) {
                        list.remove(expected.unwrap());
                        out.push(queue.take(&candidate).unwrap());
                        assert!(queue.take(&candidate).is_none(), "taken once");
                    }
                }
            }
            assert_eq!(queue.len(), list.len());
        }
        let order: Vec<*const Packet> = queue.iter().map(|entry| entry as *const Packet).collect();
        let expected: Vec<*const Packet> = list.iter().map(|entry| Arc::as_ptr(&entry.1)).collect();
        assert_eq!(order, expected);
    }
}

/// The work of a receive does not grow with what does not match: counted, not timed.
#[test]
fn unmatched_messages_cost_nothing_once_indexed() {
    let mut queue = Queue::default();
    for nth in 0..50_000 {
        queue.push(message(&[("tag", nth), ("other", 1)]), Ticket::default());
    }
    assert!(queue.find(&template(&[("tag", -1)]), 0, None).is_none());
    let index = &queue.indexes[queue.index_of("tag").unwrap()].1;
    assert_eq!(index.keyed.len(), 50_000);
    for nth in (0..50_000).rev().step_by(7) {
        let found = queue.find(&template(&[("tag", nth)]), 0, None).unwrap();
        assert_eq!(value(&found.packet, "tag"), nth);
        queue.take(&found).unwrap();
    }
}

#[test]
fn a_queue_in_steady_use_stays_small() {
    let mut queue = Queue::default();
    queue.push(message(&[("never", 1)]), Ticket::default());
    for nth in 0..40 {
        queue.push(message(&[("tag", nth)]), Ticket::default());
    }
    assert!(queue.find(&template(&[("tag", -1)]), 0, None).is_none());
    for nth in 0..200_000 {
        queue.push(message(&[("tag", 1000 + nth), ("b", nth)]), Ticket::default());
        let found = queue.find(&template(&[("b", nth)]), 0, None).unwrap();
        queue.take(&found).unwrap();
    }
    assert!(queue.list.capacity() < 100, "{}", queue.list.capacity());
    for (_, index) in &queue.indexes {
        assert!(index.keyed.len() < 5000, "{}", index.keyed.len());
    }
}

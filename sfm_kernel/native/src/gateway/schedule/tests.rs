use super::super::flow::tests::frame;
use super::*;

const BULK: usize = 50_000;

fn none() -> Weights {
    Weights::new()
}

/// Senders of all frames, in the order in which they go.
fn order(scheduler: Scheduler, frames: Vec<Frame>, weights: &Weights) -> Vec<u128> {
    let mut schedule = Schedule::new(scheduler);
    let bytes: usize = frames.iter().map(Frame::size).sum();
    for frame in frames {
        schedule.push(frame, weights);
    }
    assert_eq!(schedule.bytes(), bytes);
    let order = std::iter::from_fn(|| schedule.pop(weights)).map(|frame| frame.header.sender);
    let order = order.collect();
    assert!(schedule.is_empty() && schedule.bytes() == 0 && schedule.turns.is_empty());
    order
}

fn bulk_then_small() -> Vec<Frame> {
    let mut frames: Vec<_> =
        (0..4).map(|part| frame(1, 9, Class::Bulk, BULK, (3 - part) * BULK as u32)).collect();
    frames.extend((0..2).map(|_| frame(2, 9, Class::Message, 100, 0)));
    frames
}

#[test]
fn the_scheduler_decides_how_long_a_small_message_waits() {
    assert_eq!(order(Scheduler::Fifo, bulk_then_small(), &none()), [1, 1, 1, 1, 2, 2]);
    assert_eq!(order(Scheduler::RoundRobin, bulk_then_small(), &none()), [1, 2, 2, 1, 1, 1]);
    assert_eq!(order(Scheduler::Smallest, bulk_then_small(), &none()), [2, 2, 1, 1, 1, 1]);
}

#[test]
fn a_flow_keeps_its_order_whatever_its_sizes_and_classes() {
    for scheduler in Scheduler::ALL {
        let mut schedule = Schedule::new(scheduler);
        for number in 0..30u64 {
            let class = [Class::Bulk, Class::Control, Class::Message][number as usize % 3];
            let mut frame = frame(1 + u128::from(number % 2), 9, class, 300 - number as usize, 0);
            frame.header.counter = number;
            schedule.push(frame, &none());
        }
        for sender in [1, 2] {
            assert_eq!(schedule.flows().filter(|flow| flow.0.sender == sender).count(), 1);
        }
        let mut last = HashMap::new();
        while let Some(frame) = schedule.pop(&none()) {
            let before = last.insert(frame.header.sender, frame.header.counter);
            assert!(before < Some(frame.header.counter), "{scheduler:?}");
        }
        assert_eq!(last.len(), 2);
    }
}

#[test]
fn bytes_are_shared_by_weight() {
    let mut schedule = Schedule::new(Scheduler::RoundRobin);
    let weights = Weights::from([(1, 3.0)]);
    for _ in 0..400 {
        schedule.push(frame(1, 9, Class::Bulk, BULK, 0), &weights);
        schedule.push(frame(2, 9, Class::Bulk, 1000, 0), &weights);
        schedule.push(frame(2, 9, Class::Bulk, BULK, 0), &weights);
    }
    let mut bytes = HashMap::new();
    for _ in 0..300 {
        let frame = schedule.pop(&weights).unwrap();
        *bytes.entry(frame.header.sender).or_insert(0) += frame.size();
    }
    let ratio = bytes[&1] as f64 / bytes[&2] as f64;
    assert!((2.8..3.2).contains(&ratio), "{ratio}");
}

#[test]
fn a_weight_makes_messages_smaller() {
    let frames = || vec![frame(1, 9, Class::Message, 900, 0), frame(2, 9, Class::Message, 1500, 0)];
    assert_eq!(order(Scheduler::Smallest, frames(), &none()), [1, 2]);
    assert_eq!(order(Scheduler::Smallest, frames(), &Weights::from([(2, 2.0)])), [2, 1]);
    assert_eq!(order(Scheduler::Fifo, frames(), &Weights::from([(2, 2.0)])), [1, 2]);
}

#[test]
fn acknowledgements_do_not_wait_for_a_turn() {
    let mut frames = bulk_then_small();
    frames.push(frame(3, 1, Class::Control, 0, 0));
    assert_eq!(order(Scheduler::RoundRobin, frames, &none()), [3, 1, 2, 2, 1, 1, 1]);
}

#[test]
fn status_frames_pass_their_senders_messages() {
    for (scheduler, position) in
        [(Scheduler::Fifo, 6), (Scheduler::RoundRobin, 0), (Scheduler::Smallest, 0)]
    {
        let mut schedule = Schedule::new(scheduler);
        for frame in bulk_then_small() {
            schedule.push(frame, &none());
        }
        schedule.push(frame(1, 9, Class::Status, 0, 0), &none());
        let order: Vec<_> = std::iter::from_fn(|| schedule.pop(&none())).collect();
        let found = order.iter().position(|frame| frame.header.class == Class::Status);
        assert_eq!(found, Some(position), "{scheduler:?}");
        let remaining: Vec<_> =
            order.iter().map(|frame| frame.header.ahead).filter(|&n| n > 0).collect();
        assert_eq!(remaining, [3, 2, 1].map(|parts| parts * BULK as u32));
        assert!(schedule.is_empty() && schedule.competing.is_empty());
    }
    // A status frame as large as a message does not pass.
    let mut schedule = Schedule::new(Scheduler::RoundRobin);
    for class in [Class::Bulk, Class::Status] {
        schedule.push(frame(1, 9, class, BULK, 0), &none());
    }
    assert_eq!(schedule.pop(&none()).unwrap().header.class, Class::Bulk);
}

#[test]
fn drained_frames_are_removed() {
    for scheduler in Scheduler::ALL {
        let mut schedule = Schedule::new(scheduler);
        for frame in bulk_then_small() {
            schedule.push(frame, &none());
        }
        assert_eq!(schedule.drain().len(), 6);
        assert!(schedule.is_empty() && schedule.pop(&none()).is_none());
        schedule.push(frame(1, 2, Class::Bulk, 10, 0), &none());
        assert!(schedule.pop(&none()).is_some());
    }
}

#[test]
fn withdraw_removes_the_messages_of_one_flow() {
    for scheduler in Scheduler::ALL {
        let mut schedule = Schedule::new(scheduler);
        let resume = frame(1, 9, Class::Resume, 50, 0);
        let pair = resume.pair();
        for frame in bulk_then_small().into_iter().chain([resume]) {
            schedule.push(frame, &none());
        }
        let withdrawn = schedule.withdraw(pair, &none());
        assert_eq!(withdrawn.len(), 4);
        assert!(withdrawn.iter().all(|frame| frame.pair() == pair && frame.size() > BULK));
        let remaining: Vec<_> = std::iter::from_fn(|| schedule.pop(&none())).collect();
        let classes = remaining.iter().map(|frame| (frame.header.sender, frame.header.class));
        let mut classes: Vec<_> = classes.collect();
        classes.sort();
        assert_eq!(classes, [(1, Class::Resume), (2, Class::Message), (2, Class::Message)]);
        assert!(schedule.is_empty() && schedule.bytes() == 0);
        assert!(schedule.turns.is_empty() && schedule.competing.is_empty());
        assert!(schedule.withdraw(pair, &none()).is_empty());
    }
}

#[test]
fn names_are_those_of_the_command_line() {
    for scheduler in Scheduler::ALL {
        assert_eq!(Scheduler::named(scheduler.name()), Some(scheduler));
    }
    assert_eq!(Scheduler::named("lottery"), None);
}

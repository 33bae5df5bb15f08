//! Which flow's frame goes next over a connection that flows share. Pure: no sockets, no time.
//!
//! A flow is what one process sends to another one. Within a flow frames keep their order, since what
//! the gateway does not see depends on it (a goodbye comes last); but frames that say how things stand
//! (`Class::Status`) pass the others, unless all is first in, first out. Between flows:
//!
//! - *first in, first out*: a small message waits for all large ones that came before it.
//! - *round robin* (the default): each flow in turn sends a quantum, a large frame, times its sender's
//!   weight. Deficit round robin: M. Shreedhar and G. Varghese, Efficient Fair Queuing Using Deficit
//!   Round-Robin, 1996. A flow that begins with a control frame is not made to wait for a turn, as in
//!   fq_codel (RFC 8290, 4.2): others wait for what it says.
//! - *smallest first*: the flow whose message has the least left, divided by its sender's weight.
//!   Large messages may wait for ever: that is what it is for.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::flow::{Frame, Pair};
use crate::net::frame::{Class, FRAME};

/// How flows take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    Fifo,
    #[default]
    RoundRobin,
    Smallest,
}

impl Scheduler {
    pub const ALL: [Scheduler; 3] = [Scheduler::Fifo, Scheduler::RoundRobin, Scheduler::Smallest];

    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Fifo => "fifo",
            Scheduler::RoundRobin => "round-robin",
            Scheduler::Smallest => "smallest",
        }
    }

    pub fn named(name: &str) -> Option<Scheduler> {
        Scheduler::ALL.into_iter().find(|one| one.name() == name)
    }
}

/// Bytes of a frame that need not wait for a turn.
const CONTROL: usize = 512;

/// Senders whose frames count for more, or less, than 1.
pub type Weights = HashMap<u128, f64>;

fn weight(weights: &Weights, sender: u128) -> f64 {
    // Not so small that a turn of it would never come.
    weights.get(&sender).copied().unwrap_or(1.0).clamp(0.01, 100.0)
}

/// What decides where all flows compete: class, bytes, and who came first.
type Key = (Class, u64, u64);

#[derive(Default)]
struct Flow {
    frames: VecDeque<(u64, Frame)>,
    bytes: usize,
    /// Bytes that it may send before others have their turn.
    deficit: f64,
    /// Where it stands in `competing`.
    key: Option<Key>,
}

/// The frames that wait for one connection.
pub struct Schedule {
    scheduler: Scheduler,
    flows: HashMap<Pair, Flow>,
    /// Flows that take turns: round robin.
    turns: VecDeque<Pair>,
    /// Flows by what they want to send next: all others.
    competing: BTreeMap<Key, Pair>,
    arrivals: u64,
    bytes: usize,
}

impl Schedule {
    pub fn new(scheduler: Scheduler) -> Schedule {
        Schedule {
            scheduler,
            flows: HashMap::new(),
            turns: VecDeque::new(),
            competing: BTreeMap::new(),
            arrivals: 0,
            bytes: 0,
        }
    }

    /// Bytes of all frames that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// Frames and bytes that wait, of each flow that has some.
    pub fn flows(&self) -> impl Iterator<Item = (Pair, usize, usize)> + '_ {
        self.flows.iter().map(|(pair, flow)| (*pair, flow.frames.len(), flow.bytes))
    }

    /// Bytes that wait of a flow.
    pub fn waiting(&self, pair: Pair) -> usize {
        self.flows.get(&pair).map_or(0, |flow| flow.bytes)
    }

    pub fn push(&mut self, frame: Frame, weights: &Weights) {
        let pair = frame.pair();
        self.arrivals += 1;
        self.bytes += frame.size();
        let is_small = frame.size() <= CONTROL;
        let is_status = is_small && frame.header.class == Class::Status;
        let is_control = is_small && frame.header.class == Class::Control || is_status;
        let passes = is_status && self.scheduler != Scheduler::Fifo;
        let flow = self.flows.entry(pair).or_default();
        flow.bytes += frame.size();
        let begins = flow.frames.is_empty();
        if passes {
            flow.frames.push_front((self.arrivals, frame));
        } else {
            flow.frames.push_back((self.arrivals, frame));
        }
        if !begins {
            // What it wants to send next is another one.
            if let Some(key) = flow.key.take_if(|_| passes) {
                self.competing.remove(&key);
                self.compete(pair, weights);
            }
            return;
        }
        match self.scheduler {
            Scheduler::RoundRobin => {
                flow.deficit = quantum(weights, pair);
                if is_control {
                    self.turns.push_front(pair);
                } else {
                    self.turns.push_back(pair);
                }
            }
            _ => self.compete(pair, weights),
        }
    }

    /// The frame that goes next, out of the queue.
    pub fn pop(&mut self, weights: &Weights) -> Option<Frame> {
        match self.scheduler {
            Scheduler::RoundRobin => self.pop_in_turn(weights),
            _ => {
                let (_, pair) = self.competing.pop_first()?;
                let frame = self.take(pair);
                self.compete(pair, weights);
                Some(frame)
            }
        }
    }

    fn pop_in_turn(&mut self, weights: &Weights) -> Option<Frame> {
        loop {
            let pair = *self.turns.front()?;
            let flow = self.flows.get_mut(&pair).expect("a flow that has its turn has frames");
            let length = flow.frames.front().expect("as above").1.size() as f64;
            if flow.deficit < length {
                flow.deficit += quantum(weights, pair);
                self.turns.rotate_left(1);
                continue;
            }
            flow.deficit -= length;
            let frame = self.take(pair);
            if !self.flows.contains_key(&pair) {
                self.turns.pop_front();
            }
            return Some(frame);
        }
    }

    /// The first frame of a flow; the flow goes with its last one.
    fn take(&mut self, pair: Pair) -> Frame {
        let flow = self.flows.get_mut(&pair).expect("only flows with frames are chosen");
        let (_, frame) = flow.frames.pop_front().expect("as above");
        flow.bytes -= frame.size();
        self.bytes -= frame.size();
        if flow.frames.is_empty() {
            self.flows.remove(&pair);
        }
        frame
    }

    fn compete(&mut self, pair: Pair, weights: &Weights) {
        let Some(flow) = self.flows.get_mut(&pair) else { return };
        let (arrival, frame) = flow.frames.front().expect("only flows with frames are kept");
        let key = match self.scheduler {
            Scheduler::Smallest => {
                let left = u64::from(frame.header.ahead) + u64::from(frame.header.length);
                let weighed = left as f64 / weight(weights, pair.sender);
                let class = match frame.header.class {
                    Class::Control | Class::Status => Class::Control,
                    Class::Message | Class::Bulk => Class::Message,
                };
                (class, weighed as u64, *arrival)
            }
            _ => (Class::Control, 0, *arrival),
        };
        flow.key = Some(key);
        self.competing.insert(key, pair);
    }

    /// All that waits, in no particular order between flows; nothing is left.
    pub fn drain(&mut self) -> Vec<Frame> {
        self.turns.clear();
        self.competing.clear();
        self.bytes = 0;
        let flows = std::mem::take(&mut self.flows);
        flows.into_values().flat_map(|flow| flow.frames).map(|(_, frame)| frame).collect()
    }
}

fn quantum(weights: &Weights, pair: Pair) -> f64 {
    FRAME as f64 * weight(weights, pair.sender)
}

#[cfg(test)]
mod tests {
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
        for one in frames {
            schedule.push(one, weights);
        }
        assert_eq!(schedule.bytes(), bytes);
        let order = std::iter::from_fn(|| schedule.pop(weights)).map(|one| one.header.sender);
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
    fn a_small_message_waits_for_what_the_scheduler_says() {
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
                let mut one = frame(1 + u128::from(number % 2), 9, class, 300 - number as usize, 0);
                one.header.counter = number;
                schedule.push(one, &none());
            }
            for sender in [1, 2] {
                assert_eq!(schedule.flows().filter(|flow| flow.0.sender == sender).count(), 1);
            }
            let mut last = HashMap::new();
            while let Some(one) = schedule.pop(&none()) {
                let before = last.insert(one.header.sender, one.header.counter);
                assert!(before < Some(one.header.counter), "{scheduler:?}");
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
            let one = schedule.pop(&weights).unwrap();
            *bytes.entry(one.header.sender).or_insert(0) += one.size();
        }
        let ratio = bytes[&1] as f64 / bytes[&2] as f64;
        assert!((2.8..3.2).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_weight_makes_messages_smaller() {
        let frames =
            || vec![frame(1, 9, Class::Message, 900, 0), frame(2, 9, Class::Message, 1500, 0)];
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
    fn how_things_stand_passes_what_its_own_sender_sends() {
        for (scheduler, place) in
            [(Scheduler::Fifo, 6), (Scheduler::RoundRobin, 0), (Scheduler::Smallest, 0)]
        {
            let mut schedule = Schedule::new(scheduler);
            for one in bulk_then_small() {
                schedule.push(one, &none());
            }
            schedule.push(frame(1, 9, Class::Status, 0, 0), &none());
            let order: Vec<_> = std::iter::from_fn(|| schedule.pop(&none())).collect();
            let found = order.iter().position(|one| one.header.class == Class::Status);
            assert_eq!(found, Some(place), "{scheduler:?}");
            let left: Vec<_> =
                order.iter().map(|one| one.header.ahead).filter(|&n| n > 0).collect();
            assert_eq!(left, [3, 2, 1].map(|parts| parts * BULK as u32));
            assert!(schedule.is_empty() && schedule.competing.is_empty());
        }
        // Of the size of a message it is none of those.
        let mut schedule = Schedule::new(Scheduler::RoundRobin);
        for class in [Class::Bulk, Class::Status] {
            schedule.push(frame(1, 9, class, BULK, 0), &none());
        }
        assert_eq!(schedule.pop(&none()).unwrap().header.class, Class::Bulk);
    }

    #[test]
    fn what_is_drained_is_gone() {
        for scheduler in Scheduler::ALL {
            let mut schedule = Schedule::new(scheduler);
            for one in bulk_then_small() {
                schedule.push(one, &none());
            }
            assert_eq!(schedule.drain().len(), 6);
            assert!(schedule.is_empty() && schedule.pop(&none()).is_none());
            schedule.push(frame(1, 2, Class::Bulk, 10, 0), &none());
            assert!(schedule.pop(&none()).is_some());
        }
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for one in Scheduler::ALL {
            assert_eq!(Scheduler::named(one.name()), Some(one));
        }
        assert_eq!(Scheduler::named("lottery"), None);
    }
}

//! Chooses the flow whose frame goes next over a shared connection. Pure: no sockets, no time.
//!
//! A flow is everything one process sends to another one. Within a flow frames keep their order,
//! because content that the gateway does not see depends on it (a `Bye` comes last); but frames
//! that report a state (`Class::Status`) pass the others, except in first in, first out. Between
//! flows:
//!
//! - *first in, first out*: a small message waits for all large ones that came before it.
//! - *round robin* (the default): each flow in turn sends a quantum, a large frame, times its
//!   sender's weight. Deficit round robin: M. Shreedhar and G. Varghese, Efficient Fair Queuing
//!   Using Deficit Round-Robin, 1996. A flow that begins with a control frame does not wait for a
//!   turn, as in fq_codel (RFC 8290, 4.2), because others wait for that frame.
//! - *smallest first*: the flow whose message has the least left, divided by its sender's weight.
//!   Large messages may wait for ever: that is its purpose.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::flow::{Frame, Pair};
use crate::frame::{Class, FRAME};

/// The order in which flows take turns.
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
        Scheduler::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }
}

/// Largest control frame that does not wait for a turn, in bytes.
const CONTROL: usize = 512;

/// Weights of senders; the default is 1.
pub type Weights = HashMap<u128, f64>;

fn weight(weights: &Weights, sender: u128) -> f64 {
    // Not so small that its turn would never come.
    weights.get(&sender).copied().unwrap_or(1.0).clamp(0.01, 100.0)
}

/// Orders competing flows: class, bytes, and arrival.
type Key = (Class, u64, u64);

#[derive(Default)]
struct Flow {
    frames: VecDeque<(u64, Frame)>,
    bytes: usize,
    /// Bytes that it may send before others have their turn.
    deficit: f64,
    /// Its key in `competing`.
    key: Option<Key>,
}

/// The frames that wait for one connection.
pub struct Schedule {
    scheduler: Scheduler,
    flows: HashMap<Pair, Flow>,
    /// Flows that take turns: round robin.
    turns: VecDeque<Pair>,
    /// Flows by their next frame: the other schedulers.
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

    pub fn push(&mut self, frame: Frame, weights: &Weights) {
        let pair = frame.pair();
        self.arrivals += 1;
        self.bytes += frame.size();
        let class = frame.header.class;
        let is_control = frame.size() <= CONTROL && !class.is_message();
        let passes = is_control && class == Class::Status && self.scheduler != Scheduler::Fifo;
        let flow = self.flows.entry(pair).or_default();
        flow.bytes += frame.size();
        let begins = flow.frames.is_empty();
        if passes {
            flow.frames.push_front((self.arrivals, frame));
        } else {
            flow.frames.push_back((self.arrivals, frame));
        }
        if !begins {
            // Its next frame is another one now.
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

    /// Remove the frame that goes next.
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

    /// Remove the first frame of a flow; the flow ends with its last frame.
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

    /// Remove the messages of a flow.
    pub fn withdraw(&mut self, pair: Pair, weights: &Weights) -> Vec<Frame> {
        let Some(flow) = self.flows.remove(&pair) else { return Vec::new() };
        self.bytes -= flow.bytes;
        self.turns.retain(|&other| other != pair);
        if let Some(key) = flow.key {
            self.competing.remove(&key);
        }
        let frames = flow.frames.into_iter().map(|(_, frame)| frame);
        let (messages, others): (Vec<_>, Vec<_>) =
            frames.partition(|frame| frame.header.class.is_message());
        for frame in others {
            self.push(frame, weights);
        }
        messages
    }

    fn compete(&mut self, pair: Pair, weights: &Weights) {
        let Some(flow) = self.flows.get_mut(&pair) else { return };
        let (arrival, frame) = flow.frames.front().expect("only flows with frames are kept");
        let key = match self.scheduler {
            Scheduler::Smallest => {
                let bytes_left = u64::from(frame.header.ahead) + u64::from(frame.header.length);
                let weighed = bytes_left as f64 / weight(weights, pair.sender);
                let class = frame.header.class;
                (
                    if class.is_message() { Class::Message } else { Class::Control },
                    weighed as u64,
                    *arrival,
                )
            }
            _ => (Class::Control, 0, *arrival),
        };
        flow.key = Some(key);
        self.competing.insert(key, pair);
    }

    /// Remove all frames, in no particular order between flows.
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
mod tests;

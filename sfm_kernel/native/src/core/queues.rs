//! The queues of one inbox: one for the user's messages, and one for each context.
//!
//! A receive in a context sees the messages that were sent in it, and no other receive does.
//! Collectives live in contexts, so that a user's `recv()` never takes what belongs to a reduction.
//! MPI's communicators have the same (MPI 4.1, section 6.1).

use std::sync::Arc;

use crate::matching::{Candidate, Queue, Taken, Template, Ticket};
use crate::packet::Packet;

/// Contexts that keep their queue when it is empty.
const RETAINED: usize = 16;

#[derive(Default)]
pub struct Queues {
    user: Queue,
    /// By context. Few are in use at a time, so that a list is faster than a map.
    others: Vec<(u64, Queue)>,
    /// The largest message number of any dropped queue. Later queues begin behind it: a receive
    /// that has seen everything up to some number must not miss what arrives.
    last_dropped: u64,
}

impl Queues {
    /// Messages in all queues.
    pub fn len(&self) -> usize {
        self.all().map(Queue::len).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Bytes of all packets.
    pub fn bytes(&self) -> u64 {
        self.all().map(Queue::bytes).sum()
    }
    /// All messages, queue by queue: the user's first.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.all().flat_map(Queue::iter)
    }

    fn all(&self) -> impl Iterator<Item = &Queue> {
        std::iter::once(&self.user).chain(self.others.iter().map(|(_, queue)| queue))
    }

    fn get(&self, context: u64) -> Option<&Queue> {
        match context {
            0 => Some(&self.user),
            _ => self.others.iter().find(|(id, _)| *id == context).map(|(_, queue)| queue),
        }
    }

    fn get_mut(&mut self, context: u64) -> Option<&mut Queue> {
        match context {
            0 => Some(&mut self.user),
            _ => self.others.iter_mut().find(|(id, _)| *id == context).map(|(_, queue)| queue),
        }
    }

    /// Whether there is a message of this context.
    pub fn has(&self, context: u64) -> bool {
        self.get(context).is_some_and(|queue| !queue.is_empty())
    }

    /// The queue of a context; made if there is none.
    fn make(&mut self, context: u64) -> &mut Queue {
        if self.get(context).is_none() {
            if self.others.len() >= RETAINED {
                let latest = self.others.iter().map(|(_, queue)| queue.next_seq() - 1);
                self.last_dropped = latest.fold(self.last_dropped, u64::max);
                self.others.retain(|(_, queue)| !queue.is_empty());
            }
            self.others.push((context, Queue::starting_at(self.last_dropped + 1)));
        }
        self.get_mut(context).expect("made")
    }

    /// Append a message that arrived now.
    pub fn push(&mut self, packet: Arc<Packet>, ticket: Ticket) {
        self.make(packet.context()).push(packet, ticket);
    }

    /// Put a taken message back at its old position.
    pub fn put_back(&mut self, taken: Taken) {
        self.make(taken.packet.context()).put_back(taken);
    }

    /// Take a candidate out; None if another thread has taken it since.
    pub fn take(&mut self, candidate: &Candidate) -> Option<Taken> {
        self.get_mut(candidate.packet.context())?.take(candidate)
    }

    /// See `Queue::find`.
    pub fn find(
        &mut self,
        context: u64,
        template: &Template<'_>,
        cursor: u64,
        near: Option<u32>,
    ) -> Option<Candidate> {
        self.get_mut(context)?.find(template, cursor, near)
    }

    /// See `Queue::find_or_take`.
    pub fn find_or_take(
        &mut self,
        context: u64,
        template: &Template<'_>,
        cursor: u64,
        near: Option<u32>,
    ) -> Option<Result<Taken, Candidate>> {
        self.get_mut(context)?.find_or_take(template, cursor, near)
    }

    /// The number of the latest message of a context, or one before the first.
    pub fn latest(&self, context: u64) -> u64 {
        self.get(context).map_or(self.last_dropped, |queue| queue.next_seq() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Builder, Kind};

    fn message(context: u64, number: i64) -> Arc<Packet> {
        let mut builder = Builder::new();
        builder.set_context(context);
        builder.attribute("n", Kind::Int, &[&number.to_le_bytes()]).unwrap();
        // SAFETY: the packet has no buffers outside of itself that would have to live.
        Arc::new(unsafe { builder.finish() }.to_packet().unwrap())
    }

    fn take(queues: &mut Queues, context: u64, cursor: u64) -> Option<Taken> {
        let everything = Template::default();
        let candidate = queues.find(context, &everything, cursor, None)?;
        queues.take(&candidate)
    }

    #[test]
    fn each_context_sees_its_own_messages() {
        let mut queues = Queues::default();
        for (context, number) in [(7, 1), (0, 2), (9, 3), (7, 4)] {
            queues.push(message(context, number), Ticket::default());
        }
        assert_eq!(queues.len(), 4);
        let number = |taken: Option<Taken>| {
            let packet = taken.unwrap().packet;
            i64::from_le_bytes(packet.find("n").unwrap().value.try_into().unwrap())
        };
        assert_eq!(number(take(&mut queues, 0, 0)), 2);
        assert!(take(&mut queues, 0, 0).is_none());
        assert_eq!(number(take(&mut queues, 7, 0)), 1);
        assert_eq!(number(take(&mut queues, 7, 0)), 4);
        assert_eq!(number(take(&mut queues, 9, 0)), 3);
        assert!(queues.is_empty());
    }

    #[test]
    fn a_receiver_that_has_seen_all_of_a_dropped_queue_misses_nothing() {
        let mut queues = Queues::default();
        queues.push(message(1, 1), Ticket::default());
        let seen = take(&mut queues, 1, 0).unwrap().seq;
        assert_eq!(queues.latest(1), seen);
        for context in 2..40 {
            queues.push(message(context, 0), Ticket::default());
            take(&mut queues, context, 0).unwrap();
        }
        assert!(queues.get(1).is_none(), "its queue was empty and had to go");
        assert!(queues.latest(1) >= seen);
        queues.push(message(1, 2), Ticket::default());
        assert!(take(&mut queues, 1, seen).is_some());
    }
}

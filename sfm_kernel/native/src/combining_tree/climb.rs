//! The combining tree under a shared-memory reduction: the last child to arrive goes up.
//!
//! Members are the leaves. The member that completes a node, as the last of its children to arrive,
//! combines their values and carries the result to the next level; the member that completes the
//! top decides the round, and everybody waits for that decision alone. Nobody waits inside the
//! tree: with many processes and few cores, a process that waits for a child keeps that child from
//! the core.
//!
//! Sources: the boxes and toggles of Van Iwaarden, Steinman and Blank, "A Combined Shared Memory
//! and TCP/IP Implementation of the SPEEDES Communications Library", Fig. 1, where the parent
//! polls; Yew, Tzeng and Lawrie, "Distributing Hot-Spot Addressing" (1987), where the last goes up.
//!
//! Counters only grow: in round r (from 1 on) a node with k children is complete when it has
//! counted r·k arrivals, so that nothing need be reset between rounds.

use crate::sync::{AtomicU64, Ordering, Padded};

/// Children of a node. A cache line that four write costs less than another level. The model has
/// few members, and more than one level all the same.
pub const FAN: usize = if cfg!(loom) { 2 } else { 4 };

/// The levels of a tree with this number of members.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Nodes of each level, from the one above the members to the top; at least one level.
    widths: Vec<usize>,
    members: usize,
}

/// A node: its number, and its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub index: usize,
    /// Its first child: a member on the lowest level, otherwise a node.
    pub first: usize,
    pub children: usize,
    pub lowest: bool,
}

impl Shape {
    pub fn new(members: usize) -> Shape {
        let mut widths = vec![members.div_ceil(FAN)];
        while *widths.last().expect("one") > 1 {
            widths.push(widths.last().expect("one").div_ceil(FAN));
        }
        Shape { widths, members }
    }

    /// Nodes in all; the top is the last.
    pub fn nodes(&self) -> usize {
        self.widths.iter().sum()
    }

    /// The nodes above a member, from the lowest.
    fn path(&self, member: usize) -> impl Iterator<Item = Node> + use<'_> {
        let (mut index, mut below, mut start, mut base) = (member, self.members, 0, 0);
        self.widths.iter().enumerate().map(move |(level, width)| {
            index /= FAN;
            let first = index * FAN;
            let node = Node {
                index: start + index,
                first: base + first,
                children: FAN.min(below - first),
                lowest: level == 0,
            };
            (below, base) = (*width, start);
            start += width;
            node
        })
    }
}

/// The number of arrivals at a node.
#[derive(Default)]
#[repr(C)]
pub struct Count(Padded<AtomicU64>);

/// `member` has arrived in `round`. `combine` is called for each node that it completes, from the
/// lowest; true if that was the top, so that `member` has to decide the round.
pub fn arrive(
    counts: &[Count],
    shape: &Shape,
    member: usize,
    round: u64,
    mut combine: impl FnMut(Node),
) -> bool {
    for node in shape.path(member) {
        // SYNC POINT combining_tree/climb: Release for what this member (or the node below) has written,
        // Acquire for what the other children have.
        let before = counts[node.index].0 .0.fetch_add(1, Ordering::AcqRel);
        if before + 1 != round * node.children as u64 {
            return false;
        }
        combine(node);
    }
    true
}

/// The outcome of the latest round: completed, or broken off by a member.
#[derive(Default)]
#[repr(C)]
pub struct Decision(Padded<AtomicU64>);

/// Lower bits of the word: 0, or one more than the member that broke the round off.
const MEMBER: u64 = 0xffff;

impl Decision {
    /// Whether round `round` is over, either way.
    pub fn is_made(&self, round: u64) -> bool {
        let word = self.word();
        word / (MEMBER + 1) >= round || word & MEMBER != 0
    }

    /// The member that has broken off `round` or an earlier one. Such a tree is no longer used.
    pub fn broken_by(&self, round: u64) -> Option<usize> {
        let word = self.word();
        // If a later round was broken off, this one was completed.
        (word & MEMBER != 0 && word / (MEMBER + 1) <= round).then(|| (word & MEMBER) as usize - 1)
    }

    /// Complete `round`; false if another member was faster and broke it off.
    pub fn complete(&self, round: u64) -> bool {
        self.make(round, 0)
    }

    /// Break off `round`; false if it was decided before.
    pub fn break_off(&self, round: u64, member: usize) -> bool {
        self.make(round, member as u64 + 1)
    }

    fn make(&self, round: u64, member: u64) -> bool {
        let (open, made) = ((round - 1) * (MEMBER + 1), round * (MEMBER + 1) + member);
        // SYNC POINT combining_tree/decision: Release for the result, with the Acquire in `word`.
        self.0 .0.compare_exchange(open, made, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn word(&self) -> u64 {
        // SYNC POINT combining_tree/decision: with `make`.
        self.0 .0.load(Ordering::Acquire)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_member_and_node_has_one_parent() {
        for members in 1..200 {
            let shape = Shape::new(members);
            let mut children = vec![0; shape.nodes()];
            let mut seen = std::collections::HashSet::new();
            for member in 0..members {
                let path: Vec<_> = shape.path(member).collect();
                assert!(
                    path[0].lowest && (path[0].first..).take(path[0].children).any(|m| m == member)
                );
                for pair in path.windows(2) {
                    let (low, high) = (pair[0], pair[1]);
                    assert!((high.first..high.first + high.children).contains(&low.index));
                    assert!(!high.lowest);
                }
                assert_eq!(path.last().unwrap().index, shape.nodes() - 1);
                seen.extend(path.iter().map(|node| (node.index, node.first, node.children)));
            }
            for (index, _, count) in &seen {
                children[*index] += count;
            }
            assert_eq!(seen.len(), shape.nodes());
            assert_eq!(children.iter().sum::<usize>(), members + shape.nodes() - 1);
        }
    }

    #[test]
    fn the_last_to_arrive_completes_the_round_whoever_it_is() {
        for members in [1, 2, 3, 4, 5, 16, 17, 64, 65] {
            let shape = Shape::new(members);
            let counts: Vec<Count> = (0..shape.nodes()).map(|_| Count::default()).collect();
            for round in 1..6 {
                let mut combined = 0;
                let order = (0..members).map(|m| (m * 7 + round as usize) % members);
                let mut order: Vec<_> = order.collect();
                order.sort_unstable();
                order.dedup();
                order.extend((0..members).filter(|m| !order.contains(m)).collect::<Vec<_>>());
                for (nth, member) in order.iter().enumerate() {
                    let last = arrive(&counts, &shape, *member, round, |_| combined += 1);
                    assert_eq!(last, nth + 1 == members);
                }
                assert_eq!(combined, shape.nodes());
            }
        }
    }

    #[test]
    fn a_round_is_decided_once() {
        let decision = Decision::default();
        assert!(!decision.is_made(1) && decision.complete(1) && decision.is_made(1));
        assert!(!decision.break_off(1, 3) && decision.broken_by(1).is_none());
        assert!(decision.break_off(2, 3) && !decision.complete(2));
        assert_eq!((decision.broken_by(1), decision.broken_by(2)), (None, Some(3)));
        assert_eq!((decision.broken_by(3), decision.is_made(3)), (Some(3), true));
    }
}

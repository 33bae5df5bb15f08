//! The climb of a combining tree, and the decision of a round.

use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sfm_native::bell::Bell;
use sfm_native::combining_tree::climb::{arrive, Count, Decision, Node, Shape};

use super::check;

/// A tree in loom's memory: two cells for each member and node.
struct CombiningTree {
    shape: Shape,
    counts: Vec<Count>,
    cells: Vec<[UnsafeCell<u64>; 2]>,
    decision: Decision,
    bell: Bell,
    members: usize,
}

impl CombiningTree {
    fn new(members: usize) -> Arc<CombiningTree> {
        let shape = Shape::new(members);
        let counts = (0..shape.nodes()).map(|_| Count::default()).collect();
        let cells = (0..members + shape.nodes())
            .map(|_| [UnsafeCell::new(0), UnsafeCell::new(0)])
            .collect();
        let (decision, bell) = (Decision::default(), Bell::default());
        Arc::new(CombiningTree { shape, counts, cells, decision, bell, members })
    }

    fn read(&self, index: usize, round: u64) -> u64 {
        // SAFETY: loom checks for races.
        self.cells[index][round as usize % 2].with(|cell| unsafe { *cell })
    }

    fn write(&self, index: usize, round: u64, value: u64) {
        // SAFETY: loom checks for races.
        self.cells[index][round as usize % 2].with_mut(|cell| unsafe { *cell = value });
    }

    /// Contribute `value`; whether this member came last and has decided the round.
    fn enter(&self, member: usize, round: u64, value: u64) -> bool {
        self.write(member, round, value);
        let last = arrive(&self.counts, &self.shape, member, round, |node: Node| {
            let below = |nth| if node.lowest { nth } else { self.members + nth };
            let children = node.first..node.first + node.children;
            let sum = children.map(|nth| self.read(below(nth), round)).sum();
            self.write(self.members + node.index, round, sum);
        });
        last && self.decision.complete(round)
    }

    fn wait(&self, round: u64) {
        while !self.decision.is_made(round) {
            self.bell.sleep(Duration::from_secs(1), || self.decision.is_made(round));
        }
    }
}

#[test]
fn all_members_of_a_tree_find_the_complete_sum() {
    check(|| {
        let tree = CombiningTree::new(3);
        let member = |member: usize, tree: Arc<CombiningTree>| {
            for round in 1..=2 {
                if tree.enter(member, round, 10 * round + member as u64) {
                    tree.bell.ring();
                } else {
                    tree.wait(round);
                }
                let top = tree.cells.len() - 1;
                assert_eq!(tree.read(top, round), 30 * round + 3);
                // Another member's value can be read, too, as long as nobody is two rounds on.
                assert_eq!(tree.read((member + 1) % 3, round) / 10, round);
            }
        };
        let others: Vec<_> = (1..3)
            .map(|nth| {
                let tree = tree.clone();
                thread::spawn(move || member(nth, tree))
            })
            .collect();
        member(0, tree);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn a_round_is_completed_for_all_or_broken_off_for_all() {
    check(|| {
        let tree = CombiningTree::new(2);
        let other = {
            let tree = tree.clone();
            thread::spawn(move || {
                if !tree.enter(1, 1, 1) {
                    // It has waited long enough, and gives up.
                    tree.decision.break_off(1, 1);
                }
                tree.bell.ring();
                tree.decision.broken_by(1)
            })
        };
        if tree.enter(0, 1, 1) {
            tree.bell.ring();
        } else {
            tree.wait(1);
        }
        let seen = tree.decision.broken_by(1);
        assert!(seen.is_none() || seen == Some(1));
        if seen.is_none() {
            assert_eq!(tree.read(tree.cells.len() - 1, 1), 2);
        }
        assert_eq!(other.join().unwrap(), seen);
    });
}

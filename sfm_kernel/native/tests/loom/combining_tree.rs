//! The climb of a combining tree, the decision of a round, and posts.

use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sfm_native::bell::Bell;
use sfm_native::combining_tree::climb::{arrive, Count, Decision, Node, Shape};
use sfm_native::combining_tree::posts::{behind, index, Reached, Sleepers, Stamp, CELLS};

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

/// Posts of one member, with the bell that wakes all.
struct Posts {
    cells: Vec<(Stamp, UnsafeCell<u64>)>,
    reached: Vec<Reached>,
    sleepers: Sleepers,
    bell: Bell,
}

impl Posts {
    fn new(members: usize) -> Arc<Posts> {
        Arc::new(Posts {
            cells: (0..CELLS).map(|_| (Stamp::default(), UnsafeCell::new(0))).collect(),
            reached: (0..members).map(|_| Reached::default()).collect(),
            sleepers: Sleepers::default(),
            bell: Bell::default(),
        })
    }

    fn wait(&self, is_done: impl Fn() -> bool) {
        if is_done() {
            return;
        }
        self.sleepers.enter();
        while !is_done() {
            self.bell.sleep(Duration::from_secs(1), &is_done);
        }
        self.sleepers.leave();
    }

    /// Member `member` makes `calls` calls, in which member 0 posts the call's number for all.
    fn calls(&self, member: usize, calls: u64) {
        let mut half = 0;
        for nth in 0..calls {
            if self.reached[member].publish(&mut half, nth, &self.sleepers) {
                self.bell.ring();
            }
            let (stamp, cell) = &self.cells[index(nth)];
            if member > 0 {
                self.wait(|| stamp.is_of(nth));
                // SAFETY: loom checks for races.
                assert_eq!(cell.with(|cell| unsafe { *cell }), nth);
                continue;
            }
            self.wait(|| behind(&self.reached, nth).is_none());
            // SAFETY: loom checks for races.
            cell.with_mut(|cell| unsafe { *cell = nth });
            if stamp.publish(nth, &self.sleepers) {
                self.bell.ring();
            }
        }
    }
}

#[test]
fn posts_are_read_by_all_before_their_cell_is_written_again() {
    check(|| {
        let posts = Posts::new(2);
        let other = {
            let posts = posts.clone();
            thread::spawn(move || posts.calls(1, CELLS + 1))
        };
        posts.calls(0, CELLS + 1);
        other.join().unwrap();
    });
}

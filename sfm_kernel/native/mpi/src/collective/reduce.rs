//! Reduce and allreduce: trees and recursive doubling for small data, a ring for large data.
//!
//! Operands are combined in rank order, unless the operation commutes. Source: R. Thakur, R.
//! Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH, IJHPCA 19
//! (2005), sections 4.4 and 4.5.

use super::allgather;
use super::items::{Items, Scratch};
use super::team::Team;
use crate::errors::Answer;
use crate::op::Op;

/// From this many bytes on each process combines one block of the data.
const RING_FROM: usize = 64 << 10;

/// Combine every process's `from` into `into` at the root, where `from` may be that same memory.
pub async fn reduce(
    team: &Team<'_>,
    op: &Op,
    from: &Items,
    into: Option<&Items>,
    root: usize,
) -> Answer {
    // The tree's root is the root of the call, or rank 0 if order matters.
    let first = if op.commutes() { root } else { 0 };
    let number = (team.rank + team.size - first) % team.size;
    let process = |number: usize| (number + first) % team.size;
    let below = if number == 0 { team.size } else { number & number.wrapping_neg() };
    let bits = (0..usize::BITS).map(|nth| 1 << nth).take_while(|bit| *bit < below);
    let children: Vec<_> = bits.map(|bit| number + bit).filter(|it| *it < team.size).collect();

    let (memory, partial);
    match into.filter(|_| team.rank == first && first == root) {
        Some(into) => {
            // SAFETY: the user leaves the memory to the call until it has ended.
            unsafe { from.copy_unless_same(into) };
            partial = into;
        }
        None if children.is_empty() => partial = from,
        None => {
            // SAFETY: the user leaves the memory to the call until it has ended.
            memory = unsafe { Scratch::copy_of(from) };
            partial = &memory.items;
        }
    }
    if !children.is_empty() {
        let other = Scratch::like(from);
        for child in children {
            team.receive(process(child), other.items.data()).come().await?;
            // SAFETY: one is ours, and the user leaves the other to the call until it has ended.
            unsafe {
                if op.commutes() {
                    other.items.combine_into(partial, op)?;
                } else {
                    partial.combine_into(&other.items, op)?;
                    other.items.copy_to(partial);
                }
            }
        }
    }
    if number > 0 {
        team.send(process(number - below), &partial.data()).gone().await?;
    }
    if first != root && team.rank == first {
        team.send(root, &partial.data()).gone().await?;
    }
    if first != root && team.rank == root {
        let into = into.expect("the root has memory for the result");
        team.receive(first, into.data()).come().await?;
    }
    Ok(())
}

/// Combine every process's `items` in place.
pub async fn allreduce(team: &Team<'_>, op: &Op, items: &Items) -> Answer {
    let is_large = items.bytes() >= RING_FROM && items.count >= team.size;
    match is_large && op.commutes() && team.size > 1 {
        true => ring(team, op, items).await,
        false => doubling(team, op, items).await,
    }
}

/// Recursive doubling among a power of two processes; each further process first sends its data to
/// a neighbour.
async fn doubling(team: &Team<'_>, op: &Op, items: &Items) -> Answer {
    let power = 1 << team.size.ilog2();
    let more = team.size - power;
    let (rank, data) = (team.rank, items.data());
    let received = Scratch::like(items);
    let paired = rank < 2 * more;
    if paired && rank % 2 == 0 {
        team.send(rank + 1, &data).gone().await?;
        return team.receive(rank + 1, data).come().await;
    }
    if paired {
        team.receive(rank - 1, received.items.data()).come().await?;
        // SAFETY: the user's memory and our own. The neighbour is the left operand.
        unsafe { received.items.combine_into(items, op)? };
    }
    let number = if paired { rank / 2 } else { rank - more };
    let process = |number: usize| if number < more { 2 * number + 1 } else { number + more };
    let mut bit = 1;
    while bit < power {
        let other = process(number ^ bit);
        team.exchange(other, &data, other, received.items.data()).await?;
        // SAFETY: one is ours, and the user leaves the other to the call until it has ended.
        unsafe {
            if number & bit != 0 || op.commutes() {
                received.items.combine_into(items, op)?;
            } else {
                items.combine_into(&received.items, op)?;
                received.items.copy_to(items);
            }
        }
        bit <<= 1;
    }
    if paired {
        team.send(rank - 1, &data).gone().await?;
    }
    Ok(())
}

/// Each process combines one block of the data in a first pass round the ring; the results go round
/// in a second pass.
async fn ring(team: &Team<'_>, op: &Op, items: &Items) -> Answer {
    let each = items.count.div_ceil(team.size);
    let blocks: Vec<Items> = (0..team.size)
        .map(|nth| {
            let first = (nth * each).min(items.count);
            items.slice(first, each.min(items.count - first))
        })
        .collect();
    combine_round(team, op, &blocks).await?;
    allgather::ring(team, None, &blocks).await
}

/// Afterwards this process's block is the result for that block. The operation must commute.
pub async fn combine_round(team: &Team<'_>, op: &Op, blocks: &[Items]) -> Answer {
    let (rank, size) = (team.rank, team.size);
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let largest = blocks.iter().max_by_key(|block| block.count).expect("a block for each");
    let received = Scratch::like(largest);
    for step in 1..size {
        let out = &blocks[(rank + size - step) % size];
        let into = &blocks[(rank + 2 * size - step - 1) % size];
        let coming = received.items.slice(0, into.count);
        team.exchange(next, &out.data(), last, coming.data()).await?;
        // SAFETY: the user leaves its memory to the call until it has ended, and the other is ours.
        unsafe { coming.combine_into(into, op)? };
    }
    Ok(())
}

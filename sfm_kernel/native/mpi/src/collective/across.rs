//! Collectives of processes at several sites: each message crosses the link between two sites
//! at most once in each direction, and no crossing waits for another.
//!
//! Inside each site the other algorithms run. One process, the speaker, exchanges messages with the
//! other sites' speakers directly, however many there are: sites are few, and each step of a tree
//! would be another crossing. Everything that a site's processes send or receive is one message. It
//! begins with the length of each block, so that the receiver finds out by itself if a block does
//! not fit.
//!
//! If the operation commutes, or if the sites follow each other in rank order, operands are
//! combined site by site. Otherwise all operands are carried across and combined in rank order.
//! Alltoall has a separate block for each pair of processes, and the program defines the
//! neighbours, so these two run as they do inside one site.
//!
//! Source: T. Kielmann and others, MagPIe: MPI's collective communication operations for clustered
//! wide area systems, PPoPP (1999).

use super::calls::Call;
use super::items::{Items, Scratch};
use super::mismatch::{fits, Caller};
use super::team::{all_gone, Team};
use super::view::View;
use super::{allgather, barrier, bcast, gather, reduce};
use crate::comm::sites::Sites;
use crate::errors::Answer;
use crate::handles::*;
use crate::op::Op;

/// A scan carries every operand to every process, unless that takes more bytes than this: sending
/// them would then take longer than a second crossing.
const MANY: usize = 1 << 20;

pub async fn run(call: &Call, team: &Team<'_>, sites: &Sites) -> Answer {
    let view = |root: usize| View::new(team, sites, root);
    let carried = |from: &Items| from.bytes().saturating_mul(team.size) < MANY;
    match call {
        Call::Barrier => all_come(&view(0)).await,
        Call::Bcast { items, root } => from_root(&view(*root), items).await,
        Call::Gather { local, blocks, root } => {
            gathered(&view(*root), local.as_ref(), blocks).await
        }
        Call::Scatter { blocks, local, root } => {
            scattered(&view(*root), blocks, local.as_ref()).await
        }
        Call::Allgather { local, blocks } => all_to_all(&view(0), local.as_ref(), blocks).await,
        Call::Reduce { op, from, into, root } => {
            let from = from.as_ref().or(into.as_ref()).expect("one of both");
            reduced(&view(*root), op, from, into.as_ref()).await
        }
        Call::Allreduce { op, from, into } => {
            all_reduced(&view(0), op, from.as_ref().unwrap_or(into), into).await
        }
        Call::ReduceScatter { op, from, counts, into } => {
            let all = into.slice(0, counts.iter().sum());
            let from = from.as_ref().unwrap_or(&all);
            let work = Scratch::like(from);
            all_reduced(&view(0), op, from, &work.items).await?;
            // SAFETY: both are valid: one is ours, the other the user leaves to the call until it
            // has ended.
            unsafe { work.items.split(counts)[team.rank].copy_to(into) };
            Ok(())
        }
        Call::Scan { op, from, into } if carried(into) => {
            let from = from.as_ref().unwrap_or(into);
            Values::of_all(&view(0), from).await?.combine(team.rank + 1, op, into)
        }
        Call::Exscan { op, from, into } if carried(into) => {
            let from = from.as_ref().unwrap_or(into);
            Values::of_all(&view(0), from).await?.combine(team.rank, op, into)
        }
        Call::Nothing(_)
        | Call::Alltoall { .. }
        | Call::Scan { .. }
        | Call::Exscan { .. }
        | Call::Neighbors { .. } => call.run_near(team).await,
    }
}

async fn all_come(view: &View<'_>) -> Answer {
    barrier::barrier(&view.near).await?;
    let nothing = Items::of_bytes::<u8>(&mut [])?;
    if let Some(speakers) = &view.speakers {
        let blocks = vec![nothing.clone(); speakers.size];
        allgather::directly(speakers, None, &blocks).await?;
    }
    // No process may go on before this point.
    bcast::bcast(&view.near, &nothing, view.speaker).await
}

async fn from_root(view: &View<'_>, items: &Items) -> Answer {
    let mut going = Vec::new();
    match &view.speakers {
        Some(speakers) if speakers.rank == view.home => {
            // The remote sites first: that send waits for no local process and arrives late.
            let send = |site| speakers.send(site, &items.data());
            going = view.others().into_iter().map(send).collect();
        }
        Some(speakers) => speakers.receive(view.home, items.data()).come().await?,
        None => {}
    }
    bcast::bcast(&view.near, items, view.speaker).await?;
    all_gone(going).await
}

async fn gathered(view: &View<'_>, local: Option<&Items>, blocks: &[Items]) -> Answer {
    match &view.speakers {
        Some(speakers) if speakers.rank == view.home => {
            let near = view.at(view.home, blocks);
            let stored = gather::gather(&view.near, local, &near, view.speaker).await;
            if stored.as_ref().is_err_and(|failure| failure.code == MPI_ERR_OTHER) {
                return stored; // it belongs to another call, whose processes may send nothing
            }
            // Receive from the other sites even if a block of this site does not fit, so that they
            // do not wait for ever.
            let others = view.others();
            for (mut packed, site) in speakers.take(&others).await?.into_iter().zip(others) {
                unpack(&mut packed, &view.at(site, blocks))?;
            }
            stored
        }
        Some(speakers) => {
            let others: Vec<usize> = (1..view.near.size).collect();
            let mut taken = view.near.take(&others).await?;
            let mut blocks = vec![local.expect("only the root's may be in place").clone()];
            for bytes in &mut taken {
                blocks.push(Items::of_bytes(bytes)?);
            }
            let mut packed = pack(&blocks);
            speakers.send(view.home, &Items::of_bytes(&mut packed)?.data()).gone().await
        }
        None => gather::gather(&view.near, local, &[], view.speaker).await,
    }
}

async fn scattered(view: &View<'_>, blocks: &[Items], local: Option<&Items>) -> Answer {
    match &view.speakers {
        Some(speakers) if speakers.rank == view.home => {
            let others = view.others();
            let mut packed: Vec<_> =
                others.iter().map(|site| pack(&view.at(*site, blocks))).collect();
            let mut going = Vec::new();
            for (site, packed) in others.into_iter().zip(&mut packed) {
                going.push(speakers.send(site, &Items::of_bytes(packed)?.data()));
            }
            gather::scatter(&view.near, &view.at(view.home, blocks), local, view.speaker).await?;
            all_gone(going).await
        }
        Some(speakers) => {
            let mut packed = speakers.take(&[view.home]).await?.remove(0);
            let received = unpacked_blocks(&mut packed, view.near.size)?;
            let stored = store(&received[0], local.expect("only the root's may be in place"));
            // The other processes receive their blocks even if the speaker's does not fit.
            gather::scatter(&view.near, &received, None, view.speaker).await?;
            stored
        }
        None => gather::scatter(&view.near, &[], local, view.speaker).await,
    }
}

async fn all_to_all(view: &View<'_>, local: Option<&Items>, blocks: &[Items]) -> Answer {
    let near = view.at(view.here(), blocks);
    allgather::allgather(&view.near, local, &near).await?;
    let blocks: Vec<_> = (0..view.number()).map(|site| view.at(site, blocks)).collect();
    let mut packed: Vec<_> = blocks.iter().map(|blocks| vec![0; packed_bytes(blocks)]).collect();
    if let Some(speakers) = &view.speakers {
        packed[view.here()] = pack(&near);
        let packed: Answer<Vec<_>> =
            packed.iter_mut().map(|bytes| Items::of_bytes(bytes)).collect();
        allgather::directly(speakers, None, &packed?).await?;
    }
    for site in view.others() {
        bcast::bcast(&view.near, &Items::of_bytes(&mut packed[site])?, view.speaker).await?;
        unpack(&mut packed[site], &blocks[site])?;
    }
    Ok(())
}

async fn reduced(view: &View<'_>, op: &Op, from: &Items, into: Option<&Items>) -> Answer {
    if !op.commutes() && !view.is_in_order() {
        let all = Values::like(from, into.map_or(0, |_| view.team.size));
        gathered(view, Some(from), &all.items).await?;
        return into.map_or(Ok(()), |into| all.combine(view.team.size, op, into));
    }
    let Some(speakers) = &view.speakers else {
        return reduce::reduce(&view.near, op, from, None, view.speaker).await;
    };
    let total = Scratch::like(from);
    reduce::reduce(&view.near, op, from, Some(&total.items), view.speaker).await?;
    let all = Values::like(from, into.map_or(0, |_| speakers.size));
    gather::gather(speakers, Some(&total.items), &all.items, view.home).await?;
    into.map_or(Ok(()), |into| all.combine(speakers.size, op, into))
}

/// Combine every process's `from` into `into`; the two may be the same memory.
async fn all_reduced(view: &View<'_>, op: &Op, from: &Items, into: &Items) -> Answer {
    if !op.commutes() && !view.is_in_order() {
        return Values::of_all(view, from).await?.combine(view.team.size, op, into);
    }
    let total = view.speakers.as_ref().map(|_| into);
    reduce::reduce(&view.near, op, from, total, view.speaker).await?;
    if let Some(speakers) = &view.speakers {
        let all = Values::like(into, speakers.size);
        allgather::directly(speakers, Some(into), &all.items).await?;
        all.combine(speakers.size, op, into)?;
    }
    bcast::bcast(&view.near, into, view.speaker).await
}

/// Scratch memory for the operands of several processes or sites, one scratch for each, because the
/// items of a datatype may lie between those of others.
struct Values {
    _memory: Vec<Scratch>,
    items: Vec<Items>,
}

impl Values {
    fn like(items: &Items, number: usize) -> Values {
        let scratches: Vec<_> = (0..number).map(|_| Scratch::like(items)).collect();
        let items = scratches.iter().map(|scratch| scratch.items.clone()).collect();
        Values { _memory: scratches, items }
    }

    /// The operand of each process of the communicator.
    async fn of_all(view: &View<'_>, local: &Items) -> Answer<Values> {
        let all = Values::like(local, view.team.size);
        all_to_all(view, Some(local), &all.items).await?;
        Ok(all)
    }

    /// Combine the first `number` operands, in order, into `into`; if `number` is 0, leave `into`
    /// as it is.
    fn combine(&self, number: usize, op: &Op, into: &Items) -> Answer {
        let items = &self.items[..number];
        for pair in items.windows(2) {
            // SAFETY: both lie in memory of this call, which nobody else uses.
            unsafe { pair[0].combine_into(&pair[1], op)? };
        }
        if let Some(total) = items.last() {
            // SAFETY: both are valid: one is ours, the other the user leaves to the call until it
            // has ended.
            unsafe { total.copy_to(into) };
        }
        Ok(())
    }
}

/// Bytes of one length in a packed message.
const LENGTH: usize = size_of::<u64>();

fn packed_bytes(blocks: &[Items]) -> usize {
    blocks.iter().map(|block| LENGTH + block.bytes()).sum()
}

/// Pack the blocks of a site's processes behind a list of their lengths.
fn pack(blocks: &[Items]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(packed_bytes(blocks));
    for block in blocks {
        packed.extend_from_slice(&(block.bytes() as u64).to_le_bytes());
    }
    for block in blocks.iter().filter(|block| block.bytes() > 0) {
        // SAFETY: the memory is the user's or ours; a block without bytes is skipped, as its
        // address may be invalid.
        unsafe { block.data().pack_range(0..block.bytes(), &mut packed) };
    }
    packed
}

/// The blocks of `number` processes in a message that `pack` made.
fn unpacked_blocks(packed: &mut [u8], number: usize) -> Answer<Vec<Items>> {
    let (lengths, rest) = packed.split_at_mut(packed.len().min(number * LENGTH));
    let length = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("of a length")) as usize;
    let lengths: Vec<usize> = lengths.chunks_exact(LENGTH).map(length).collect();
    fits(Caller::another, lengths.len() * LENGTH, number * LENGTH)?;
    fits(
        Caller::another,
        rest.len(),
        lengths.iter().fold(0, |all, length| all.saturating_add(*length)),
    )?;
    Ok(Items::of_bytes(rest)?.split(&lengths))
}

/// Unpack a site's message into its processes' blocks.
fn unpack(packed: &mut [u8], blocks: &[Items]) -> Answer {
    let received = unpacked_blocks(packed, blocks.len())?;
    received.iter().zip(blocks).try_for_each(|(from, to)| store(from, to))
}

fn store(from: &Items, to: &Items) -> Answer {
    fits(Caller::another, from.bytes(), to.bytes())?;
    // SAFETY: both are valid: one is ours, the other the user leaves to the call until it has
    // ended.
    unsafe { from.copy_to(to) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unpacked_blocks_equal_the_packed_ones() {
        let (mut numbers, mut bytes) = ([1_u32, 2, 3], [4_u8; 5]);
        let all = [&mut [][..], &mut numbers].map(|all: &mut [u32]| Items::of_bytes(all).unwrap());
        let mut packed = pack(&[&all[..], &[Items::of_bytes(&mut bytes).unwrap()]].concat());
        let (mut none, mut first, mut second) = ([0_u8; 0], [0_u32; 3], [0_u8; 5]);
        let blocks =
            [Items::of_bytes(&mut none), Items::of_bytes(&mut first), Items::of_bytes(&mut second)];
        unpack(&mut packed, &blocks.map(Result::unwrap)).unwrap();
        assert_eq!((first, second), (numbers, bytes));
    }

    #[test]
    fn blocks_that_do_not_fit_are_refused() {
        let mut two = [7_u16, 8];
        let packed = pack(&[Items::of_bytes(&mut two).unwrap()]);
        assert!(unpacked_blocks(&mut packed.clone(), 2).is_err(), "of fewer processes");
        assert!(unpacked_blocks(&mut packed[..11].to_vec(), 1).is_err(), "cut off");
        let mut long = packed.clone();
        long[..LENGTH].fill(0xff);
        assert!(unpacked_blocks(&mut long, 1).is_err(), "of another length");
        let block = Items::of_bytes(&mut two[..1]).unwrap();
        let failure = unpack(&mut packed.clone(), &[block]).unwrap_err();
        assert!(failure.text.contains("sends 4 bytes where 2 are expected"), "{failure}");
    }
}

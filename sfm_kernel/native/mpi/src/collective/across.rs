//! Collectives of processes at several sites: the way between two sites is crossed by one message
//! each way at most, and no message waits for another to cross it.
//!
//! Inside of each site the other algorithms run. One process speaks for it, to those that speak for
//! the others, directly, whatever their number: sites are few, and a tree's steps are crossings. What
//! its processes send or get is one message, in which each block's length stands before the blocks,
//! so that whoever gets one finds out by itself if it does not fit.
//!
//! Operands are combined site by site, where the operation commutes or the sites follow each other in
//! the order of the ranks. Else all of them are carried, and combined in that order.
//! Alltoall has something for each from each, and neighbours are the program's: these go as always.
//!
//! Source: T. Kielmann and others, MagPIe: MPI's collective communication operations for clustered
//! wide area systems, PPoPP (1999).

use super::calls::Call;
use super::items::{Items, Scratch};
use super::sites::{Sites, View};
use super::team::{all_gone, fits, Team, ANOTHER};
use super::{allgather, barrier, bcast, gather, reduce};
use crate::errors::Answer;
use crate::handles::*;
use crate::op::Op;

/// A scan carries what all have to all, unless these are more bytes: then they take longer than to
/// cross the way again.
const MANY: usize = 1 << 20;

pub async fn run(call: &Call, team: &Team, sites: &Sites) -> Answer {
    let view = |root: usize| View::new(team, sites, root);
    let carried = |from: &Items| from.bytes().saturating_mul(team.size) < MANY;
    match call {
        Call::Barrier => all_come(&view(0)).await,
        Call::Bcast { items, root } => from_root(&view(*root), items).await,
        Call::Gather { own, parts, root } => gathered(&view(*root), own.as_ref(), parts).await,
        Call::Scatter { parts, own, root } => scattered(&view(*root), parts, own.as_ref()).await,
        Call::Allgather { own, parts } => all_to_all(&view(0), own.as_ref(), parts).await,
        Call::Reduce { op, from, into, root } => {
            let from = from.as_ref().or(into.as_ref()).expect("one of both");
            reduced(&view(*root), op, from, into.as_ref()).await
        }
        Call::Allreduce { op, from, into } => {
            all_reduced(&view(0), op, from.as_ref().unwrap_or(into), into).await
        }
        Call::ReduceScatter { op, from, counts, into } => {
            let all = into.part(0, counts.iter().sum());
            let from = from.as_ref().unwrap_or(&all);
            let work = Scratch::like(from);
            all_reduced(&view(0), op, from, &work.items).await?;
            // SAFETY: our own and the user's.
            unsafe { work.items.parts(counts)[team.rank].copy_to(into) };
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
        Call::Nothing
        | Call::Alltoall { .. }
        | Call::Scan { .. }
        | Call::Exscan { .. }
        | Call::Neighbors { .. } => call.run_near(team).await,
    }
}

async fn all_come(view: &View<'_>) -> Answer {
    barrier::barrier(&view.near).await?;
    let nothing = Items::own::<u8>(&mut [])?;
    if let Some(speakers) = &view.speakers {
        let parts = vec![nothing.clone(); speakers.size];
        allgather::directly(speakers, None, &parts).await?;
    }
    // Only after that may anybody go on.
    bcast::bcast(&view.near, &nothing, view.speaker).await
}

async fn from_root(view: &View<'_>, items: &Items) -> Answer {
    let mut going = Vec::new();
    match &view.speakers {
        Some(speakers) if speakers.rank == view.home => {
            // The long way first: it waits for nobody who is near and comes late.
            let send = |site| speakers.send(site, &items.data());
            going = view.others().into_iter().map(send).collect();
        }
        Some(speakers) => speakers.receive(view.home, items.data()).come().await?,
        None => {}
    }
    bcast::bcast(&view.near, items, view.speaker).await?;
    all_gone(going).await
}

/// See `gather::gather`.
async fn gathered(view: &View<'_>, own: Option<&Items>, parts: &[Items]) -> Answer {
    match &view.speakers {
        Some(speakers) if speakers.rank == view.home => {
            let near = view.at(view.home, parts);
            let placed = gather::gather(&view.near, own, &near, view.speaker).await;
            if placed.as_ref().is_err_and(|failure| failure.code == MPI_ERR_OTHER) {
                return placed; // another call, whose processes perhaps send nothing
            }
            // Those of other sites do not wait for ever because one here does not fit.
            let others = view.others();
            for (mut packed, site) in speakers.take(&others).await?.into_iter().zip(others) {
                unpack(&mut packed, &view.at(site, parts))?;
            }
            placed
        }
        Some(speakers) => {
            let others: Vec<usize> = (1..view.near.size).collect();
            let mut taken = view.near.take(&others).await?;
            let mut blocks = vec![own.expect("only the root's may be in place").clone()];
            for one in &mut taken {
                blocks.push(Items::own(one)?);
            }
            let mut packed = pack(&blocks);
            speakers.send(view.home, &Items::own(&mut packed)?.data()).gone().await
        }
        None => gather::gather(&view.near, own, &[], view.speaker).await,
    }
}

/// See `gather::scatter`.
async fn scattered(view: &View<'_>, parts: &[Items], own: Option<&Items>) -> Answer {
    match &view.speakers {
        Some(speakers) if speakers.rank == view.home => {
            let others = view.others();
            let mut packed: Vec<_> =
                others.iter().map(|site| pack(&view.at(*site, parts))).collect();
            let mut going = Vec::new();
            for (site, packed) in others.into_iter().zip(&mut packed) {
                going.push(speakers.send(site, &Items::own(packed)?.data()));
            }
            gather::scatter(&view.near, &view.at(view.home, parts), own, view.speaker).await?;
            all_gone(going).await
        }
        Some(speakers) => {
            let mut packed = speakers.take(&[view.home]).await?.remove(0);
            let blocks = blocks(&mut packed, view.near.size)?;
            let placed = place(&blocks[0], own.expect("only the root's may be in place"));
            // The others get theirs also where this one's does not fit.
            gather::scatter(&view.near, &blocks, None, view.speaker).await?;
            placed
        }
        None => gather::scatter(&view.near, &[], own, view.speaker).await,
    }
}

/// See `allgather::allgather`.
async fn all_to_all(view: &View<'_>, own: Option<&Items>, parts: &[Items]) -> Answer {
    let near = view.at(view.here(), parts);
    allgather::allgather(&view.near, own, &near).await?;
    let parts: Vec<_> = (0..view.number()).map(|site| view.at(site, parts)).collect();
    let mut packed: Vec<_> = parts.iter().map(|parts| vec![0; packed_bytes(parts)]).collect();
    if let Some(speakers) = &view.speakers {
        packed[view.here()] = pack(&near);
        let packed: Answer<Vec<_>> = packed.iter_mut().map(|one| Items::own(one)).collect();
        allgather::directly(speakers, None, &packed?).await?;
    }
    for site in view.others() {
        bcast::bcast(&view.near, &Items::own(&mut packed[site])?, view.speaker).await?;
        unpack(&mut packed[site], &parts[site])?;
    }
    Ok(())
}

/// See `reduce::reduce`.
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

/// Combine `from` of everybody into `into`, which may be the same.
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

/// Scratches for what each of several processes, or sites, has: one for each, as items of a datatype
/// may lie between those of others.
struct Values {
    _kept: Vec<Scratch>,
    items: Vec<Items>,
}

impl Values {
    fn like(items: &Items, number: usize) -> Values {
        let kept: Vec<_> = (0..number).map(|_| Scratch::like(items)).collect();
        let items = kept.iter().map(|one| one.items.clone()).collect();
        Values { _kept: kept, items }
    }

    /// What each process of the communicator has.
    async fn of_all(view: &View<'_>, own: &Items) -> Answer<Values> {
        let all = Values::like(own, view.team.size);
        all_to_all(view, Some(own), &all.items).await?;
        Ok(all)
    }

    /// The first ones combined, in their order; without any, `into` stays as it is.
    fn combine(&self, number: usize, op: &Op, into: &Items) -> Answer {
        let items = &self.items[..number];
        for pair in items.windows(2) {
            // SAFETY: our own.
            unsafe { pair[0].combine_into(&pair[1], op)? };
        }
        if let Some(total) = items.last() {
            // SAFETY: our own and the user's.
            unsafe { total.copy_to(into) };
        }
        Ok(())
    }
}

/// Bytes of a length.
const LENGTH: usize = size_of::<u64>();

fn packed_bytes(blocks: &[Items]) -> usize {
    blocks.iter().map(|block| LENGTH + block.bytes()).sum()
}

/// The blocks of a site's processes, and before them the length of each.
fn pack(blocks: &[Items]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(packed_bytes(blocks));
    for block in blocks {
        packed.extend_from_slice(&(block.bytes() as u64).to_le_bytes());
    }
    for block in blocks.iter().filter(|block| block.bytes() > 0) {
        // SAFETY: the user's, or our own; without bytes they may be nowhere.
        unsafe { block.data().pack_part(0..block.bytes(), &mut packed) };
    }
    packed
}

/// The blocks, of so many processes, of which `pack` has made this.
fn blocks(packed: &mut [u8], number: usize) -> Answer<Vec<Items>> {
    let (lengths, rest) = packed.split_at_mut(packed.len().min(number * LENGTH));
    let length = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("of a length")) as usize;
    let lengths: Vec<usize> = lengths.chunks_exact(LENGTH).map(length).collect();
    fits(ANOTHER, lengths.len() * LENGTH, number * LENGTH)?;
    fits(ANOTHER, rest.len(), lengths.iter().fold(0, |all, one| all.saturating_add(*one)))?;
    Ok(Items::own(rest)?.parts(&lengths))
}

/// Put the blocks of a site's processes to where they go.
fn unpack(packed: &mut [u8], parts: &[Items]) -> Answer {
    let blocks = blocks(packed, parts.len())?;
    blocks.iter().zip(parts).try_for_each(|(block, part)| place(block, part))
}

fn place(block: &Items, part: &Items) -> Answer {
    fits(ANOTHER, block.bytes(), part.bytes())?;
    // SAFETY: our own and the user's.
    unsafe { block.copy_to(part) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_come_out_as_they_went_in() {
        let (mut one, mut two) = ([1_u32, 2, 3], [4_u8; 5]);
        let all = [&mut [][..], &mut one].map(|all: &mut [u32]| Items::own(all).unwrap());
        let mut packed = pack(&[&all[..], &[Items::own(&mut two).unwrap()]].concat());
        let (mut none, mut first, mut second) = ([0_u8; 0], [0_u32; 3], [0_u8; 5]);
        let parts = [Items::own(&mut none), Items::own(&mut first), Items::own(&mut second)];
        unpack(&mut packed, &parts.map(Result::unwrap)).unwrap();
        assert_eq!((first, second), (one, two));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut two = [7_u16, 8];
        let packed = pack(&[Items::own(&mut two).unwrap()]);
        assert!(blocks(&mut packed.clone(), 2).is_err(), "of fewer processes");
        assert!(blocks(&mut packed[..11].to_vec(), 1).is_err(), "cut off");
        let mut long = packed.clone();
        long[..LENGTH].fill(0xff);
        assert!(blocks(&mut long, 1).is_err(), "of another length");
        let part = Items::own(&mut two[..1]).unwrap();
        let failure = unpack(&mut packed.clone(), &[part]).unwrap_err();
        assert!(failure.text.contains("sends 4 bytes where 2 are expected"), "{failure}");
    }
}

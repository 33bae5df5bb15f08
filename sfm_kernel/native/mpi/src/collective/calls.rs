//! A collective with its arguments, and its three forms: blocking, non-blocking, and
//! persistent.

use super::items::Items;
use super::team::Team;

use super::{across, allgather, alltoall, barrier, bcast, between, blocking, gather, neighbors};
use super::{reduce, reduce_scatter, scan};
use crate::comm::{self, history, Comm};
use crate::engine::report::Arguments;
use crate::engine::{engine, Alike, Collective};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::op::Op;
use crate::topology::Topology;

/// The most neighbours that observers are told.
const NEIGHBORS: usize = 6;

#[derive(Clone)]
pub enum Call {
    /// This process is in the root's group of an intercommunicator, but is not the root.
    Nothing(Collective),
    Barrier,
    Bcast {
        items: Items,
        root: usize,
    },
    /// `blocks` is empty except at the root.
    Gather {
        local: Option<Items>,
        blocks: Vec<Items>,
        root: usize,
    },
    Scatter {
        blocks: Vec<Items>,
        local: Option<Items>,
        root: usize,
    },
    Allgather {
        local: Option<Items>,
        blocks: Vec<Items>,
    },
    Alltoall {
        out: Option<Vec<Items>>,
        into: Vec<Items>,
    },
    /// `from`, here and below, is None with MPI_IN_PLACE. `into` is None except at the root.
    Reduce {
        op: Op,
        from: Option<Items>,
        into: Option<Items>,
        root: usize,
    },
    Allreduce {
        op: Op,
        from: Option<Items>,
        into: Items,
    },
    ReduceScatter {
        op: Op,
        from: Option<Items>,
        counts: Vec<usize>,
        into: Items,
    },
    Scan {
        op: Op,
        from: Option<Items>,
        into: Items,
    },
    Exscan {
        op: Op,
        from: Option<Items>,
        into: Items,
    },
    /// The destinations and sources with their blocks, in the topology's order.
    Neighbors {
        what: Collective,
        out: Vec<(usize, Items)>,
        into: Vec<(usize, Items)>,
    },
}

// SAFETY: the user leaves the memory to the collective until it has ended.
unsafe impl Send for Call {}
// SAFETY: the user leaves the memory to the collective, whichever threads continue it.
unsafe impl Sync for Call {}

impl Call {
    pub fn what(&self) -> Collective {
        match self {
            Call::Nothing(what) => *what,
            Call::Barrier => Collective::Barrier,
            Call::Bcast { .. } => Collective::Bcast,
            Call::Gather { .. } => Collective::Gather,
            Call::Scatter { .. } => Collective::Scatter,
            Call::Allgather { .. } => Collective::Allgather,
            Call::Alltoall { .. } => Collective::Alltoall,
            Call::Reduce { .. } => Collective::Reduce,
            Call::Allreduce { .. } => Collective::Allreduce,
            Call::ReduceScatter { .. } => Collective::ReduceScatter,
            Call::Scan { .. } => Collective::Scan,
            Call::Exscan { .. } => Collective::Exscan,
            Call::Neighbors { what, .. } => *what,
        }
    }

    fn root(&self) -> Option<usize> {
        match self {
            Call::Bcast { root, .. }
            | Call::Gather { root, .. }
            | Call::Scatter { root, .. }
            | Call::Reduce { root, .. } => Some(*root),
            _ => None,
        }
    }

    fn op(&self) -> Option<&Op> {
        match self {
            Call::Reduce { op, .. }
            | Call::Allreduce { op, .. }
            | Call::ReduceScatter { op, .. }
            | Call::Scan { op, .. }
            | Call::Exscan { op, .. } => Some(op),
            _ => None,
        }
    }

    /// What all processes give alike.
    pub fn alike(&self, comm: &Comm) -> Alike {
        if let Call::Nothing(_) = self {
            return Alike::without_part();
        }
        Alike::new(self.root().map(|root| comm.root_for_all(root)), self.op())
    }

    /// The bytes of its data, if it has the same number of them at all processes.
    pub fn bytes(&self) -> Option<usize> {
        match self {
            Call::Bcast { items, .. } => Some(items.bytes()),
            Call::Reduce { from, into, .. } => from.as_ref().or(into.as_ref()).map(Items::bytes),
            Call::Allreduce { into, .. } => Some(into.bytes()),
            _ => None,
        }
    }

    /// The arguments that distinguish it from others, for observers.
    pub fn arguments(&self, comm: &Comm) -> Arguments {
        let count = match self {
            Call::Bcast { items, .. } => Some(items.count),
            Call::Reduce { from, into, .. } => from.as_ref().or(into.as_ref()).map(|all| all.count),
            Call::Allreduce { into, .. } | Call::Scan { into, .. } | Call::Exscan { into, .. } => {
                Some(into.count)
            }
            _ => None,
        };
        let own = |block: &Option<Items>| block.as_ref().map(|block| block.count);
        let count = match self {
            Call::Gather { local, .. } | Call::Allgather { local, .. } => {
                own(local).map(|count| ("sendcount", count))
            }
            Call::Scatter { local, .. } => own(local).map(|count| ("recvcount", count)),
            _ => count.map(|count| ("count", count)),
        };
        let count = count.map(|(name, count)| (name, count.to_string()));
        let alike = history::arguments(self.alike(comm), Some(comm), engine().rank);
        count.into_iter().chain(alike).chain(self.neighbors(comm)).collect()
    }

    /// The neighbours in a graph that the program has given process by process: they may differ.
    fn neighbors(&self, comm: &Comm) -> Arguments {
        let Call::Neighbors { out, into, .. } = self else { return vec![] };
        let is_graph = matches!(comm.topology, Some(Topology::Distributed(_)));
        let all = [("sources", into), ("destinations", out)].into_iter().filter(|_| is_graph);
        let shown = |blocks: &[(usize, Items)]| {
            format!("{:?}", blocks.iter().map(|(rank, _)| *rank).collect::<Vec<_>>())
        };
        all.filter(|(_, blocks)| blocks.len() <= NEIGHBORS)
            .map(|(name, blocks)| (name, shown(blocks)))
            .collect()
    }

    /// Refuse send and receive buffers that share memory.
    pub fn check(&self) -> Answer {
        let among =
            |buffer: &Items, all: &[Items]| all.iter().any(|other| buffer.share_memory(other));
        let is_shared = match self {
            // Neighbours send and receive blocks of one array, whose datatypes have gaps.
            Call::Nothing(_) | Call::Barrier | Call::Bcast { .. } | Call::Neighbors { .. } => false,
            Call::Gather { local, blocks, .. }
            | Call::Scatter { local, blocks, .. }
            | Call::Allgather { local, blocks } => {
                local.as_ref().is_some_and(|local| among(local, blocks))
            }
            Call::Alltoall { out, into } => out
                .as_ref()
                .is_some_and(|out| out.iter().zip(into).any(|(out, into)| out.share_memory(into))),
            Call::Reduce { from, into, .. } => {
                from.as_ref().zip(into.as_ref()).is_some_and(|(from, into)| from.share_memory(into))
            }
            Call::Allreduce { from, into, .. }
            | Call::ReduceScatter { from, into, .. }
            | Call::Scan { from, into, .. }
            | Call::Exscan { from, into, .. } => {
                from.as_ref().is_some_and(|from| from.share_memory(into))
            }
        };
        match is_shared {
            false => Ok(()),
            true => Err(fail(
                MPI_ERR_BUFFER,
                "the send and the receive buffer share memory; give another buffer for one of \
                them, or MPI_IN_PLACE (the manual of this function says for which)",
            )),
        }
    }

    pub async fn run(&self, team: &Team<'_>) -> Answer {
        if team.near < team.size {
            return between::run(self, team).await;
        }
        if let Some(sites) = &team.sites {
            // Boxed, so that this future takes no memory in the usual call.
            return Box::pin(across::run(self, team, sites)).await;
        }
        self.run_near(team).await
    }

    /// Run it by messages, ignoring sites.
    pub async fn run_near(&self, team: &Team<'_>) -> Answer {
        match self {
            Call::Nothing(_) => Ok(()),
            Call::Barrier => barrier::barrier(team).await,
            Call::Bcast { items, root } => bcast::bcast(team, items, *root).await,
            Call::Gather { local, blocks, root } => {
                gather::gather(team, local.as_ref(), blocks, *root).await
            }
            Call::Scatter { blocks, local, root } => {
                gather::scatter(team, blocks, local.as_ref(), *root).await
            }
            Call::Allgather { local, blocks } => {
                allgather::allgather(team, local.as_ref(), blocks).await
            }
            Call::Alltoall { out, into } => alltoall::alltoall(team, out.as_deref(), into).await,
            Call::Reduce { op, from, into, root } => {
                let from = from.as_ref().or(into.as_ref()).expect("one of both");
                reduce::reduce(team, op, from, into.as_ref(), *root).await
            }
            Call::Allreduce { op, from, into } => {
                copy(from.as_ref(), into);
                reduce::allreduce(team, op, into).await
            }
            Call::ReduceScatter { op, from, counts, into } => {
                let all = into.slice(0, counts.iter().sum());
                let from = from.as_ref().unwrap_or(&all);
                reduce_scatter::reduce_scatter(team, op, from, counts, into).await
            }
            Call::Scan { op, from, into } => {
                copy(from.as_ref(), into);
                scan::scan(team, op, into).await
            }
            Call::Exscan { op, from, into } => {
                scan::exscan(team, op, from.as_ref().unwrap_or(into), into).await
            }
            Call::Neighbors { out, into, .. } => neighbors::exchange(team, out, into).await,
        }
    }
}

fn copy(from: Option<&Items>, into: &Items) {
    if let Some(from) = from {
        // SAFETY: they are two distinct buffers, which the user leaves to the call until it has
        // ended.
        unsafe { from.copy_to(into) };
    }
}

/// Run the blocking form; return when this process's share is done.
pub fn block(comm: MPI_Comm, call: &Call) -> Answer {
    call.check()?;
    let comm = comm::get(comm)?;
    // A call that is refused has no number: the others would be one behind.
    let turn = comm.meetings.take_turn()?;
    let team = Team::called(&comm, call.what(), call.alike(&comm));
    blocking::run(&comm, &team, call, turn)
}

//! Cartesian topologies: creation and queries.

use super::communicators::none_yet;
use super::graphs::none;
use crate::cart::{self, Cart};
use crate::checks::{self, array, array_mut, put};
use crate::collective::presence::complete;
use crate::collective::team::Team;
use crate::comm::{self, Comm};
use crate::engine::Collective;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::latest::Used;
use crate::making;
use crate::topology::Topology;

pub unsafe fn dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> Answer {
    cart::dims_create(nnodes, array_mut("dims", dims, checks::count("ndims", ndims)?)?)
}

/// A communicator with a grid.
struct CartComm(Used<Comm>);

impl CartComm {
    fn get(handle: MPI_Comm) -> Answer<CartComm> {
        let comm = comm::get(handle)?;
        match comm.topology {
            Some(Topology::Cart(_)) => Ok(CartComm(comm)),
            _ => Err(none(&comm, "Cartesian topology", "MPI_Cart_create")),
        }
    }

    fn cart(&self) -> &Cart {
        match &self.0.topology {
            Some(Topology::Cart(cart)) => cart,
            _ => unreachable!("checked when it was made"),
        }
    }
}

pub unsafe fn topo_test(comm: MPI_Comm, status: *mut c_int) -> Answer {
    let comm = comm::get(comm)?;
    put("status", status, comm.topology.as_ref().map_or(MPI_UNDEFINED, Topology::kind))
}

/// Make a communicator of the processes with the same color, with this topology.
pub(super) fn with_topology(
    old: &Comm,
    color: c_int,
    key: c_int,
    topology: Topology,
) -> Answer<MPI_Comm> {
    let team = Team::of(old, Collective::Making);
    let mut made = complete(&team, making::split(old, &team, color, key))?;
    if let Some(made) = &mut made {
        made.topology = Some(topology);
    }
    Ok(making::open(made))
}

/// The first `size` processes are in the topology; the others get no communicator.
pub(super) fn color(old: &Comm, size: c_int) -> c_int {
    if old.rank < size {
        0
    } else {
        MPI_UNDEFINED
    }
}

pub unsafe fn cart_create(
    comm_old: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    _reorder: c_int,
    comm_cart: *mut MPI_Comm,
) -> Answer {
    let old = comm::intra(comm_old)?;
    none_yet(comm_cart)?;
    let cart = grid(&old, ndims, dims, periods)?;
    let color = color(&old, cart.size().expect("it fits"));
    put("comm_cart", comm_cart, with_topology(&old, color, 0, Topology::Cart(cart))?)
}

pub unsafe fn cart_sub(
    comm: MPI_Comm,
    remain_dims: *const c_int,
    newcomm: *mut MPI_Comm,
) -> Answer {
    let old = CartComm::get(comm)?;
    none_yet(newcomm)?;
    let remain = array("remain_dims", remain_dims, old.cart().dims.len())?;
    let remain: Vec<bool> = remain.iter().map(|remains| *remains != 0).collect();
    let (sub, color, key) = old.cart().sub(old.0.rank, &remain);
    put("newcomm", newcomm, with_topology(&old.0, color, key, Topology::Cart(sub))?)
}

pub unsafe fn cartdim_get(comm: MPI_Comm, ndims: *mut c_int) -> Answer {
    put("ndims", ndims, CartComm::get(comm)?.cart().dims.len() as c_int)
}

pub unsafe fn cart_get(
    comm: MPI_Comm,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Answer {
    let cart_comm = CartComm::get(comm)?;
    let cart = cart_comm.cart();
    let count = checks::count("maxdims", maxdims)?.min(cart.dims.len());
    let coords_here = cart.coords(cart_comm.0.rank);
    array_mut("dims", dims, count)?.copy_from_slice(&cart.dims[..count]);
    array_mut("coords", coords, count)?.copy_from_slice(&coords_here[..count]);
    let targets = array_mut("periods", periods, count)?;
    for (target, periodic) in targets.iter_mut().zip(&cart.periods) {
        *target = c_int::from(*periodic);
    }
    Ok(())
}

pub unsafe fn cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> Answer {
    let cart_comm = CartComm::get(comm)?;
    let cart = cart_comm.cart();
    put("rank", rank, cart.rank(array("coords", coords, cart.dims.len())?)?)
}

pub unsafe fn cart_coords(
    comm: MPI_Comm,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Answer {
    let cart_comm = CartComm::get(comm)?;
    checks::rank("rank", rank, cart_comm.0.size(), "the grid")?;
    let found = cart_comm.cart().coords(rank);
    room("maxdims", maxdims, found.len())?;
    array_mut("coords", coords, found.len())?.copy_from_slice(&found);
    Ok(())
}

pub unsafe fn cart_shift(
    comm: MPI_Comm,
    direction: c_int,
    disp: c_int,
    rank_source: *mut c_int,
    rank_dest: *mut c_int,
) -> Answer {
    let cart_comm = CartComm::get(comm)?;
    let cart = cart_comm.cart();
    let Some(direction) =
        usize::try_from(direction).ok().filter(|direction| *direction < cart.dims.len())
    else {
        let text = format!(
            "argument direction is {direction}, but the grid has {} dimensions, counted from 0",
            cart.dims.len()
        );
        return Err(fail(MPI_ERR_ARG, text));
    };
    let (source, dest) = cart.shift(cart_comm.0.rank, direction, disp);
    put("rank_source", rank_source, source)?;
    put("rank_dest", rank_dest, dest)
}

/// Refuse an array of the program that is too small.
pub(super) fn room(name: &str, room: c_int, needed: usize) -> Answer {
    if checks::count(name, room)? >= needed {
        return Ok(());
    }
    let text = format!("argument {name} is {room}, but the result has {needed} elements");
    Err(fail(MPI_ERR_ARG, text))
}

/// The rank that MPI_Cart_create would give this process: its own, because it never reorders.
pub unsafe fn cart_map(
    comm: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: *mut c_int,
) -> Answer {
    let comm = comm::intra(comm)?;
    let size = grid(&comm, ndims, dims, periods)?.size().unwrap_or(c_int::MAX);
    put("newrank", newrank, if comm.rank < size { comm.rank } else { MPI_UNDEFINED })
}

/// The grid of MPI_Cart_create's arguments, with at most as many positions as processes.
///
/// # Safety
/// Both arrays have `ndims` elements.
unsafe fn grid(
    comm: &Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
) -> Answer<Cart> {
    let ndims = checks::count("ndims", ndims)?;
    let dims = array("dims", dims, ndims)?.to_vec();
    let periods = array("periods", periods, ndims)?.iter().map(|periodic| *periodic != 0).collect();
    if let Some(nth) = dims.iter().position(|dim| *dim < 1) {
        let text =
            format!("dims[{nth}] is {}, less than one; MPI_Dims_create replaces zeros", dims[nth]);
        return Err(fail(MPI_ERR_DIMS, text));
    }
    let cart = Cart { dims, periods };
    match cart.size() {
        Some(size) if size <= comm.size() => Ok(cart),
        _ => {
            let text = format!(
                "a grid of {:?} needs more processes than the {} of {}; MPI_Dims_create \
                distributes the existing ones",
                cart.dims,
                comm.size(),
                comm.name()
            );
            Err(fail(MPI_ERR_ARG, text))
        }
    }
}

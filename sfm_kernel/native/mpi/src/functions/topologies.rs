//! What needs no communication of a Cartesian topology. (MPI_Cart_create and MPI_Cart_sub make a
//! communicator: communicators.rs.)

use std::sync::Arc;

use crate::cart::{self, Cart};
use crate::checks::{self, array, array_mut, put};
use crate::comm::{self, Comm};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::topology::Topology;

pub unsafe fn dims_create(nnodes: c_int, ndims: c_int, dims: *mut c_int) -> Answer {
    cart::dims_create(nnodes, array_mut("dims", dims, checks::count("ndims", ndims)?)?)
}

/// A communicator and its grid.
struct Placed(Arc<Comm>);

impl Placed {
    fn get(handle: MPI_Comm) -> Answer<Placed> {
        let comm = comm::get(handle)?;
        match comm.topology {
            Some(Topology::Cart(_)) => Ok(Placed(comm)),
            _ => {
                let text = format!(
                    "{} has no Cartesian topology; MPI_Cart_create makes a communicator that has",
                    comm.name()
                );
                Err(fail(MPI_ERR_TOPOLOGY, text))
            }
        }
    }

    fn cart(&self) -> &Cart {
        match &self.0.topology {
            Some(Topology::Cart(cart)) => cart,
            _ => unreachable!("looked at when it was made"),
        }
    }
}

pub unsafe fn topo_test(comm: MPI_Comm, status: *mut c_int) -> Answer {
    let kind = match comm::get(comm)?.topology {
        Some(Topology::Cart(_)) => MPI_CART,
        None => MPI_UNDEFINED,
    };
    put("status", status, kind)
}

pub unsafe fn cartdim_get(comm: MPI_Comm, ndims: *mut c_int) -> Answer {
    put("ndims", ndims, Placed::get(comm)?.cart().dims.len() as c_int)
}

pub unsafe fn cart_get(
    comm: MPI_Comm,
    maxdims: c_int,
    dims: *mut c_int,
    periods: *mut c_int,
    coords: *mut c_int,
) -> Answer {
    let placed = Placed::get(comm)?;
    let cart = placed.cart();
    let count = checks::count("maxdims", maxdims)?.min(cart.dims.len());
    let own = cart.coords(placed.0.rank);
    array_mut("dims", dims, count)?.copy_from_slice(&cart.dims[..count]);
    array_mut("coords", coords, count)?.copy_from_slice(&own[..count]);
    let places = array_mut("periods", periods, count)?;
    for (place, periodic) in places.iter_mut().zip(&cart.periods) {
        *place = c_int::from(*periodic);
    }
    Ok(())
}

pub unsafe fn cart_rank(comm: MPI_Comm, coords: *const c_int, rank: *mut c_int) -> Answer {
    let placed = Placed::get(comm)?;
    let cart = placed.cart();
    put("rank", rank, cart.rank(array("coords", coords, cart.dims.len())?)?)
}

pub unsafe fn cart_coords(
    comm: MPI_Comm,
    rank: c_int,
    maxdims: c_int,
    coords: *mut c_int,
) -> Answer {
    let placed = Placed::get(comm)?;
    checks::rank("rank", rank, placed.0.size(), "the grid")?;
    let found = placed.cart().coords(rank);
    let count = checks::count("maxdims", maxdims)?.min(found.len());
    array_mut("coords", coords, count)?.copy_from_slice(&found[..count]);
    Ok(())
}

pub unsafe fn cart_shift(
    comm: MPI_Comm,
    direction: c_int,
    disp: c_int,
    rank_source: *mut c_int,
    rank_dest: *mut c_int,
) -> Answer {
    let placed = Placed::get(comm)?;
    let cart = placed.cart();
    let Some(at) = usize::try_from(direction).ok().filter(|at| *at < cart.dims.len()) else {
        let text = format!(
            "argument direction is {direction}, but the grid has {} dimensions, counted from 0",
            cart.dims.len()
        );
        return Err(fail(MPI_ERR_DIMS, text));
    };
    let (source, dest) = cart.shift(placed.0.rank, at, disp);
    put("rank_source", rank_source, source)?;
    put("rank_dest", rank_dest, dest)
}

/// Where MPI_Cart_create would put this process: nothing is reordered, so at its own rank.
pub unsafe fn cart_map(
    comm: MPI_Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
    newrank: *mut c_int,
) -> Answer {
    let comm = comm::get(comm)?;
    let size = grid(&comm, ndims, dims, periods)?.size().unwrap_or(c_int::MAX);
    put("newrank", newrank, if comm.rank < size { comm.rank } else { MPI_UNDEFINED })
}

/// The arguments of MPI_Cart_create: a grid that the communicator has processes for.
///
/// # Safety
/// Both arrays have `ndims` elements.
pub(crate) unsafe fn grid(
    comm: &Comm,
    ndims: c_int,
    dims: *const c_int,
    periods: *const c_int,
) -> Answer<Cart> {
    let ndims = checks::count("ndims", ndims)?;
    let dims = array("dims", dims, ndims)?.to_vec();
    let periods = array("periods", periods, ndims)?.iter().map(|one| *one != 0).collect();
    if let Some(at) = dims.iter().position(|dim| *dim < 1) {
        let text = format!(
            "dims[{at}] is {}, less than one; MPI_Dims_create replaces zeros by numbers",
            dims[at]
        );
        return Err(fail(MPI_ERR_DIMS, text));
    }
    let cart = Cart { dims, periods };
    match cart.size() {
        Some(size) if size <= comm.size() => Ok(cart),
        _ => {
            let text = format!(
                "a grid of {:?} needs more processes than the {} of {}; MPI_Dims_create divides \
                 those that there are",
                cart.dims,
                comm.size(),
                comm.name()
            );
            Err(fail(MPI_ERR_TOPOLOGY, text))
        }
    }
}

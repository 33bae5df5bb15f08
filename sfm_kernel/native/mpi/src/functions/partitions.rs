//! Partitioned sends and receives.

use std::sync::Arc;

use super::requests::check_once;
use crate::checks::{array, count as checked_count, put};
use crate::comm::{self, Comm};
use crate::data::{Data, UserBuffer};
use crate::ends;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::request::partitioned::{Incoming, Outgoing, Side};
use crate::request::{self, Partner};

/// The data of all partitions, and their number.
fn data(
    buf: *const c_void,
    partitions: c_int,
    count: MPI_Count,
    datatype: MPI_Datatype,
    no_process: bool,
) -> Answer<(Data, usize)> {
    if partitions < 1 {
        let text = format!("argument partitions is {partitions}; give 1 or more");
        return Err(fail(MPI_ERR_ARG, text));
    }
    checked_count("count", count)?;
    let Some(all) = count.checked_mul(partitions.into()) else {
        let text = format!("{partitions} partitions of {count} items are more than any memory has");
        return Err(fail(MPI_ERR_COUNT, text));
    };
    let all = UserBuffer::new("buf", buf, all, datatype);
    Ok((all.data_unless_no_process(no_process)?, partitions as usize))
}

pub unsafe fn psend_init(
    buf: *const c_void,
    partitions: c_int,
    count: MPI_Count,
    datatype: MPI_Datatype,
    dest: c_int,
    tag: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let on = comm::get(comm)?;
    let to = ends::to(&on, dest, tag)?;
    let (data, partitions) = data(buf, partitions, count, datatype, to.is_none())?;
    let side = Side::Sending(Arc::new(Outgoing::new(&on, to, data, partitions)));
    put("request", request, request::partitioned(comm, Partner::To(dest, tag), side))
}

pub unsafe fn precv_init(
    buf: *mut c_void,
    partitions: c_int,
    count: MPI_Count,
    datatype: MPI_Datatype,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    _info: MPI_Info,
    request: *mut MPI_Request,
) -> Answer {
    let on = comm::get(comm)?;
    check_sender(&on, source, tag)?;
    let pattern = ends::pattern(&on, source, tag)?;
    let (data, partitions) = data(buf, partitions, count, datatype, pattern.is_none())?;
    let side = Side::Receiving(Arc::new(Incoming::new(&on, pattern, data, partitions)));
    put("request", request, request::partitioned(comm, Partner::From(source, tag), side))
}

/// Refuse MPI_ANY_SOURCE and MPI_ANY_TAG, which a partitioned receive does not take.
fn check_sender(comm: &Comm, source: c_int, tag: c_int) -> Answer {
    if source == MPI_ANY_SOURCE {
        let text = format!(
            "argument source is MPI_ANY_SOURCE, but a partitioned receive has one sender; give its \
             rank in {}",
            comm.name()
        );
        return Err(fail(MPI_ERR_RANK, text));
    }
    if tag == MPI_ANY_TAG {
        let text =
            "argument tag is MPI_ANY_TAG, but a partitioned receive needs the tag of its sender";
        return Err(fail(MPI_ERR_TAG, text));
    }
    Ok(())
}

fn wrong(text: &str) -> crate::errors::Failure {
    fail(MPI_ERR_REQUEST, text)
}

fn ready(request: MPI_Request, partitions: impl Iterator<Item = c_int> + Clone) -> Answer {
    let request = request::existing(request)?;
    let Some(Side::Sending(side)) = &request.side else {
        return Err(wrong("the request is not of MPI_Psend_init").on(request.on()));
    };
    if !request.is_active() {
        let text = "the request is not active; call MPI_Start before its partitions are made ready";
        return Err(wrong(text).on(request.on()));
    }
    side.ready(partitions).map_err(|failure| failure.on(request.on()))
}

pub unsafe fn pready(partition: c_int, request: MPI_Request) -> Answer {
    ready(request, std::iter::once(partition))
}

/// The range includes both ends.
pub unsafe fn pready_range(
    partition_low: c_int,
    partition_high: c_int,
    request: MPI_Request,
) -> Answer {
    if partition_low > partition_high {
        let text = format!(
            "argument partition_low is {partition_low}, more than partition_high, {partition_high}"
        );
        return Err(fail(MPI_ERR_ARG, text));
    }
    ready(request, partition_low..=partition_high)
}

pub unsafe fn pready_list(
    length: c_int,
    array_of_partitions: *const c_int,
    request: MPI_Request,
) -> Answer {
    let length = checked_count("length", length)?;
    ready(request, array("array_of_partitions", array_of_partitions, length)?.iter().copied())
}

pub unsafe fn parrived(request: MPI_Request, partition: c_int, flag: *mut c_int) -> Answer {
    let request = request::existing(request)?;
    let Some(Side::Receiving(side)) = &request.side else {
        return Err(wrong("the request is not of MPI_Precv_init").on(request.on()));
    };
    let has_arrived = || side.has_arrived(partition).map_err(|failure| failure.on(request.on()));
    has_arrived()?; // an error if there is no such partition
    let is_there = !request.is_active()
        || check_once(&[Some(request.clone())], || has_arrived().unwrap_or(false));
    put("flag", flag, c_int::from(is_there))
}

//! Operations on windows, with and without requests.

use std::future::poll_fn;
use std::task::Poll;

use crate::checks::{self, put as put_result};
use crate::collective::schedule::Schedule;
use crate::data::Data;
use crate::datatype;
use crate::engine::{engine, Outcome};
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::request::{self, Partner, Work};
use crate::window;
use crate::window::combining::{comparable, predefined, Combining};
use crate::window::operation::{Combined, Progress};
use crate::window::target::Named;

/// The arguments that describe memory of the origin.
#[derive(Clone, Copy)]
struct Origin {
    at: *const c_void,
    count: MPI_Count,
    datatype: MPI_Datatype,
}

impl Origin {
    fn data(&self, name: &str, target: &Named) -> Answer<Data> {
        let has_no_process = target.rank == MPI_PROC_NULL;
        Data::unless_no_process(name, self.at, self.count, self.datatype, has_no_process)
    }
}

unsafe fn begin_put(origin: Origin, named: Named, win: MPI_Win) -> Answer<Progress> {
    let window = window::get(win)?;
    let data = origin.data("origin_addr", &named)?;
    match window.target(&named)? {
        Some((target, _)) => target.put(&data),
        None => Ok(None),
    }
}

unsafe fn begin_get(origin: Origin, named: Named, win: MPI_Win) -> Answer<Progress> {
    let window = window::get(win)?;
    let data = origin.data("origin_addr", &named)?;
    match window.target(&named)? {
        Some((target, _)) => target.get(&data),
        None => Ok(None),
    }
}

/// `result`: the buffer for the elements' previous values; MPI_NO_OP is allowed only with it.
unsafe fn begin_accumulate(
    origin: Origin,
    result: Option<Origin>,
    named: Named,
    op: MPI_Op,
    win: MPI_Win,
) -> Answer<Progress> {
    let window = window::get(win)?;
    let is_no_op = op == MPI_NO_OP && result.is_some();
    let data = (!is_no_op).then(|| origin.data("origin_addr", &named)).transpose()?;
    let into = result.map(|result| result.data("result_addr", &named)).transpose()?;
    let Some((target, target_type)) = window.target(&named)? else { return Ok(None) };
    let is_nothing = |data: &Data| data.len() == 0;
    if is_nothing(&target.data) && data.as_ref().is_none_or(is_nothing) {
        // with no elements it does not matter for which types the operation is defined
        return Ok(None);
    }
    let element_type = if is_no_op { named.datatype } else { origin.datatype };
    let element = Combining::elements(&*datatype::get(element_type)?, &target_type)?;
    let combining = match result {
        Some(_) => Combining::of(op, element)?,
        None => Combining::changing(op, element)?,
    };
    let (origin, result) = (data.as_ref(), into.as_ref());
    target.accumulate(&Combined { combining, origin, result })
}

/// A request for the unfinished messages of an operation.
unsafe fn requested(progress: Progress, request: *mut MPI_Request) -> Answer {
    let work = match progress {
        None => Work::Ended(Outcome::of_send()),
        Some(fragments) => {
            let ended = async move {
                match poll_fn(|_| fragments.end().map_or(Poll::Pending, Poll::Ready)).await {
                    MPI_SUCCESS => Ok(()),
                    code => Err(fail(code, "the target has refused the operation")),
                }
            };
            Work::Schedule(Schedule::with(engine(), None, Outcome::of_send(), ended))
        }
    };
    put_result("request", request, request::open(MPI_COMM_SELF, Partner::Others, work))
}

pub unsafe fn put(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Answer {
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    begin_put(origin, named, win).map(|_| ())
}

fn named(rank: c_int, disp: MPI_Aint, count: MPI_Count, datatype: MPI_Datatype) -> Named {
    Named { rank, disp, count, datatype, by_request: false }
}

pub unsafe fn rput(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    checks::not_null("request", request)?;
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    requested(begin_put(origin, Named { by_request: true, ..named }, win)?, request)
}

pub unsafe fn get(
    origin_addr: *mut c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
) -> Answer {
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    begin_get(origin, named, win).map(|_| ())
}

pub unsafe fn rget(
    origin_addr: *mut c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    checks::not_null("request", request)?;
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    requested(begin_get(origin, Named { by_request: true, ..named }, win)?, request)
}

pub unsafe fn accumulate(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Answer {
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    begin_accumulate(origin, None, named, op, win).map(|_| ())
}

pub unsafe fn raccumulate(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    checks::not_null("request", request)?;
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    let named = Named { by_request: true, ..named };
    requested(begin_accumulate(origin, None, named, op, win)?, request)
}

pub unsafe fn get_accumulate(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    result_addr: *mut c_void,
    result_count: MPI_Count,
    result_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
) -> Answer {
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let result = Origin { at: result_addr, count: result_count, datatype: result_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    begin_accumulate(origin, Some(result), named, op, win).map(|_| ())
}

pub unsafe fn rget_accumulate(
    origin_addr: *const c_void,
    origin_count: MPI_Count,
    origin_datatype: MPI_Datatype,
    result_addr: *mut c_void,
    result_count: MPI_Count,
    result_datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    target_count: MPI_Count,
    target_datatype: MPI_Datatype,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    checks::not_null("request", request)?;
    let origin = Origin { at: origin_addr, count: origin_count, datatype: origin_datatype };
    let result = Origin { at: result_addr, count: result_count, datatype: result_datatype };
    let named = named(target_rank, target_disp, target_count, target_datatype);
    let named = Named { by_request: true, ..named };
    requested(begin_accumulate(origin, Some(result), named, op, win)?, request)
}

pub unsafe fn fetch_and_op(
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    op: MPI_Op,
    win: MPI_Win,
) -> Answer {
    predefined(&*datatype::get(datatype)?)?;
    let origin = Origin { at: origin_addr, count: 1, datatype };
    let result = Origin { at: result_addr, count: 1, datatype };
    let named = named(target_rank, target_disp, 1, datatype);
    begin_accumulate(origin, Some(result), named, op, win).map(|_| ())
}

pub unsafe fn compare_and_swap(
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: MPI_Datatype,
    target_rank: c_int,
    target_disp: MPI_Aint,
    win: MPI_Win,
) -> Answer {
    let window = window::get(win)?;
    let kind = datatype::get(datatype)?;
    comparable(&kind)?;
    let result: *const c_void = result_addr;
    for (name, at) in
        [("origin_addr", origin_addr), ("compare_addr", compare_addr), ("result_addr", result)]
    {
        checks::not_in_place(name, at)?;
        checks::buffer(name, at, kind.size, false)?;
    }
    let named = named(target_rank, target_disp, 1, datatype);
    let Some((target, _)) = window.target(&named)? else { return Ok(()) };
    target.compare_and_swap(compare_addr.cast(), origin_addr.cast(), result_addr.cast()).map(|_| ())
}

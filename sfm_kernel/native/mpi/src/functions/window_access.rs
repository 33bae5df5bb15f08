//! Operations on windows, with and without requests.

use std::future::poll_fn;
use std::task::Poll;

use crate::checks::{self, put as put_result};
use crate::collective::schedule::Schedule;
use crate::data::{Data, UserBuffer};
use crate::datatype;
use crate::engine::Outcome;
use crate::errors::{fail, Answer};
use crate::handles::*;
use crate::request::{self, Partner, Work};
use crate::window;
use crate::window::combining::{comparable, predefined, Combining};
use crate::window::operation::{Combined, Progress};
use crate::window::target::Named;

#[inline(always)]
fn data_of(buffer: &UserBuffer, target: &Named) -> Answer<Data> {
    buffer.data_unless_no_process(target.rank == MPI_PROC_NULL)
}

unsafe fn begin_put(origin: UserBuffer, named: Named, win: MPI_Win) -> Answer<Progress> {
    let window = window::get(win)?;
    let data = data_of(&origin, &named)?;
    match window.target(&named)? {
        Some((target, _)) => target.put(&data),
        None => Ok(None),
    }
}

unsafe fn begin_get(origin: UserBuffer, named: Named, win: MPI_Win) -> Answer<Progress> {
    let window = window::get(win)?;
    let data = data_of(&origin, &named)?;
    match window.target(&named)? {
        Some((target, _)) => target.get(&data),
        None => Ok(None),
    }
}

/// `result`: the buffer for the elements' previous values; MPI_NO_OP is allowed only with it.
unsafe fn begin_accumulate(
    origin: UserBuffer,
    result: Option<UserBuffer>,
    named: Named,
    op: MPI_Op,
    win: MPI_Win,
) -> Answer<Progress> {
    let window = window::get(win)?;
    let is_no_op = op == MPI_NO_OP && result.is_some();
    let data = (!is_no_op).then(|| data_of(&origin, &named)).transpose()?;
    let into = result.map(|result| data_of(&result, &named)).transpose()?;
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

/// Begin an operation on the target, and make a request for its unfinished messages.
unsafe fn by_request(
    target: Named,
    request: *mut MPI_Request,
    begin: impl FnOnce(Named) -> Answer<Progress>,
) -> Answer {
    let work = match begin(target.by_request())? {
        None => Work::Ended(Outcome::of_send()),
        Some(fragments) => {
            let ended = async move {
                match poll_fn(|_| fragments.end().map_or(Poll::Pending, Poll::Ready)).await {
                    MPI_SUCCESS => Ok(()),
                    code => Err(fail(code, "the target has refused the operation")),
                }
            };
            Work::Schedule(Schedule::with(None, Outcome::of_send(), ended))
        }
    };
    put_result("request", request, request::open(MPI_COMM_SELF, Partner::Others, work))
}

pub unsafe fn put(origin_addr: UserBuffer, target: Named, win: MPI_Win) -> Answer {
    begin_put(origin_addr, target, win).map(|_| ())
}

pub unsafe fn rput(
    origin_addr: UserBuffer,
    target: Named,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    by_request(target, request, |target| begin_put(origin_addr, target, win))
}

pub unsafe fn get(origin_addr: UserBuffer, target: Named, win: MPI_Win) -> Answer {
    begin_get(origin_addr, target, win).map(|_| ())
}

pub unsafe fn rget(
    origin_addr: UserBuffer,
    target: Named,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    by_request(target, request, |target| begin_get(origin_addr, target, win))
}

pub unsafe fn accumulate(
    origin_addr: UserBuffer,
    target: Named,
    op: MPI_Op,
    win: MPI_Win,
) -> Answer {
    begin_accumulate(origin_addr, None, target, op, win).map(|_| ())
}

pub unsafe fn raccumulate(
    origin_addr: UserBuffer,
    target: Named,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    by_request(target, request, |target| begin_accumulate(origin_addr, None, target, op, win))
}

pub unsafe fn get_accumulate(
    origin_addr: UserBuffer,
    result_addr: UserBuffer,
    target: Named,
    op: MPI_Op,
    win: MPI_Win,
) -> Answer {
    begin_accumulate(origin_addr, Some(result_addr), target, op, win).map(|_| ())
}

pub unsafe fn rget_accumulate(
    origin_addr: UserBuffer,
    result_addr: UserBuffer,
    target: Named,
    op: MPI_Op,
    win: MPI_Win,
    request: *mut MPI_Request,
) -> Answer {
    let begin = |target| begin_accumulate(origin_addr, Some(result_addr), target, op, win);
    by_request(target, request, begin)
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
    let origin = UserBuffer::new("origin_addr", origin_addr, 1, datatype);
    let result = UserBuffer::new("result_addr", result_addr, 1, datatype);
    let named = Named::new(target_rank, target_disp, 1, datatype);
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
    let named = Named::new(target_rank, target_disp, 1, datatype);
    let Some((target, _)) = window.target(&named)? else { return Ok(()) };
    target.compare_and_swap(compare_addr.cast(), origin_addr.cast(), result_addr.cast()).map(|_| ())
}

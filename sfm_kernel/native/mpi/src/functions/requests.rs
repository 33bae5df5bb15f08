//! Completing requests, and starting persistent ones.

use std::cell::Cell;
use std::sync::Arc;

use sfm_endpoint::calltext::Call;

use crate::checks::{array_mut, count, put};
use crate::comm;
use crate::engine::{engine, About, From, Outcome};
use crate::errors::{fail, Answer, Failure};
use crate::generalized::Generalized;
use crate::handles::*;
use crate::request::{self, Partner, Request, Work};

/// The requests of an array; None for those that are null.
pub(super) fn all(handles: &[MPI_Request]) -> Answer<Vec<Option<Arc<Request>>>> {
    handles.iter().map(|handle| request::get(*handle)).collect()
}

/// The processes that must act for requests that are not done, and true if no other process can
/// complete one.
fn partners(requests: &[Option<Arc<Request>>]) -> (Vec<c_int>, bool) {
    let open = || requests.iter().flatten().filter(|request| !request.is_done());
    let partners: Vec<_> =
        open().filter_map(|request| request.needed()).map(|rank| rank as c_int).collect();
    let all = partners.len() == open().count();
    (partners, all)
}

/// The largest number of open requests that observers are told.
const SHOWN: usize = 16;

/// The description of a call with these requests for observers.
fn described_all(requests: &[Option<Arc<Request>>]) -> Call {
    if let [Some(request)] = requests {
        return request.described();
    }
    let (partners, all) = partners(requests);
    let open = requests.iter().flatten().filter(|request| !request.is_done());
    let open = open.take(SHOWN).map(|request| request.begun()).collect();
    comm::shown::requests(requests.len(), open, all.then_some(&partners))
}

/// The processes whose end makes waiting useless, if all requests have to be done.
fn all_needed(requests: &[Option<Arc<Request>>]) -> Vec<usize> {
    partners(requests).0.into_iter().map(|rank| rank as usize).collect()
}

/// The same if one request suffices: those that have died, whose requests end with that; or all,
/// unless one of them can act, or a process that is not known.
fn any_needed(requests: &[Option<Arc<Request>>]) -> Vec<usize> {
    let (partners, all) = partners(requests);
    let partners = || partners.iter().map(|rank| *rank as usize);
    let is_over = all && partners().all(|rank| engine().has_lost(rank));
    partners().filter(|rank| is_over || engine().has_died(*rank)).collect()
}

/// Wait until `is_done`; gives up requests whose partner has ended. Any other error ends the wait,
/// and all requests continue.
fn wait_for(
    requests: &[Option<Arc<Request>>],
    needed: fn(&[Option<Arc<Request>>]) -> Vec<usize>,
    is_done: impl Fn() -> bool,
) -> Answer {
    while !is_done() {
        let (now, call) = (|| needed(requests), || described_all(requests));
        match engine().wait(About::receiving(From::Now(&now), &call), &is_done) {
            Err(failure) if failure.code == MPI_ERR_PROC_ABORTED => {}
            ended => return ended,
        }
        for request in requests.iter().flatten().filter(|request| !request.is_done()) {
            if request.needed().is_some_and(|rank| engine().has_lost(rank)) {
                request.give_up();
            }
        }
    }
    Ok(())
}

/// A check that all are done, to be called repeatedly: it never checks a request again that was
/// done.
fn all_done(requests: &[Option<Arc<Request>>]) -> impl Fn() -> bool + '_ {
    let done = Cell::new(0);
    move || {
        let rest = &requests[done.get()..];
        let open = rest
            .iter()
            .position(|request| request.as_ref().is_some_and(|request| !request.is_done()));
        done.set(done.get() + open.unwrap_or(rest.len()));
        open.is_none()
    }
}

pub unsafe fn wait(request: *mut MPI_Request, status: *mut MPI_Status) -> Answer {
    let Some(found) = request::get(*request)? else {
        MPI_Status::put_empty(status);
        return Ok(());
    };
    if !found.is_done() {
        let call = || found.described();
        let now = || found.needed().into_iter().collect();
        let (from, activity) = (From::Now(&now), found.activity());
        match engine().wait(About { from, activity, call: Some(&call) }, || found.is_done()) {
            Err(failure) if failure.code == MPI_ERR_PROC_ABORTED => {
                found.give_up();
                wait_for(&[Some(found.clone())], all_needed, || found.is_done())?;
            }
            ended => ended?,
        }
    }
    complete(&found, &mut *request, status)
}

unsafe fn complete(request: &Request, handle: &mut MPI_Request, status: *mut MPI_Status) -> Answer {
    if !request.is_active() {
        MPI_Status::put_empty(status);
        return Ok(());
    }
    let (outcome, failure) = request.complete(handle);
    outcome.status.put(status);
    failure.map_or(Ok(()), Err)
}

pub unsafe fn test(request: *mut MPI_Request, flag: *mut c_int, status: *mut MPI_Status) -> Answer {
    let Some(found) = request::get(*request)? else {
        MPI_Status::put_empty(status);
        return put("flag", flag, 1);
    };
    let is_done = check_once(&[Some(found.clone())], || found.is_done());
    put("flag", flag, c_int::from(is_done))?;
    if is_done {
        return complete(&found, &mut *request, status);
    }
    Ok(())
}

/// Check `is_done` once, for a call that the program repeats until it is true.
pub fn check_once(requests: &[Option<Arc<Request>>], is_done: impl FnOnce() -> bool) -> bool {
    engine().advance();
    let is_done = is_done();
    match is_done {
        true => engine().poll_succeeded(),
        false => engine().poll_failed(|| described_all(requests)),
    }
    is_done
}

/// The status with this index in an array that may be MPI_STATUSES_IGNORE.
pub(super) unsafe fn status_at(statuses: *mut MPI_Status, nth: usize) -> *mut MPI_Status {
    match is_requested(statuses) {
        true => statuses.add(nth),
        false => statuses,
    }
}

/// Complete one of several; its error goes into its status.
unsafe fn complete_one(
    request: &Option<Arc<Request>>,
    handle: &mut MPI_Request,
    status: *mut MPI_Status,
    failed: &mut Option<Failure>,
) {
    let outcome = match request {
        Some(request) => {
            let (outcome, failure) = request.complete(handle);
            *failed = failure.or_else(|| failed.take());
            outcome
        }
        None => Outcome::of_send(),
    };
    outcome.status.put_with_error(outcome.code, status);
}

/// The result of a call that completes several.
fn several(failed: Option<Failure>) -> Answer {
    match failed {
        None => Ok(()),
        Some(mut failure) => {
            failure.code = MPI_ERR_IN_STATUS;
            failure.text += "; each status has the result of its request";
            Err(failure)
        }
    }
}

pub unsafe fn waitall(
    count_: c_int,
    array_of_requests: *mut MPI_Request,
    array_of_statuses: *mut MPI_Status,
) -> Answer {
    let handles = array_mut("array_of_requests", array_of_requests, count("count", count_)?)?;
    let requests = all(handles)?;
    wait_for(&requests, all_needed, all_done(&requests))?;
    complete_all(&requests, handles, array_of_statuses)
}

pub unsafe fn testall(
    count_: c_int,
    array_of_requests: *mut MPI_Request,
    flag: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Answer {
    let handles = array_mut("array_of_requests", array_of_requests, count("count", count_)?)?;
    let requests = all(handles)?;
    let are_done = check_once(&requests, all_done(&requests));
    put("flag", flag, c_int::from(are_done))?;
    match are_done {
        true => complete_all(&requests, handles, array_of_statuses),
        false => Ok(()),
    }
}

unsafe fn complete_all(
    requests: &[Option<Arc<Request>>],
    handles: &mut [MPI_Request],
    statuses: *mut MPI_Status,
) -> Answer {
    let mut failed = None;
    for (nth, (request, handle)) in requests.iter().zip(handles).enumerate() {
        complete_one(request, handle, status_at(statuses, nth), &mut failed);
    }
    several(failed)
}

/// The first active request that is done; None if none is active.
pub(super) fn first_done(requests: &[Option<Arc<Request>>]) -> Option<Option<usize>> {
    if !requests.iter().flatten().any(|request| request.is_active()) {
        return None;
    }
    let done = |request: &Arc<Request>| request.is_active() && request.is_done();
    Some(requests.iter().position(|request| request.as_ref().is_some_and(done)))
}

pub unsafe fn waitany(
    count_: c_int,
    array_of_requests: *mut MPI_Request,
    index: *mut c_int,
    status: *mut MPI_Status,
) -> Answer {
    let handles = array_mut("array_of_requests", array_of_requests, count("count", count_)?)?;
    let requests = all(handles)?;
    if first_done(&requests).is_none() {
        MPI_Status::put_empty(status);
        return put("index", index, MPI_UNDEFINED);
    }
    wait_for(&requests, any_needed, || first_done(&requests).flatten().is_some())?;
    let nth = first_done(&requests).flatten().expect("waited for");
    put("index", index, nth as c_int)?;
    complete(requests[nth].as_ref().expect("active"), &mut handles[nth], status)
}

pub unsafe fn testany(
    count_: c_int,
    array_of_requests: *mut MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Answer {
    let handles = array_mut("array_of_requests", array_of_requests, count("count", count_)?)?;
    let requests = all(handles)?;
    check_once(&requests, || first_done(&requests) != Some(None));
    let found = first_done(&requests);
    put("index", index, found.flatten().map_or(MPI_UNDEFINED, |nth| nth as c_int))?;
    put("flag", flag, c_int::from(found != Some(None)))?;
    match found {
        None => MPI_Status::put_empty(status),
        Some(None) => {}
        Some(Some(nth)) => {
            return complete(requests[nth].as_ref().expect("active"), &mut handles[nth], status)
        }
    }
    Ok(())
}

/// Complete all that are done; writes their number, or MPI_UNDEFINED if none is active.
unsafe fn some(
    handles: &mut [MPI_Request],
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MPI_Status,
    wait: bool,
) -> Answer {
    let requests = all(handles)?;
    if first_done(&requests).is_none() {
        return put("outcount", outcount, MPI_UNDEFINED);
    }
    let is_one_done = || first_done(&requests).flatten().is_some();
    if wait {
        wait_for(&requests, any_needed, is_one_done)?;
    } else {
        check_once(&requests, is_one_done);
    }
    let (mut found, mut failed) = (0, None);
    for (nth, (request, handle)) in requests.iter().zip(handles).enumerate() {
        if request.as_ref().is_some_and(|request| request.is_active() && request.is_done()) {
            *indices.add(found) = nth as c_int;
            complete_one(request, handle, status_at(statuses, found), &mut failed);
            found += 1;
        }
    }
    put("outcount", outcount, found as c_int)?;
    several(failed)
}

pub unsafe fn waitsome(
    incount: c_int,
    array_of_requests: *mut MPI_Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Answer {
    let handles = array_mut("array_of_requests", array_of_requests, count("incount", incount)?)?;
    some(handles, outcount, array_of_indices, array_of_statuses, true)
}

pub unsafe fn testsome(
    incount: c_int,
    array_of_requests: *mut MPI_Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Answer {
    let handles = array_mut("array_of_requests", array_of_requests, count("incount", incount)?)?;
    some(handles, outcount, array_of_indices, array_of_statuses, false)
}

pub unsafe fn request_free(request: *mut MPI_Request) -> Answer {
    request::existing(*request)?;
    request::release(*request)?;
    *request = MPI_REQUEST_NULL;
    Ok(())
}

pub unsafe fn cancel(request: *mut MPI_Request) -> Answer {
    request::existing(*request)?.cancel()
}

pub unsafe fn start(request: *mut MPI_Request) -> Answer {
    request::existing(*request)?.start()
}

pub unsafe fn startall(count_: c_int, array_of_requests: *mut MPI_Request) -> Answer {
    let handles = array_mut("array_of_requests", array_of_requests, count("count", count_)?)?;
    handles.iter_mut().try_for_each(|handle| start(handle))
}

pub unsafe fn grequest_start(
    query_fn: MPI_Grequest_query_function,
    free_fn: MPI_Grequest_free_function,
    cancel_fn: MPI_Grequest_cancel_function,
    extra_state: *mut c_void,
    request: *mut MPI_Request,
) -> Answer {
    let generalized = Generalized::new(query_fn, free_fn, cancel_fn, extra_state);
    let work = Work::Generalized(Arc::new(generalized));
    put("request", request, request::open(MPI_COMM_SELF, Partner::Others, work))
}

pub unsafe fn grequest_complete(request: MPI_Request) -> Answer {
    let generalized = request::get(request)?.and_then(|request| request.generalized());
    let wrong = || fail(MPI_ERR_REQUEST, "the request is not of MPI_Grequest_start");
    generalized.ok_or_else(wrong)?.end();
    Ok(())
}

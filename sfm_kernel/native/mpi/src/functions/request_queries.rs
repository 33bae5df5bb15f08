//! Queries about the progress of requests, none of which they complete.

use std::sync::Arc;

use super::requests::{all, check_once, first_done, status_at};
use crate::checks::{array, array_mut, count, put};
use crate::engine::Outcome;
use crate::errors::Answer;
use crate::handles::*;
use crate::request::{self, Request};

pub unsafe fn request_get_status(
    request: MPI_Request,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Answer {
    let Some(found) = request::get(request)? else {
        MPI_Status::put_empty(status);
        return put("flag", flag, 1);
    };
    let is_done = check_once(&[Some(found.clone())], || found.is_done());
    match is_done {
        true if !found.is_active() => MPI_Status::put_empty(status),
        true => found.outcome().status.put(status),
        false => {}
    }
    put("flag", flag, c_int::from(is_done))
}

/// Write the status of one of several requests, with its error.
unsafe fn write_status(request: &Option<Arc<Request>>, status: *mut MPI_Status) {
    if is_requested(status) {
        let outcome = request.as_ref().map_or_else(Outcome::of_send, |request| request.outcome());
        outcome.status.put_with_error(outcome.code, status);
    }
}

pub unsafe fn request_get_status_all(
    count_: c_int,
    array_of_requests: *const MPI_Request,
    flag: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Answer {
    let requests = all(array("array_of_requests", array_of_requests, count("count", count_)?)?)?;
    let are_done =
        check_once(&requests, || requests.iter().flatten().all(|request| request.is_done()));
    put("flag", flag, c_int::from(are_done))?;
    if !are_done {
        return Ok(());
    }
    for (nth, request) in requests.iter().enumerate() {
        write_status(request, status_at(array_of_statuses, nth));
    }
    Ok(())
}

pub unsafe fn request_get_status_any(
    count_: c_int,
    array_of_requests: *const MPI_Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Answer {
    let requests = all(array("array_of_requests", array_of_requests, count("count", count_)?)?)?;
    check_once(&requests, || first_done(&requests) != Some(None));
    let found = first_done(&requests);
    put("flag", flag, c_int::from(found != Some(None)))?;
    match found {
        None => MPI_Status::put_empty(status),
        Some(None) => {}
        Some(Some(nth)) => requests[nth].as_ref().expect("active").outcome().status.put(status),
    }
    put("index", index, found.flatten().map_or(MPI_UNDEFINED, |nth| nth as c_int))
}

pub unsafe fn request_get_status_some(
    incount: c_int,
    array_of_requests: *const MPI_Request,
    outcount: *mut c_int,
    array_of_indices: *mut c_int,
    array_of_statuses: *mut MPI_Status,
) -> Answer {
    let requests = all(array("array_of_requests", array_of_requests, count("incount", incount)?)?)?;
    let indices = array_mut("array_of_indices", array_of_indices, requests.len())?;
    if first_done(&requests).is_none() {
        return put("outcount", outcount, MPI_UNDEFINED);
    }
    check_once(&requests, || first_done(&requests).flatten().is_some());
    let mut found = 0;
    for (nth, request) in requests.iter().enumerate() {
        if request.as_ref().is_some_and(|request| request.is_active() && request.is_done()) {
            indices[found] = nth as c_int;
            write_status(request, status_at(array_of_statuses, found));
            found += 1;
        }
    }
    put("outcount", outcount, found as c_int)
}

//! Receives and probes.

use std::sync::Arc;

use crate::checks::put;
use crate::collective::mismatch;
use crate::comm;
use crate::data::{Data, UserBuffer};
use crate::ends;
use crate::engine::{
    self, engine, probed, About, Collective, From, Outcome, Pattern, Receiving, Taken,
};
use crate::errors::{fail, Answer, On, INTERRUPTED};
use crate::handles::*;
use crate::message::{self, Message};
use crate::objects;
use crate::request::{self, finish, Partner, Work};

/// The outcome of a receive from MPI_PROC_NULL.
pub(super) fn nothing() -> Outcome {
    Outcome { status: MPI_Status::of_no_process(), code: MPI_SUCCESS }
}

/// Wait for a receive. If it fails, its memory is the program's again.
pub(super) unsafe fn complete(
    receiving: &Arc<Receiving>,
    about: About<'_>,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Answer {
    let waited = engine().wait(about, || receiving.end.is_done());
    if let Err(failure) = waited {
        if engine().cancel_receive(receiving, Outcome::failed(failure.code)) {
            return Err(failure);
        }
        // Its message has come after all. The program is interrupted all the same; otherwise it can
        // fail now only if the message is an offer and the sender is dead.
        if failure.code == INTERRUPTED {
            engine().release(receiving);
            return Err(failure);
        }
        let about = About { from: receiving.pattern.from.map_or(about.from, From::One), ..about };
        let waited = engine().wait(about, || receiving.end.is_done());
        waited.inspect_err(|_| engine().release(receiving))?;
    }
    ended(receiving, comm, status)
}

/// The answer of a receive that has ended.
unsafe fn ended(receiving: &Receiving, comm: MPI_Comm, status: *mut MPI_Status) -> Answer {
    let outcome = receiving.end.get().expect("waited for");
    outcome.status.put(status);
    match outcome.code {
        MPI_SUCCESS => Ok(()),
        _ => Err(mismatch::of_receive(receiving, &outcome).on(On::Comm(comm))),
    }
}

pub unsafe fn recv(
    buf: UserBuffer,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    status: *mut MPI_Status,
) -> Answer {
    let on = comm::get(comm)?;
    let pattern = ends::pattern(&on, source, tag)?;
    let data = buf.data_unless_no_process(pattern.is_none())?;
    let Some(pattern) = pattern else { return finish(&nothing(), comm, status) };
    let receiving = engine().receive(&pattern, data);
    let call = || comm::shown::receive(&on, &pattern);
    let about = About::receiving(ends::from(&on, &pattern), &call);
    let received = complete(&receiving, about, comm, status);
    objects::refuse_object(&receiving, &buf).and(received)
}

pub unsafe fn irecv(
    buf: UserBuffer,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let pattern = ends::pattern(&*comm::get(comm)?, source, tag)?;
    let data = buf.data_unless_no_process(pattern.is_none())?;
    let work = begin(pattern.as_ref(), data);
    put("request", request, request::open(comm, Partner::From(source, tag), work))
}

pub(super) unsafe fn begin(pattern: Option<&Pattern>, data: Data) -> Work {
    match pattern {
        None => Work::Ended(nothing()),
        Some(pattern) => Work::Receiving(engine().receive(pattern, data)),
    }
}

pub unsafe fn recv_init(
    buf: UserBuffer,
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    request: *mut MPI_Request,
) -> Answer {
    let pattern = ends::pattern(&*comm::get(comm)?, source, tag)?;
    let data = buf.data_unless_no_process(pattern.is_none())?;
    // SAFETY: the program promises that the memory is valid whenever it starts the request.
    let start = Box::new(move || Ok(unsafe { begin(pattern.as_ref(), data.clone()) }));
    put("request", request, request::persistent(comm, Partner::From(source, tag), start))
}

pub unsafe fn probe(source: c_int, tag: c_int, comm: MPI_Comm, status: *mut MPI_Status) -> Answer {
    let on = comm::get(comm)?;
    let Some(pattern) = ends::pattern(&on, source, tag)? else {
        return finish(&nothing(), comm, status);
    };
    let mut found = None;
    let call = || comm::shown::receive(&on, &pattern);
    engine().wait(About::receiving(ends::from(&on, &pattern), &call), || {
        found = engine().probe(&pattern);
        found.is_some()
    })?;
    found.expect("waited for").put(status);
    Ok(())
}

fn check_once<T>(on: &comm::Comm, pattern: &Pattern, check: impl Fn() -> Option<T>) -> Option<T> {
    engine().advance();
    let found = check();
    match &found {
        Some(_) => engine().poll_succeeded(),
        None => engine().poll_failed(|| comm::shown::receive(on, pattern)),
    }
    found
}

pub unsafe fn iprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    status: *mut MPI_Status,
) -> Answer {
    let on = comm::get(comm)?;
    let Some(pattern) = ends::pattern(&on, source, tag)? else {
        put("flag", flag, 1)?;
        return finish(&nothing(), comm, status);
    };
    let found = check_once(&on, &pattern, || engine().probe(&pattern));
    if let Some(found) = &found {
        found.put(status);
    }
    put("flag", flag, c_int::from(found.is_some()))
}

pub unsafe fn mprobe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Answer {
    let on = comm::get(comm)?;
    let Some(pattern) = ends::pattern(&on, source, tag)? else {
        put("message", message, MPI_MESSAGE_NO_PROC)?;
        return finish(&nothing(), comm, status);
    };
    let taken = Message::to_come(comm);
    let number = engine().take_message(&pattern, &taken);
    let call = || comm::shown::receive(&on, &pattern);
    let about = About::receiving(ends::from(&on, &pattern), &call);
    engine().wait(about, || taken.get().is_some()).or_else(|failure| {
        match engine().leave_message(&pattern, number) {
            true => Err(failure),
            false => Ok(()), // it has come after all
        }
    })?;
    hand_out(taken, message, status)
}

unsafe fn hand_out(
    taken: Arc<Message>,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Answer {
    let (envelope, bytes) = taken.get().expect("it has come");
    probed(envelope, bytes).put(status);
    put("message", message, message::open(taken))
}

pub unsafe fn improbe(
    source: c_int,
    tag: c_int,
    comm: MPI_Comm,
    flag: *mut c_int,
    message: *mut MPI_Message,
    status: *mut MPI_Status,
) -> Answer {
    let on = comm::get(comm)?;
    let Some(pattern) = ends::pattern(&on, source, tag)? else {
        put("message", message, MPI_MESSAGE_NO_PROC)?;
        put("flag", flag, 1)?;
        return finish(&nothing(), comm, status);
    };
    let taken = Message::to_come(comm);
    let check = || {
        let number = engine().take_message(&pattern, &taken);
        (!engine().leave_message(&pattern, number)).then_some(())
    };
    if check_once(&on, &pattern, check).is_none() {
        return put("flag", flag, 0);
    }
    put("flag", flag, 1)?;
    hand_out(taken, message, status)
}

/// Begin to receive a message that was taken out of the inbox.
unsafe fn begin_taken(
    buf: UserBuffer,
    message: *mut MPI_Message,
) -> Answer<Option<(Taken, MPI_Comm)>> {
    let data = buf.data()?;
    if *message == MPI_MESSAGE_NULL {
        let text = "the message is MPI_MESSAGE_NULL: it was received before, or no probe has \
            returned one";
        return Err(fail(MPI_ERR_REQUEST, text));
    }
    let taken = std::mem::replace(&mut *message, MPI_MESSAGE_NULL);
    if taken == MPI_MESSAGE_NO_PROC {
        return Ok(None);
    }
    let taken = message::release(taken)?;
    Ok(Some((engine().receive_taken(&taken, Collective::Message, data), taken.comm)))
}

pub unsafe fn mrecv(buf: UserBuffer, message: *mut MPI_Message, status: *mut MPI_Status) -> Answer {
    let Some((taken, comm)) = begin_taken(buf, message)? else {
        return finish(&nothing(), MPI_COMM_WORLD, status);
    };
    match &taken {
        Taken::Ended(receiving) => ended(receiving, comm, status),
        Taken::GoesOn(receiving) => complete(receiving, From::Nobody.into(), comm, status),
    }?;
    objects::expect_object(&taken, engine::site());
    Ok(())
}

pub unsafe fn imrecv(
    buf: UserBuffer,
    message: *mut MPI_Message,
    request: *mut MPI_Request,
) -> Answer {
    let (work, comm) = match begin_taken(buf, message)? {
        None => (Work::Ended(nothing()), MPI_COMM_WORLD),
        Some((taken, comm)) => (Work::Receiving(taken.shared()), comm),
    };
    put("request", request, request::open(comm, Partner::Others, work))
}

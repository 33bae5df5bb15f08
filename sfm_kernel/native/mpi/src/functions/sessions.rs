//! Sessions, their process sets, and communicators made from groups alone.

use std::sync::{Arc, Mutex};

use crate::checks::{self, put, put_new, put_text, text};
use crate::comm::{self, Comm};
use crate::errors::{fail, Answer, On};
use crate::group::{self, Group};
use crate::handles::*;
use crate::info::{self, Hints, Info};
use crate::making::{self, inter};
use crate::{raising, session};

pub unsafe fn session_init(
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    session: *mut MPI_Session,
) -> Answer {
    put("session", session, session::open(&info::copy_or_empty(info)?, errhandler)?)
}

pub unsafe fn session_finalize(session: *mut MPI_Session) -> Answer {
    session::close(*session)?;
    *session = MPI_SESSION_NULL;
    Ok(())
}

pub unsafe fn session_get_info(session: MPI_Session, info_used: *mut MPI_Info) -> Answer {
    let found = session::get(session)?;
    put_new("info_used", info_used, || info::open(found.info.clone()))
}

pub unsafe fn session_get_num_psets(
    session: MPI_Session,
    _info: MPI_Info,
    npset_names: *mut c_int,
) -> Answer {
    session::get(session)?;
    put("npset_names", npset_names, session::SETS.len() as c_int)
}

/// With a length of 0 only the name's length, including its final zero, is returned.
pub unsafe fn session_get_nth_pset(
    session: MPI_Session,
    _info: MPI_Info,
    n: c_int,
    pset_len: *mut c_int,
    pset_name: *mut c_char,
) -> Answer {
    session::get(session)?;
    let Some(name) = usize::try_from(n).ok().and_then(|n| session::SETS.get(n)) else {
        let text = format!("argument n is {n}, but there are {} sets", session::SETS.len());
        return Err(fail(MPI_ERR_ARG, text));
    };
    checks::not_null("pset_len", pset_len)?;
    if *pset_len > 0 {
        put_text("pset_name", pset_name, *pset_len, name, std::ptr::null_mut())?;
    }
    *pset_len = name.len() as c_int + 1;
    Ok(())
}

pub unsafe fn session_get_pset_info(
    session: MPI_Session,
    pset_name: *const c_char,
    info: *mut MPI_Info,
) -> Answer {
    let group = session::set(session, &text("pset_name", pset_name)?)?;
    let mut about = Info::default();
    about.set("mpi_size".into(), group.size().to_string());
    put_new("info", info, || info::open(about))
}

pub unsafe fn group_from_session_pset(
    session: MPI_Session,
    pset_name: *const c_char,
    newgroup: *mut MPI_Group,
) -> Answer {
    let made = session::set(session, &text("pset_name", pset_name)?)?;
    put_new("newgroup", newgroup, || group::open(made))
}

pub unsafe fn comm_create_from_group(
    group: MPI_Group,
    stringtag: *const c_char,
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    newcomm: *mut MPI_Comm,
) -> Answer {
    put("newcomm", newcomm, MPI_COMM_NULL)?;
    let (group, tag) = (group::get(group)?, text("stringtag", stringtag)?);
    let info = info::copy_or_empty(info)?;
    if group.size() == 0 {
        return Ok(());
    }
    let rank = member("group", &group)?;
    let number = making::from_group(&group, rank, &tag)?;
    let made = Comm::new(number, group, rank as c_int);
    put("newcomm", newcomm, opened(made, info, errhandler)?)
}

pub unsafe fn intercomm_create_from_groups(
    local_group: MPI_Group,
    local_leader: c_int,
    remote_group: MPI_Group,
    remote_leader: c_int,
    stringtag: *const c_char,
    info: MPI_Info,
    errhandler: MPI_Errhandler,
    newintercomm: *mut MPI_Comm,
) -> Answer {
    put("newintercomm", newintercomm, MPI_COMM_NULL)?;
    let (local, tag) = (group::get(local_group)?, text("stringtag", stringtag)?);
    let info = info::copy_or_empty(info)?;
    let rank = member("local_group", &local)?;
    checks::rank("local_leader", local_leader, local.size(), "local_group")?;
    let far = match rank == local_leader as usize {
        false => None,
        true => {
            let remote = group::get(remote_group)?;
            checks::rank("remote_leader", remote_leader, remote.size(), "remote_group")?;
            Some(remote.members[remote_leader as usize])
        }
    };
    let made = inter::from_groups(&local, rank, local_leader as usize, far, &tag)?;
    put("newintercomm", newintercomm, opened(made, info, errhandler)?)
}

fn member(name: &str, group: &Arc<Group>) -> Answer<usize> {
    let rank = group.calling_rank().map(|rank| rank as usize);
    rank.ok_or_else(|| fail(MPI_ERR_GROUP, format!("this process is not in argument {name}")))
}

fn opened(mut made: Comm, info: Info, errhandler: MPI_Errhandler) -> Answer<MPI_Comm> {
    made.hints = Mutex::new(Hints::of(comm::HINTS, &info));
    made.errhandler.set(errhandler)?;
    made.session = made.group.session;
    Ok(comm::open(made))
}

pub unsafe fn session_set_errhandler(session: MPI_Session, errhandler: MPI_Errhandler) -> Answer {
    session::get(session)?.errhandler.set(errhandler)
}

pub unsafe fn session_get_errhandler(
    session: MPI_Session,
    errhandler: *mut MPI_Errhandler,
) -> Answer {
    put("errhandler", errhandler, session::get(session)?.errhandler.get())
}

/// As if a function of MPI had failed with this code.
pub unsafe fn session_call_errhandler(session: MPI_Session, errorcode: c_int) -> Answer {
    session::get(session)?;
    raising::call("MPI_Session_call_errhandler", errorcode, On::Session(session));
    Ok(())
}

//! `sfm_endpoint`: joining and leaving.

use std::ffi::{c_char, c_int, CString};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock};

use sfm_endpoint::{Endpoint, JoinRequest, Name, Program};
use sfm_native::calls::deadline;

use crate::arguments::{given, limit, name, place, text, text_if_any};
use crate::codes::{answer, answer_with, Code, Failure, Result};

/// `SFM_ANY_RANK` and `SFM_GUEST`.
const ANY_RANK: c_int = -1;
const GUEST: c_int = -2;

/// What C has a pointer to. Never freed, but small: so a call after `sfm_leave` fails as it should.
pub struct Handle {
    /// None once it has left.
    endpoint: RwLock<Option<Arc<Endpoint>>>,
    rank: c_int,
    name: CString,
    process: u32,
}

/// All that were made.
static HANDLES: Mutex<Vec<&'static Handle>> = Mutex::new(Vec::new());

impl Handle {
    /// The endpoint; an error once it has left.
    pub fn endpoint(&self) -> Result<Arc<Endpoint>> {
        let endpoint = self.endpoint.read().unwrap_or_else(PoisonError::into_inner);
        let gone = || Failure::new(Code::Closed, "this process has left the world: join it again");
        endpoint.clone().ok_or_else(gone)
    }

    fn leave(&self) {
        if self.process != std::process::id() {
            return; // a forked child: the endpoint is its parent's, as its locks are
        }
        let endpoint = self.endpoint.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(endpoint) = endpoint {
            endpoint.leave();
        }
    }
}

/// The endpoint behind a pointer.
pub unsafe fn endpoint(handle: *const Handle) -> Result<Arc<Endpoint>> {
    given(handle, "the endpoint")?.endpoint()
}

/// What the environment, or the caller, says of who this process is to be.
struct Wanted {
    world: String,
    request: JoinRequest,
    size: Option<u64>,
}

fn wanted(world: Option<&str>, name: Option<&str>, rank: c_int) -> Result<Wanted> {
    if rank < GUEST {
        let text = format!("rank {rank}: give 0 or more, SFM_ANY_RANK or SFM_GUEST");
        return Err(Failure::new(Code::BadName, text));
    }
    let guest = rank == GUEST;
    let given = i64::from(rank);
    let mut request =
        JoinRequest { name: name.map(str::to_owned), rank: (given >= 0).then_some(given), guest };
    if let Some(world) = world {
        return Ok(Wanted { world: world.to_owned(), request, size: None });
    }
    let told = |variable: &str| std::env::var(variable).ok().filter(|text| !text.is_empty());
    let number = |variable: &str| match told(variable) {
        None => Ok(None),
        Some(text) => text
            .parse::<i64>()
            .map(Some)
            .map_err(|_| Failure::argument(format!("{variable}={text:?}: a number was expected"))),
    };
    let prefix =
        ["SFM_", "SFM_MPI_"].into_iter().find(|one| told(&format!("{one}WORLD")).is_some());
    let Some(prefix) = prefix else {
        let text = "no world was given, and the environment has none: give sfm_join the name of a \
                    world, or set SFM_WORLD, as launchers do";
        return Err(Failure::argument(text));
    };
    let world = told(&format!("{prefix}WORLD")).expect("just seen");
    if request.name.is_none() {
        request.name = told(&format!("{prefix}NAME"));
    }
    // What a rank of an MPI program starts has its environment, and is no rank.
    let is_rank = told("SFM_MPI_PID").is_none_or(|pid| pid == std::process::id().to_string());
    if rank == ANY_RANK && (prefix == "SFM_" || is_rank) {
        request.rank = number(&format!("{prefix}RANK"))?;
    }
    let size = number(&format!("{prefix}SIZE"))?.and_then(|size| u64::try_from(size).ok());
    Ok(Wanted { world, request, size })
}

pub unsafe extern "C" fn join(
    world: *const c_char,
    name: *const c_char,
    rank: c_int,
    endpoint: *mut *const Handle,
) -> c_int {
    answer(|| {
        let to = place(endpoint, "the place for the endpoint")?;
        let world = text_if_any(world, "the world's name")?;
        let Wanted { world, request, size } = wanted(world, text_if_any(name, "the name")?, rank)?;
        let made = Endpoint::join(&world, &request, size, Box::new(Program))?;
        leave_at_the_end();
        let member = made.member();
        let name = match &member.name {
            Name::Text(text) => text.clone(),
            Name::Rank(rank) => rank.to_string(),
        };
        let rank = member.rank.and_then(|rank| c_int::try_from(rank).ok()).unwrap_or(-1);
        let name = CString::new(name).unwrap_or_default();
        let endpoint = RwLock::new(Some(Arc::new(made)));
        let handle: &'static Handle =
            Box::leak(Box::new(Handle { endpoint, rank, name, process: std::process::id() }));
        HANDLES.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
        *to = handle;
        Ok(())
    })
}

fn leave_at_the_end() {
    static ASKED: Once = Once::new();
    extern "C" fn leave_all() {
        answer(|| {
            // Not waited for: who ends the program in a forked child may never get it.
            let handles = HANDLES.try_lock().map(|handles| handles.clone()).unwrap_or_default();
            handles.into_iter().for_each(Handle::leave);
            Ok(())
        });
    }
    ASKED.call_once(|| {
        // SAFETY: a function that lives as long as the library, which is never unloaded.
        unsafe { libc::atexit(leave_all) };
    });
}

pub unsafe extern "C" fn leave(handle: *const Handle) {
    answer(|| {
        if let Some(handle) = handle.as_ref() {
            handle.leave();
        }
        Ok(())
    });
}

pub unsafe extern "C" fn rank(handle: *const Handle) -> c_int {
    answer_with(-1, || Ok(given(handle, "the endpoint")?.rank))
}

pub unsafe extern "C" fn size(handle: *const Handle) -> c_int {
    answer_with(-1, || Ok(c_int::try_from(endpoint(handle)?.size()?).unwrap_or(c_int::MAX)))
}

pub unsafe extern "C" fn own_name(handle: *const Handle) -> *const c_char {
    answer_with(std::ptr::null(), || Ok(given(handle, "the endpoint")?.name.as_ptr()))
}

pub unsafe extern "C" fn wait_for(
    handle: *const Handle,
    who: *const c_char,
    seconds: f64,
) -> c_int {
    answer(|| {
        let (endpoint, limit) = (endpoint(handle)?, limit(seconds)?);
        let who = name(text(who, "the name")?);
        if endpoint.wait_for(std::slice::from_ref(&who), deadline(limit))? {
            return Ok(());
        }
        let world = endpoint.folder().file_name().unwrap_or_default().to_string_lossy();
        let text = format!("{who} has not joined world '{world}' within {seconds} s: start it");
        Err(Failure::new(Code::TimedOut, text))
    })
}

pub unsafe extern "C" fn set_buffering(handle: *const Handle, bytes: usize) -> c_int {
    answer(|| {
        endpoint(handle)?.buffering.store(bytes as u64, Ordering::Relaxed);
        Ok(())
    })
}

/// Only what a handler of a signal may do: no allocation, no lock that this thread may have.
pub unsafe extern "C" fn interrupt(handle: *const Handle) -> c_int {
    let endpoint = match handle.as_ref().map(|handle| handle.endpoint.try_read()) {
        Some(Ok(endpoint)) => endpoint,
        Some(Err(_)) => return Code::Closed as c_int, // it is just leaving
        None => return Code::BadArgument as c_int,
    };
    match &*endpoint {
        Some(endpoint) => {
            endpoint.interrupt();
            Code::Ok as c_int
        }
        None => Code::Closed as c_int,
    }
}

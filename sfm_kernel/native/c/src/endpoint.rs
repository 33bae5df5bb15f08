//! `sfm_endpoint`: joining and leaving.

use std::ffi::{c_char, c_int, CString};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock};

use sfm_endpoint::{Endpoint, JoinRequest, Name, Program};
use sfm_native::calls::deadline;
use sfm_native::sync::lock;

use crate::arguments::{limit, name, optional_text, required, text, writable};
use crate::codes::{answer, answer_with, Code, Failure, Result};

/// `SFM_ANY_RANK` and `SFM_GUEST`.
const ANY_RANK: c_int = -1;
const GUEST: c_int = -2;

/// The target of C's pointer. It is small and never freed, so that a call after `sfm_leave` returns
/// an error.
pub struct Handle {
    /// None after leaving.
    endpoint: RwLock<Option<Arc<Endpoint>>>,
    rank: c_int,
    name: CString,
    process: u32,
}

static HANDLES: Mutex<Vec<&'static Handle>> = Mutex::new(Vec::new());

impl Handle {
    /// The endpoint; an error after leaving.
    pub fn endpoint(&self) -> Result<Arc<Endpoint>> {
        let endpoint = self.endpoint.read().unwrap_or_else(PoisonError::into_inner);
        let left = || Failure::new(Code::Closed, "this process has left the world: join it again");
        endpoint.clone().ok_or_else(left)
    }

    fn leave(&self) {
        if self.process != std::process::id() {
            return; // a forked child: the endpoint and its locks are the parent's
        }
        let endpoint = self.endpoint.write().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(endpoint) = endpoint {
            endpoint.leave();
        }
    }
}

pub unsafe fn endpoint(handle: *const Handle) -> Result<Arc<Endpoint>> {
    required(handle, "the endpoint")?.endpoint()
}

/// The identity that the caller and the environment demand for this process.
struct Joining {
    world: String,
    request: JoinRequest,
    size: Option<u64>,
}

fn joining(world: Option<&str>, name: Option<&str>, rank: c_int) -> Result<Joining> {
    if rank < GUEST {
        let text = format!("rank {rank}: give 0 or more, SFM_ANY_RANK or SFM_GUEST");
        return Err(Failure::new(Code::BadName, text));
    }
    let guest = rank == GUEST;
    let fixed = i64::from(rank);
    let mut request = JoinRequest {
        name: name.map(Name::from),
        rank: (fixed >= 0).then_some(fixed),
        guest,
        ..JoinRequest::default()
    };
    if let Some(world) = world {
        return Ok(Joining { world: world.to_owned(), request, size: None });
    }
    let variable_value =
        |variable: &str| std::env::var(variable).ok().filter(|text| !text.is_empty());
    let number = |variable: &str| match variable_value(variable) {
        None => Ok(None),
        Some(text) => text
            .parse::<i64>()
            .map(Some)
            .map_err(|_| Failure::argument(format!("{variable}={text:?}: a number was expected"))),
    };
    let prefix = ["SFM_", "SFM_MPI_"]
        .into_iter()
        .find(|prefix| variable_value(&format!("{prefix}WORLD")).is_some());
    let Some(prefix) = prefix else {
        let text = "no world was given, and the environment has none: give sfm_join the name of a \
                    world, or set SFM_WORLD, as launchers do";
        return Err(Failure::argument(text));
    };
    let world = variable_value(&format!("{prefix}WORLD")).expect("just seen");
    if request.name.is_none() {
        request.name = variable_value(&format!("{prefix}NAME")).map(Name::Text);
    }
    let names = variable_value(&format!("{prefix}NAMES")).unwrap_or_default();
    request.names = names.split(',').filter(|name| !name.is_empty()).map(Name::from).collect();
    // A process that a rank of an MPI program starts inherits its environment, but is not a rank.
    let is_rank =
        variable_value("SFM_MPI_PID").is_none_or(|pid| pid == std::process::id().to_string());
    if rank == ANY_RANK && (prefix == "SFM_" || is_rank) {
        request.rank = number(&format!("{prefix}RANK"))?;
    }
    let size = number(&format!("{prefix}SIZE"))?.and_then(|size| u64::try_from(size).ok());
    Ok(Joining { world, request, size })
}

pub unsafe extern "C" fn join(
    world: *const c_char,
    name: *const c_char,
    rank: c_int,
    endpoint: *mut *const Handle,
) -> c_int {
    answer(|| {
        let to = writable(endpoint, "the pointer to the endpoint")?;
        let world = optional_text(world, "the world's name")?;
        let Joining { world, request, size } =
            joining(world, optional_text(name, "the name")?, rank)?;
        let made = Endpoint::join(&world, &request, size, Arc::new(Program))?;
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
        lock(&HANDLES).push(handle);
        *to = handle;
        Ok(())
    })
}

fn leave_at_the_end() {
    static REGISTERED: Once = Once::new();
    extern "C" fn leave_all() {
        answer(|| {
            // Not locked: a forked child that exits may never get the lock.
            let handles = HANDLES.try_lock().map(|handles| handles.clone()).unwrap_or_default();
            handles.into_iter().for_each(Handle::leave);
            Ok(())
        });
    }
    REGISTERED.call_once(|| {
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
    answer_with(-1, || Ok(required(handle, "the endpoint")?.rank))
}

pub unsafe extern "C" fn size(handle: *const Handle) -> c_int {
    answer_with(-1, || Ok(c_int::try_from(endpoint(handle)?.size()?).unwrap_or(c_int::MAX)))
}

pub unsafe extern "C" fn this_name(handle: *const Handle) -> *const c_char {
    answer_with(std::ptr::null(), || Ok(required(handle, "the endpoint")?.name.as_ptr()))
}

pub unsafe extern "C" fn wait_for(
    handle: *const Handle,
    peer: *const c_char,
    seconds: f64,
) -> c_int {
    answer(|| {
        let (endpoint, limit) = (endpoint(handle)?, limit(seconds)?);
        let peer = name(text(peer, "the name")?);
        if endpoint.wait_for(std::slice::from_ref(&peer), deadline(limit))? {
            return Ok(());
        }
        let world = endpoint.folder().file_name().unwrap_or_default().to_string_lossy();
        let text = format!("{peer} has not joined world '{world}' within {seconds} s: start it");
        Err(Failure::new(Code::TimedOut, text))
    })
}

pub unsafe extern "C" fn set_buffering(handle: *const Handle, bytes: usize) -> c_int {
    answer(|| {
        endpoint(handle)?.buffering.store(bytes as u64, Ordering::Relaxed);
        Ok(())
    })
}

/// Only operations that a signal handler may call: no allocation, no lock that this thread may
/// hold.
pub unsafe extern "C" fn interrupt(handle: *const Handle) -> c_int {
    let endpoint = match handle.as_ref().map(|handle| handle.endpoint.try_read()) {
        Some(Ok(endpoint)) => endpoint,
        Some(Err(_)) => return Code::Closed as c_int, // it is leaving right now
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

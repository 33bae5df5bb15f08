//! Handles of performance variables, and the sessions that they belong to: tools that know nothing
//! of each other start, stop and set back what is their own.

use std::sync::{Arc, Mutex, MutexGuard};

use super::counting::Watch;
use super::performance::{How, Scope, Unit, Variable};
use super::registry::Registry;
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;

/// MPI_T_PVAR_ALL_HANDLES.
pub const ALL_HANDLES: usize = 1;

static SESSIONS: Registry<()> = Registry::new();
static HANDLES: Registry<Handle> = Registry::new();

struct Handle {
    session: usize,
    variable: &'static Variable,
    scope: Scope,
    kept: Mutex<Kept>,
    /// Where it takes counting.
    _watch: Option<Watch>,
}

/// What the handle knows beyond what can be read.
#[derive(Default)]
struct Kept {
    is_started: bool,
    /// What was read when it was started.
    then: Vec<u64>,
    value: Vec<u64>,
}

/// What may be done with one handle, or with all of a session that know it.
#[derive(Clone, Copy)]
pub enum Deed {
    Start,
    Stop,
    Reset,
}

pub fn clear() {
    HANDLES.clear();
    SESSIONS.clear();
}

pub fn begin() -> MPI_T_pvar_session {
    SESSIONS.insert(())
}

/// The end of a session, and of all handles in it.
pub fn end(session: MPI_T_pvar_session) -> Answer {
    SESSIONS.remove(session).ok_or_else(no_session)?;
    for (number, handle) in HANDLES.all() {
        if handle.session == session as usize {
            HANDLES.remove(number as *const c_void);
        }
    }
    Ok(())
}

fn no_session() -> Failure {
    let text = "argument pe_session is no session, or one that was freed";
    fail(MPI_T_ERR_INVALID_SESSION, text)
}

fn known(session: MPI_T_pvar_session) -> Answer {
    SESSIONS.get(session).map(|_| ()).ok_or_else(no_session)
}

/// A handle, and how many elements its value has.
pub fn open(
    session: MPI_T_pvar_session,
    variable: &'static Variable,
    scope: Scope,
) -> Answer<(MPI_T_pvar_handle, c_int)> {
    known(session)?;
    let now = (variable.read)(&scope);
    let count = now.len() as c_int;
    let kept = Kept { is_started: false, value: vec![0; now.len()], then: now };
    let (session, kept) = (session as usize, Mutex::new(kept));
    let _watch = variable.is_kept().then(Watch::new);
    Ok((HANDLES.insert(Handle { session, variable, scope, kept, _watch }), count))
}

fn get(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Answer<Arc<Handle>> {
    known(session)?;
    let found = HANDLES.get(handle).filter(|one| one.session == session as usize);
    found.ok_or_else(|| {
        let text = match is_all(handle) {
            true => "MPI_T_PVAR_ALL_HANDLES is for MPI_T_pvar_start, _stop and _reset only",
            false => "argument handle is no handle of this session, or one that was freed",
        };
        fail(MPI_T_ERR_INVALID_HANDLE, text)
    })
}

fn is_all(handle: MPI_T_pvar_handle) -> bool {
    handle as usize == ALL_HANDLES
}

pub fn close(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Answer {
    get(session, handle)?;
    HANDLES.remove(handle);
    Ok(())
}

/// Do it with a handle, or with all for which it means something.
pub fn do_with(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle, deed: Deed) -> Answer {
    if !is_all(handle) {
        return get(session, handle)?.act(deed);
    }
    known(session)?;
    for (_, handle) in HANDLES.all() {
        if handle.session == session as usize && handle.variable.is_kept() {
            handle.act(deed)?;
        }
    }
    Ok(())
}

/// Write the value where the tool wants it; with `reset`, begin anew at the same instant.
///
/// # Safety
/// There is room for as many elements as `open` has said.
pub unsafe fn read(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    to: *mut c_void,
    reset: bool,
) -> Answer {
    let handle = get(session, handle)?;
    let mut kept = handle.kept();
    if reset && !handle.variable.is_kept() {
        let text = format!("{} cannot be set back, so not while it is read", handle.variable.name);
        return Err(fail(MPI_T_ERR_PVAR_NO_ATOMIC, text));
    }
    for (nth, value) in handle.value(&mut kept).into_iter().enumerate() {
        match handle.variable.unit {
            Unit::Number => to.cast::<u64>().add(nth).write_unaligned(value),
            Unit::Seconds => to.cast::<f64>().add(nth).write_unaligned(value as f64 * 1e-9),
            Unit::Item(_) => to.cast::<c_int>().add(nth).write_unaligned(value as c_int),
        }
    }
    if reset {
        handle.reset(&mut kept);
    }
    Ok(())
}

/// Set the value.
///
/// # Safety
/// `from` has as many elements as `open` has said.
pub unsafe fn write(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    from: *const c_void,
) -> Answer {
    let handle = get(session, handle)?;
    handle.can_be_set()?;
    let mut kept = handle.kept();
    handle.reset(&mut kept);
    for (nth, value) in kept.value.iter_mut().enumerate() {
        *value = match handle.variable.unit {
            Unit::Number => from.cast::<u64>().add(nth).read_unaligned(),
            Unit::Seconds => (from.cast::<f64>().add(nth).read_unaligned() * 1e9) as u64,
            Unit::Item(_) => from.cast::<c_int>().add(nth).read_unaligned() as u64,
        };
    }
    Ok(())
}

/// A moment at which a level may be higher than before.
pub fn look() {
    for (_, handle) in HANDLES.all() {
        if handle.variable.how == How::Highest {
            handle.value(&mut handle.kept());
        }
    }
}

impl Handle {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().expect("no panic under the lock")
    }

    fn now(&self) -> Vec<u64> {
        (self.variable.read)(&self.scope)
    }

    fn can_be_set(&self) -> Answer {
        if self.variable.is_kept() {
            return Ok(());
        }
        let text = format!("{} can only be read", self.variable.name);
        Err(fail(MPI_T_ERR_PVAR_NO_WRITE, text))
    }

    fn act(&self, deed: Deed) -> Answer {
        let mut kept = self.kept();
        match deed {
            Deed::Reset => {
                self.can_be_set()?;
                self.reset(&mut kept);
            }
            Deed::Start | Deed::Stop if !self.variable.is_kept() => {
                let text = format!("{} is always there: it never starts", self.variable.name);
                return Err(fail(MPI_T_ERR_PVAR_NO_STARTSTOP, text));
            }
            Deed::Start if !kept.is_started => {
                kept.is_started = true;
                kept.then = self.now();
            }
            Deed::Stop if kept.is_started => {
                self.value(&mut kept);
                kept.is_started = false;
            }
            Deed::Start | Deed::Stop => {}
        }
        Ok(())
    }

    /// The value now, which is then kept.
    fn value(&self, kept: &mut Kept) -> Vec<u64> {
        if self.variable.how == How::Level {
            return self.now();
        }
        if kept.is_started {
            let now = self.now();
            for ((value, now), then) in kept.value.iter_mut().zip(&now).zip(&kept.then) {
                *value = match self.variable.how {
                    How::Highest => (*value).max(*now),
                    How::Growth | How::Level => value.wrapping_add(now.wrapping_sub(*then)),
                };
            }
            kept.then = now;
        }
        kept.value.clone()
    }

    fn reset(&self, kept: &mut Kept) {
        kept.then = self.now();
        kept.value.fill(0);
    }
}

//! Handles of performance variables, and their sessions: tools that do not know of each other
//! start, stop and reset only their own handles.

use std::sync::{Arc, Mutex, MutexGuard};

use sfm_native::sync::lock;

use super::performance::{How, Scope, Unit, Variable};
use super::registry::Registry;
use crate::counting::Watch;
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
    state: Mutex<Reading>,
    /// Present if the variable needs the counters.
    _watch: Option<Watch>,
}

/// The state of a handle beyond what can be read.
#[derive(Default)]
struct Reading {
    is_started: bool,
    /// The values at the last start or reading.
    then: Vec<u64>,
    value: Vec<u64>,
}

/// An action on one handle, or on all handles of a session that support it.
#[derive(Clone, Copy)]
pub enum Action {
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

/// Free a session and all its handles.
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
    let text = "argument pe_session is not a session, or was freed";
    fail(MPI_T_ERR_INVALID_SESSION, text)
}

fn known(session: MPI_T_pvar_session) -> Answer {
    SESSIONS.get(session).map(|_| ()).ok_or_else(no_session)
}

/// Make a handle; returns it and the number of elements of its value.
pub fn open(
    session: MPI_T_pvar_session,
    variable: &'static Variable,
    scope: Scope,
) -> Answer<(MPI_T_pvar_handle, c_int)> {
    known(session)?;
    let now = (variable.read)(&scope);
    let count = now.len() as c_int;
    let state = Reading { is_started: false, value: vec![0; now.len()], then: now };
    let (session, state) = (session as usize, Mutex::new(state));
    let _watch = variable.is_stateful().then(|| Watch::new(&super::TOOLS));
    Ok((HANDLES.insert(Handle { session, variable, scope, state, _watch }), count))
}

fn get(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle) -> Answer<Arc<Handle>> {
    known(session)?;
    let found = HANDLES.get(handle).filter(|handle| handle.session == session as usize);
    found.ok_or_else(|| {
        let text = match is_all(handle) {
            true => "MPI_T_PVAR_ALL_HANDLES is for MPI_T_pvar_start, _stop and _reset only",
            false => "argument handle is not a handle of this session, or was freed",
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

/// Act on a handle, or on all that support it.
pub fn do_with(session: MPI_T_pvar_session, handle: MPI_T_pvar_handle, action: Action) -> Answer {
    if !is_all(handle) {
        return get(session, handle)?.act(action);
    }
    known(session)?;
    for (_, handle) in HANDLES.all() {
        if handle.session == session as usize && handle.variable.is_stateful() {
            handle.act(action)?;
        }
    }
    Ok(())
}

/// Write the value to the tool's memory; with `reset`, reset it at the same instant.
///
/// # Safety
/// There is room for as many elements as `open` has returned.
pub unsafe fn read(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    to: *mut c_void,
    reset: bool,
) -> Answer {
    let handle = get(session, handle)?;
    let mut state = handle.state();
    if reset && !handle.variable.is_stateful() {
        let text =
            format!("{} cannot be reset, and therefore not while it is read", handle.variable.name);
        return Err(fail(MPI_T_ERR_PVAR_NO_ATOMIC, text));
    }
    for (nth, value) in handle.value(&mut state).into_iter().enumerate() {
        match handle.variable.unit {
            Unit::Number => to.cast::<u64>().add(nth).write_unaligned(value),
            Unit::Seconds => to.cast::<f64>().add(nth).write_unaligned(value as f64 * 1e-9),
            Unit::Item(_) => to.cast::<c_int>().add(nth).write_unaligned(value as c_int),
        }
    }
    if reset {
        handle.reset(&mut state);
    }
    Ok(())
}

/// # Safety
/// `from` has as many elements as `open` has returned.
pub unsafe fn write(
    session: MPI_T_pvar_session,
    handle: MPI_T_pvar_handle,
    from: *const c_void,
) -> Answer {
    let handle = get(session, handle)?;
    handle.can_be_set()?;
    let mut state = handle.state();
    handle.reset(&mut state);
    for (nth, value) in state.value.iter_mut().enumerate() {
        *value = match handle.variable.unit {
            Unit::Number => from.cast::<u64>().add(nth).read_unaligned(),
            Unit::Seconds => (from.cast::<f64>().add(nth).read_unaligned() * 1e9) as u64,
            Unit::Item(_) => from.cast::<c_int>().add(nth).read_unaligned() as u64,
        };
    }
    Ok(())
}

pub fn update_high_water() {
    for (_, handle) in HANDLES.all() {
        if handle.variable.how == How::Highest {
            handle.value(&mut handle.state());
        }
    }
}

impl Handle {
    fn state(&self) -> MutexGuard<'_, Reading> {
        lock(&self.state)
    }

    fn now(&self) -> Vec<u64> {
        (self.variable.read)(&self.scope)
    }

    fn can_be_set(&self) -> Answer {
        if self.variable.is_stateful() {
            return Ok(());
        }
        Err(fail(MPI_T_ERR_PVAR_NO_WRITE, format!("{} can only be read", self.variable.name)))
    }

    fn act(&self, action: Action) -> Answer {
        let mut state = self.state();
        match action {
            Action::Reset => {
                self.can_be_set()?;
                self.reset(&mut state);
            }
            Action::Start | Action::Stop if !self.variable.is_stateful() => {
                let text =
                    format!("{} runs always, and cannot be started or stopped", self.variable.name);
                return Err(fail(MPI_T_ERR_PVAR_NO_STARTSTOP, text));
            }
            Action::Start if !state.is_started => {
                state.is_started = true;
                state.then = self.now();
            }
            Action::Stop if state.is_started => {
                self.value(&mut state);
                state.is_started = false;
            }
            Action::Start | Action::Stop => {}
        }
        Ok(())
    }

    fn value(&self, state: &mut Reading) -> Vec<u64> {
        if self.variable.how == How::Level {
            return self.now();
        }
        if state.is_started {
            let now = self.now();
            for ((value, now), then) in state.value.iter_mut().zip(&now).zip(&state.then) {
                *value = match self.variable.how {
                    How::Highest => (*value).max(*now),
                    How::Growth | How::Level => value.wrapping_add(now.wrapping_sub(*then)),
                };
            }
            state.then = now;
        }
        state.value.clone()
    }

    fn reset(&self, state: &mut Reading) {
        state.then = self.now();
        state.value.fill(0);
    }
}

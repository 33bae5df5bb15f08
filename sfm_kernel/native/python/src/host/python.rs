//! Python as the host of calls that wait: see `calls::Host`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::errors;
use crate::host::gil::without_gil;
use crate::host::location;
use crate::host::undisturbed::undisturbed;
use sfm_native::calls::{End, Host, Peer};

/// Called when a call has waited for a while: returns its bystanders.
static BYSTANDERS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Have `function()` find the bystanders of a blocked thread: a text for observers, empty if there
/// are none. Only the first call has an effect.
#[pyfunction]
#[pyo3(signature = (function, /))]
pub fn set_bystanders(py: Python<'_>, function: Py<PyAny>) {
    let _ = BYSTANDERS.set(py, function);
}

/// The text about bystanders; None if no function was set.
pub fn bystanders(py: Python<'_>) -> PyResult<Option<String>> {
    let Some(function) = BYSTANDERS.get(py) else { return Ok(None) };
    function.bind(py).call0()?.extract().map(Some)
}

/// A Python program, whose GIL this thread has. Its receives record their location when they begin
/// (`location::mark`), since they probably wait.
pub struct PyHost<'py>(pub Python<'py>);

impl Host for PyHost<'_> {
    type Error = PyErr;

    fn signals(&self) -> PyResult<()> {
        self.0.check_signals()
    }

    fn release<T: Send>(&self, work: impl Send + FnOnce() -> T) -> T {
        without_gil(self.0, work)
    }

    fn bystanders(&self) -> PyResult<Option<String>> {
        bystanders(self.0)
    }

    fn locate(&self) {
        undisturbed(self.0, || location::mark(self.0));
    }

    fn ended(&self, why: End) -> PyErr {
        errors::ended(self.0, why)
    }

    fn is_loss(&self, failure: &PyErr) -> bool {
        errors::is(self.0, failure, "PeerLost")
    }
}

/// A peer as Python knows it.
pub struct PyPeer {
    name: Py<PyAny>,
    /// The name as observers and errors show it.
    shown: String,
    /// Raises if the peer can no longer receive.
    check: Py<PyAny>,
}

impl PyPeer {
    pub fn new(name: &Bound<'_, PyAny>, check: Py<PyAny>) -> PyResult<PyPeer> {
        Ok(PyPeer { name: name.clone().unbind(), shown: name.repr()?.to_string(), check })
    }
}

impl<'py> Peer<PyHost<'py>> for PyPeer {
    fn shown(&self) -> &str {
        &self.shown
    }

    fn check(&self, host: &PyHost<'py>) -> PyResult<()> {
        self.check.call0(host.0).map(drop)
    }

    fn failed(&self, host: &PyHost<'py>, why: End) -> PyErr {
        let py = host.0;
        match why {
            End::MessagesLost => errors::error(py, "MessagesLost", (&self.name,)),
            End::TooLarge(nbytes) => errors::error(py, "MessageTooLarge", (&self.name, nbytes)),
            End::Reentered => errors::reentered(py, &self.shown),
            why => host.ended(why),
        }
    }
}

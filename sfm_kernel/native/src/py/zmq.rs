//! Exchange and Link: what the transport over ZeroMQ leaves to the core.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use super::detached::without_gil;
use super::inbox::Inbox;
use super::segment::parse_uid;
use crate::core::Driver;
use crate::zmq::{self, Library, Socket};

/// All connections of one endpoint.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Exchange {
    exchange: Arc<zmq::Exchange>,
    module: OnceLock<CString>,
}

fn python_links(links: Vec<Arc<zmq::Link>>) -> Vec<Link> {
    links.into_iter().map(|link| Link { link }).collect()
}

#[pymethods]
impl Exchange {
    #[new]
    fn new(inbox: &Bound<'_, Inbox>, uid: &str, address: &str) -> PyResult<Exchange> {
        let core = inbox.get().core.clone();
        let exchange = zmq::Exchange::new(core, parse_uid(uid)?, address)?;
        Ok(Exchange { exchange: Arc::new(exchange), module: OnceLock::new() })
    }

    /// Receive through the ROUTER at `socket` until `close`; waiting threads may do so as well.
    fn open(&self, module: CString, socket: usize, fd: i32) -> PyResult<()> {
        let _ = self.module.set(module);
        let module = self.module.get().expect("just set");
        // SAFETY: the transport closes the socket after `close`, and does not use it before.
        unsafe { self.exchange.open(module, socket, fd) }.map_err(PyOSError::new_err)?;
        let driver: Weak<dyn Driver> = Arc::downgrade(&self.exchange) as Weak<dyn Driver>;
        self.exchange.core.set_driver(driver);
        Ok(())
    }

    /// Give the ROUTER back to its owner.
    fn close(&self, py: Python<'_>) {
        without_gil(py, || self.exchange.close());
    }

    /// A descriptor that `ring`, or a new link, makes readable.
    #[getter]
    fn fd(&self) -> i32 {
        self.exchange.core.event_fd()
    }

    fn ring(&self) {
        self.exchange.ring();
    }

    fn link(&self, uid: &str, address: &str) -> PyResult<Link> {
        Ok(Link { link: self.exchange.link(parse_uid(uid)?, address) })
    }

    /// The link to a peer, if there is one.
    fn known(&self, uid: &str) -> PyResult<Option<Link>> {
        Ok(self.exchange.known(parse_uid(uid)?).map(|link| Link { link }))
    }

    fn links(&self) -> Vec<Link> {
        python_links(self.exchange.links())
    }

    fn watch(&self, fd: i32) {
        self.exchange.watch(fd);
    }

    fn unwatch(&self, fd: i32) {
        self.exchange.unwatch(fd);
    }

    fn tend(&self, py: Python<'_>, seconds: f64) -> Vec<i32> {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
        without_gil(py, || self.exchange.tend(limit))
    }

    /// (links to open, links that were refused, complaints for the user), each told once.
    fn news(&self) -> (Vec<Link>, Vec<Link>, Vec<String>) {
        let news = self.exchange.news();
        (python_links(news.unopened), python_links(news.refused), news.complaints)
    }

    fn speakers(&self) -> HashSet<i32> {
        self.exchange.speakers()
    }

    fn broken(&self, uid: &str) -> PyResult<Option<bool>> {
        Ok(self.exchange.broken(parse_uid(uid)?))
    }

    fn heard(&self, uid: &str) -> PyResult<Option<f64>> {
        Ok(self.exchange.heard(parse_uid(uid)?))
    }

    #[getter]
    fn idle_at(&self) -> f64 {
        self.exchange.idle_at()
    }

    fn greet_again(&self, link: &Bound<'_, Link>) {
        self.exchange.greet_again(&link.get().link);
    }

    fn say_goodbye(&self) -> Vec<Link> {
        python_links(self.exchange.say_goodbye())
    }
}

/// The sending side of one peer.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Link {
    pub link: Arc<zmq::Link>,
}

#[pymethods]
impl Link {
    #[getter]
    fn uid(&self) -> String {
        format!("{:032x}", self.link.uid)
    }

    #[getter]
    fn address(&self) -> &str {
        &self.link.address
    }

    #[getter]
    fn up(&self) -> bool {
        self.link.up.load(Ordering::Acquire)
    }

    #[setter]
    fn set_up(&self, up: bool) {
        self.link.up.store(up, Ordering::Release);
    }

    #[getter]
    fn lost(&self) -> Option<&str> {
        self.link.lost()
    }

    #[getter]
    fn done(&self) -> bool {
        self.link.done.load(Ordering::Acquire)
    }

    /// Send through the DEALER at `socket` until `close`.
    fn open(&self, module: CString, socket: usize) -> PyResult<()> {
        let library = Library::of_module(&module).map_err(PyOSError::new_err)?;
        // SAFETY: the transport closes the socket after `close`, and does not use it before.
        let socket = unsafe { Socket::new(library, socket) };
        self.link.open(socket).map_err(|error| PyOSError::new_err(error.to_string()))
    }

    fn close(&self, why: &str) {
        self.link.close(why);
    }

    /// Cost of what was sent and is not received yet.
    #[getter]
    fn waiting(&self) -> u64 {
        self.link.outflow.all_waiting()
    }

    fn __eq__(&self, other: &Bound<'_, Link>) -> bool {
        Arc::ptr_eq(&self.link, &other.get().link)
    }

    fn __hash__(&self) -> usize {
        Arc::as_ptr(&self.link) as usize
    }
}

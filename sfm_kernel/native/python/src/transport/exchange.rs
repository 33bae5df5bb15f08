//! Exchange and Link: the transport between machines.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::endpoint::inbox::Inbox;
use crate::errors;
use crate::host::gil::without_gil;
use crate::transport::segment::parse_uid;
use crate::transport::tcp::fields;
use sfm_native::core::Driver;
use sfm_native::net::{
    self,
    frame::site_number,
    seal::{gateway_key, Secret},
    ConnectionReport, Identity, Listed,
};

/// All connections of one endpoint. Raises EndpointClosed when it is closed.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Exchange {
    /// None when it is closed: its descriptors do not live as long as somebody names the endpoint.
    exchange: Mutex<Option<Arc<net::Exchange>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Exchange {
    fn open(&self, py: Python<'_>) -> PyResult<Arc<net::Exchange>> {
        let exchange = self.exchange.lock().expect("never poisoned");
        exchange.clone().ok_or_else(|| errors::closed(py))
    }
}

#[pymethods]
impl Exchange {
    /// `listener`: a listening socket that does not block, which is the exchange's from now on.
    #[new]
    #[pyo3(signature = (inbox, uid, key, site, address, listener, strangers, patience=None))]
    #[expect(clippy::too_many_arguments, reason = "one caller, which names them")]
    fn new(
        inbox: &Bound<'_, Inbox>,
        uid: &str,
        key: &[u8],
        site: &str,
        address: &str,
        listener: i32,
        strangers: usize,
        patience: Option<f64>,
    ) -> PyResult<Exchange> {
        // SAFETY: the caller gives it away.
        let listener = unsafe { net::Socket::own(listener) };
        let core = inbox.get().core.clone();
        let own = Identity {
            uid: parse_uid(uid)?,
            site: site_number(site),
            address: address.to_owned(),
            secret: Secret::of_world(key),
        };
        let limit = patience.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let patience = limit.map_or(u64::MAX, |limit| limit.as_nanos() as u64);
        let exchange =
            net::Exchange::new(core, own, &gateway_key(key), listener, strangers, patience)?;
        Ok(Exchange { exchange: Mutex::new(Some(Arc::new(exchange))), thread: Mutex::default() })
    }

    /// Serve who connects, in a thread of this name.
    fn start(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let exchange = self.open(py)?;
        let driver: Weak<dyn Driver> = Arc::downgrade(&exchange) as Weak<dyn Driver>;
        exchange.core.set_driver(driver);
        let thread = exchange.start(name).map_err(PyOSError::new_err)?;
        *self.thread.lock().expect("never poisoned") = Some(thread);
        Ok(())
    }

    /// Stop, when all that was sent has arrived or a peer does not answer.
    fn close(&self, py: Python<'_>) {
        let thread = self.thread.lock().expect("never poisoned").take();
        let Ok(exchange) = self.open(py) else { return };
        without_gil(py, || {
            exchange.close();
            if let Some(thread) = thread {
                let _ = thread.join();
            }
        });
        drop(self.exchange.lock().expect("never poisoned").take());
    }

    /// These are the world's gateways now: uid, site and address of each.
    fn set_gateways(&self, py: Python<'_>, listed: Vec<(String, String, String)>) -> PyResult<()> {
        let listed = listed.into_iter().map(|(uid, site, address)| {
            Ok(Listed { uid: parse_uid(&uid)?, site: site_number(&site), address })
        });
        let listed: Vec<Listed> = listed.collect::<PyResult<_>>()?;
        let exchange = self.open(py)?;
        without_gil(py, || exchange.set_gateways(&listed));
        Ok(())
    }

    /// These peers have left or died: the directory says so.
    fn report_departed(&self, py: Python<'_>, uids: Vec<String>) -> PyResult<()> {
        let exchange = self.open(py)?;
        for uid in uids {
            if let Some(link) = exchange.known(parse_uid(&uid)?) {
                link.departed.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The link to a peer. If it is new, a connection is about to be made.
    #[pyo3(signature = (uid, address, site=""))]
    fn link(&self, py: Python<'_>, uid: &str, address: &str, site: &str) -> PyResult<Link> {
        Ok(Link { link: self.open(py)?.link(parse_uid(uid)?, site_number(site), address) })
    }

    /// The link to a peer, if there is one.
    fn known(&self, py: Python<'_>, uid: &str) -> PyResult<Option<Link>> {
        Ok(self.open(py)?.known(parse_uid(uid)?).map(|link| Link { link }))
    }

    /// The connections that lead to other sites or to gateways, as they are now.
    fn connections<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let exchange = self.open(py)?;
        let told = without_gil(py, || exchange.connection_reports());
        told.iter().map(|one| connection(py, one)).collect()
    }

    /// Whether all that a dead peer had sent has come in, as far as can be known.
    fn settled(&self, py: Python<'_>, uid: &str) -> PyResult<bool> {
        Ok(self.open(py)?.is_settled(parse_uid(uid)?))
    }
}

fn connection<'py>(py: Python<'py>, told: &ConnectionReport) -> PyResult<Bound<'py, PyDict>> {
    let about = PyDict::new(py);
    let name = |uid: &u128| format!("{uid:032x}");
    about.set_item("gateway", told.gateway.as_ref().map(name))?;
    about.set_item("peers", told.peers.iter().map(name).collect::<Vec<_>>())?;
    about.set_item("count", told.count)?;
    about.set_item("site", told.site)?;
    about.set_item("address", &told.address)?;
    about.set_item("algorithm", &told.algorithm)?;
    about.set_item("refused", &told.refused)?;
    about.set_item("warm", told.warmth.name())?;
    about.set_item("unsent_s", told.unsent)?;
    about.set_item("silent_s", told.silent)?;
    let timeouts = told.info.as_ref().map(|info| told.history.timeouts(info));
    about.set_item("timeouts_lately", timeouts)?;
    about.set_item("idle_restarts", told.history.restarts)?;
    let last = told.history.last.map(|last| {
        let about = PyDict::new(py);
        about.set_item("ago_s", last.at.elapsed().as_secs_f64())?;
        about.set_item("silence_s", last.silence.as_secs_f64())?;
        about.set_item("from", last.from)?;
        about.set_item("to", last.to)?;
        about.set_item("rtt_s", last.rtt.as_secs_f64())?;
        about.set_item("cost_s", last.cost().as_secs_f64())?;
        PyResult::Ok(about)
    });
    about.set_item("last_restart", last.transpose()?)?;
    about.set_item("tcp", told.info.as_ref().map(|info| fields(py, info)).transpose()?)?;
    Ok(about)
}

/// What lets a connection to the member `receiver` stay open though nothing else is said.
#[pyfunction]
pub fn knock(key: &[u8], sender: &str, receiver: &str) -> PyResult<Vec<u8>> {
    Ok(net::knock(&Secret::of_world(key), parse_uid(sender)?, parse_uid(receiver)?))
}

/// In a forked child: give up its copies of the parent's connections.
#[pyfunction]
pub fn abandon_connections() {
    net::abandon_all();
}

/// The conversation with one peer.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Link {
    pub link: Arc<net::Link>,
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
        self.link.is_up()
    }

    #[getter]
    fn lost(&self) -> Option<&str> {
        self.link.lost()
    }

    /// How messages travel on it.
    #[getter]
    fn kind(&self) -> &'static str {
        self.link.kind()
    }

    /// Seconds for which the peer has not answered, and what gateways say of it; None while it does.
    #[getter]
    fn silence(&self) -> Option<(f64, &'static str)> {
        let since = self.link.silent_since();
        let seconds = net::now().saturating_sub(since) as f64 / 1e9;
        (since != 0).then(|| (seconds, self.link.why_silent()))
    }

    /// Cost of what was sent and is not received yet.
    #[getter]
    fn waiting(&self) -> u64 {
        self.link.credit.all_waiting()
    }

    /// End the connection, as if it broke.
    fn _break(&self) {
        self.link.break_connection();
    }
}

//! Exchange and Link: the transport between machines.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors;
use crate::host::gil::without_gil;
use crate::transport::inbox::Inbox;
use crate::transport::segment::parse_uid;
use crate::transport::tcp::fields;
use sfm_native::core::Driver;
use sfm_native::frame::site_number;
use sfm_native::net::{self, parse_key, ConnectionReport, Listed, Listening};
use sfm_native::wire::abandon_all;
use sfm_native::wire::zmq::{Context, Key, Library, Pair};

/// All connections of one endpoint. Raises EndpointClosed when it is closed.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Exchange {
    /// None when it is closed: its descriptors close then, though the Python object may live on.
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
    /// Listens for peers, by ZeroMQ, at `address`: "tcp://IP:*". `libraries`: paths of libzmq, or of
    /// modules linked with it, to try before the system's. `pair`: the secret and the public half of
    /// this process's own keys. `table`: the file that announces the members' in a world of one
    /// machine. `context`: the number of an open client's (`Context::address`), whose thread serves
    /// these connections, too.
    #[new]
    #[pyo3(signature = (inbox, uid, key, pair, site, address, strangers, patience=None, *,
        libraries=vec![], table=None, context=None))]
    #[expect(clippy::too_many_arguments, reason = "one caller, which names them")]
    fn new(
        inbox: &Bound<'_, Inbox>,
        uid: &str,
        key: &[u8],
        pair: (Key, Key),
        site: &str,
        address: String,
        strangers: usize,
        patience: Option<f64>,
        libraries: Vec<PathBuf>,
        table: Option<PathBuf>,
        context: Option<usize>,
    ) -> PyResult<Exchange> {
        let paths = libraries.into_iter().map(|path| path.into_os_string().into_vec());
        let paths: Vec<_> = paths.filter_map(|path| CString::new(path).ok()).collect();
        let library = Library::load(&paths).map_err(PyOSError::new_err)?;
        let core = inbox.get().core.clone();
        let limit = patience.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let patience = limit.map_or(u64::MAX, |limit| limit.as_nanos() as u64);
        let (uid, site) = (parse_uid(uid)?, site_number(site));
        let pair = Pair { secret: pair.0, public: pair.1 };
        let context = match context {
            // SAFETY: the caller's promise.
            Some(address) => unsafe { Context::at_address(address) },
            None => Context::new(library)?,
        };
        let listening = Listening { context, address, pair, table, strangers };
        let exchange = net::Exchange::new(core, uid, site, key, listening, patience)?;
        Ok(Exchange { exchange: Mutex::new(Some(Arc::new(exchange))), thread: Mutex::default() })
    }

    /// Others reach this process there: "tcp://IP:port".
    #[getter]
    fn address(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.open(py)?.address().to_owned())
    }

    /// Serve connections, in a thread of this name.
    fn start(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let exchange = self.open(py)?;
        let driver: Weak<dyn Driver> = Arc::downgrade(&exchange) as Weak<dyn Driver>;
        exchange.core.set_driver(driver);
        let thread = exchange.start(name).map_err(PyOSError::new_err)?;
        *self.thread.lock().expect("never poisoned") = Some(thread);
        Ok(())
    }

    /// Stop, when everything sent has arrived or a peer does not answer.
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

    /// Set the list of the world's gateways: uid, site and address of each.
    fn set_gateways(&self, py: Python<'_>, listed: Vec<(String, String, String)>) -> PyResult<()> {
        let listed = listed.into_iter().map(|(uid, site, address)| {
            Ok(Listed { uid: parse_uid(&uid)?, site: site_number(&site), address })
        });
        let listed: Vec<Listed> = listed.collect::<PyResult<_>>()?;
        let exchange = self.open(py)?;
        without_gil(py, || exchange.set_gateways(&listed));
        Ok(())
    }

    /// The directory has announced these members: the uid of each, and the public half of its keys in
    /// hexadecimal digits; empty if it does not listen.
    fn announce(&self, py: Python<'_>, members: Vec<(String, String)>) -> PyResult<()> {
        let listening = members.iter().filter(|(_, public)| !public.is_empty());
        let parsed = listening.map(|(uid, public)| {
            let malformed = || PyValueError::new_err(format!("{public:?} is no key"));
            Ok((parse_uid(uid)?, parse_key(public).ok_or_else(malformed)?))
        });
        let parsed: Vec<_> = parsed.collect::<PyResult<_>>()?;
        let exchange = self.open(py)?;
        without_gil(py, || exchange.announce(parsed));
        Ok(())
    }

    /// Report that these peers have left or died, according to the directory.
    fn report_departed(&self, py: Python<'_>, uids: Vec<String>) -> PyResult<()> {
        let exchange = self.open(py)?;
        for uid in &uids {
            if let Some(link) = exchange.known(parse_uid(uid)?) {
                link.departed.store(true, Ordering::Relaxed);
            }
        }
        if !uids.is_empty() {
            exchange.core.note_loss();
        }
        Ok(())
    }

    /// A member was put out of the world: nothing comes from it any more. `why` is for an error.
    fn expel(&self, py: Python<'_>, uid: &str, why: &str) -> PyResult<()> {
        let (exchange, uid) = (self.open(py)?, parse_uid(uid)?);
        without_gil(py, || exchange.expel(uid, why));
        Ok(())
    }

    /// The link to a peer. A new link begins to connect.
    #[pyo3(signature = (uid, address, site=""))]
    fn link(&self, py: Python<'_>, uid: &str, address: &str, site: &str) -> PyResult<Link> {
        Ok(Link { link: self.open(py)?.link(parse_uid(uid)?, site_number(site), address) })
    }

    /// The link to a peer, if there is one.
    fn known(&self, py: Python<'_>, uid: &str) -> PyResult<Option<Link>> {
        Ok(self.open(py)?.known(parse_uid(uid)?).map(|link| Link { link }))
    }

    /// The present connections to other sites or to gateways.
    fn connections<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let exchange = self.open(py)?;
        let reports = without_gil(py, || exchange.connection_reports());
        reports.iter().map(|report| connection(py, report)).collect()
    }

    /// Whether all that a dead peer had sent has arrived, as far as can be known.
    fn settled(&self, py: Python<'_>, uid: &str) -> PyResult<bool> {
        Ok(self.open(py)?.is_settled(parse_uid(uid)?))
    }
}

fn connection<'py>(py: Python<'py>, report: &ConnectionReport) -> PyResult<Bound<'py, PyDict>> {
    let about = PyDict::new(py);
    let name = |uid: &u128| format!("{uid:032x}");
    about.set_item("gateway", report.gateway.as_ref().map(name))?;
    about.set_item("peers", report.peers.iter().map(name).collect::<Vec<_>>())?;
    about.set_item("count", report.count)?;
    about.set_item("site", report.site)?;
    about.set_item("address", &report.address)?;
    about.set_item("algorithm", &report.algorithm)?;
    about.set_item("refused", &report.refused)?;
    about.set_item("warm", report.warmth.name())?;
    about.set_item("unsent_s", report.unsent)?;
    about.set_item("silent_s", report.silent)?;
    let timeouts = report.info.as_ref().map(|info| report.history.timeouts(info));
    about.set_item("timeouts_lately", timeouts)?;
    about.set_item("idle_restarts", report.history.restarts)?;
    let last = report.history.last.map(|last| {
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
    about.set_item("tcp", report.info.as_ref().map(|info| fields(py, info)).transpose()?)?;
    Ok(about)
}

/// In a forked child: give up its copies of the parent's connections.
#[pyfunction]
pub fn abandon_connections() {
    abandon_all();
}

/// The messages to and from one peer.
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

    /// How messages travel: "zmq" or "gateway".
    #[getter]
    fn kind(&self) -> &'static str {
        self.link.kind()
    }

    /// Seconds since the peer last answered, and what gateways report about it; None while it answers.
    #[getter]
    fn silence(&self) -> Option<(f64, &'static str)> {
        let since = self.link.silent_since();
        let seconds = net::now().saturating_sub(since) as f64 / 1e9;
        (since != 0).then(|| (seconds, self.link.why_silent()))
    }

    /// Cost of the messages that were sent and not yet received, in bytes.
    #[getter]
    fn waiting(&self) -> u64 {
        self.link.credit.all_waiting()
    }

    /// End the connection, as if it broke.
    fn _break(&self) {
        self.link.break_connection();
    }
}

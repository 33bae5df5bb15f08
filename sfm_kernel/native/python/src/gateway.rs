//! The gateways of this process.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::error;
use crate::host::gil::without_gil;
use crate::transport::segment::parse_uid;
use sfm_native::frame::gateway_key::{gateway_key as derived, GATEWAY_KEY};
use sfm_native::gateway::schedule::Scheduler;
use sfm_native::gateway::{self, Listed, Options};

/// A gateway of this process: a thread that needs no GIL.
#[pyclass(module = "sfm_kernel._native", frozen)]
pub struct Gateway {
    gateway: gateway::Gateway,
}

/// "tcp://10.0.0.7:4000", or without "tcp://".
fn parse_address(address: &str) -> PyResult<SocketAddr> {
    address.strip_prefix("tcp://").unwrap_or(address).parse().map_err(|_| {
        PyValueError::new_err(format!("address {address:?}: 'tcp://IP:port' is needed"))
    })
}

/// The key that gateways get, derived from the world's.
#[pyfunction]
#[pyo3(signature = (world, /))]
pub fn gateway_key(world: &[u8]) -> [u8; GATEWAY_KEY] {
    derived(world)
}

#[pymethods]
impl Gateway {
    #[new]
    #[pyo3(signature = (
        site, key, address, *, algorithm=None, connections=None, mptcp=false, pacing=None,
        scheduler="round-robin", delay=0.0, limit=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "keywords, each with its default")]
    fn new(
        py: Python<'_>,
        site: String,
        key: [u8; GATEWAY_KEY],
        address: &str,
        algorithm: Option<String>,
        connections: Option<u8>,
        mptcp: bool,
        pacing: Option<u64>,
        scheduler: &str,
        delay: f64,
        limit: Option<u64>,
    ) -> PyResult<Gateway> {
        let scheduler = Scheduler::named(scheduler).ok_or_else(|| {
            let names = Scheduler::ALL.map(Scheduler::name).join(", ");
            PyValueError::new_err(format!("no scheduler {scheduler:?}; there are: {names}"))
        })?;
        let delay = Duration::try_from_secs_f64(delay)
            .map_err(|_| PyValueError::new_err(format!("delay {delay}: seconds are needed")))?;
        let address = parse_address(address)?;
        let options = Options {
            site,
            key,
            address,
            algorithm,
            connections,
            mptcp,
            pacing,
            scheduler,
            delay,
            limit,
        };
        match gateway::Gateway::start(options) {
            Ok(gateway) => Ok(Gateway { gateway }),
            Err(refused) => Err(error(py, "SFMError", (refused.to_string(),))),
        }
    }

    #[getter]
    fn uid(&self) -> String {
        format!("{:032x}", self.gateway.uid)
    }

    #[getter]
    fn address(&self) -> String {
        format!("tcp://{}", self.gateway.address)
    }

    #[pyo3(signature = (listed, /))]
    fn peers(&self, listed: Vec<(String, String, String)>) -> PyResult<()> {
        let listed = listed.into_iter().map(|(uid, site, address)| {
            Ok(Listed { uid: parse_uid(&uid)?, site, address: parse_address(&address)? })
        });
        self.gateway.peers(listed.collect::<PyResult<_>>()?);
        Ok(())
    }

    #[pyo3(signature = (weights, /))]
    fn weights(&self, weights: HashMap<String, f64>) -> PyResult<()> {
        let weights = weights.into_iter().map(|(uid, weight)| Ok((parse_uid(&uid)?, weight)));
        self.gateway.weights(weights.collect::<PyResult<_>>()?);
        Ok(())
    }

    fn status(&self, py: Python<'_>) -> String {
        without_gil(py, || self.gateway.status())
    }

    fn close(&self, py: Python<'_>) {
        without_gil(py, || self.gateway.close());
    }
}

//! Leaving: an endpoint closes when all it has sent has arrived, or when the peers that have not
//! acknowledged it are dead or silent.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::exchange::Exchange;
use super::{now, Link, SECOND};
use crate::sync::lock;
use crate::wire::{Connection, Wire};

/// Nanoseconds to wait for peers that do not acknowledge everything. What is under way on a slow
/// connection adds to it, up to `MAX_PATIENCE`.
const PATIENCE: u64 = 5 * SECOND;
const MAX_PATIENCE: u64 = 60 * SECOND;
const BYTES_PER_SECOND: u64 = 2 << 20;
/// Nanoseconds for the kernels to deliver the last frames.
const BYE_TIMEOUT: u64 = SECOND;
const CHECK_EVERY: u64 = SECOND / 20;

pub(super) struct Closing {
    /// Links with something under way.
    links: Vec<Arc<Link>>,
    until: u64,
    /// Set when everything has arrived or is given up: the connections on which `Bye` was sent.
    saying_bye: Option<Vec<Arc<Connection>>>,
}

impl Closing {
    pub fn begin(exchange: &Exchange) -> Closing {
        let links: Vec<_> =
            exchange.links().into_iter().filter(|link| link.lost().is_none()).collect();
        let under_way = links.iter().map(|link| link.credit.all_waiting()).max().unwrap_or(0);
        let longer = under_way.saturating_mul(SECOND) / BYTES_PER_SECOND;
        for link in &links {
            link.send_ack();
        }
        let until = now() + (PATIENCE + longer).min(MAX_PATIENCE);
        Closing { links, until, saying_bye: None }
    }

    /// When to check again if nothing comes.
    pub fn due(&self) -> u64 {
        now() + CHECK_EVERY
    }

    /// Returns true when the endpoint may end.
    pub fn advance(&mut self, exchange: &Exchange) -> bool {
        if self.saying_bye.is_none() {
            let is_open = |link: &&Arc<Link>| {
                let departed = link.lost().is_some() || link.departed.load(Ordering::Relaxed);
                !departed && !link.is_empty()
            };
            let open: Vec<_> = self.links.iter().filter(is_open).collect();
            if !open.is_empty() && now() < self.until {
                return false;
            }
            for link in open {
                exchange.warn(&format!(
                    "left without knowing whether all messages to {} have arrived: it does not \
                     answer",
                    link.address
                ));
            }
            self.saying_bye = Some(self.send_byes(exchange));
            self.until = now() + BYE_TIMEOUT;
        }
        let saying_bye = self.saying_bye.as_ref().expect("just set");
        let over = saying_bye.iter().all(|connection| connection.has_ended());
        if !over && now() < self.until {
            // This side's end follows its last frame. The peer then ends its side, so the
            // connection closes without a reset, which could overtake frames that the peer has not
            // read.
            for flushed in saying_bye.iter().filter(|connection| connection.is_flushed()) {
                flushed.end_sending();
            }
            return false;
        }
        for link in exchange.links() {
            link.close("(this endpoint is closed)");
        }
        let remaining: Vec<_> = lock(&exchange.connections).values().cloned().collect();
        for (connection, _) in remaining {
            exchange.end(&connection);
        }
        exchange.direct.router.close(); // links may still hold its connections
        true
    }

    /// Send `Bye` to every peer and gateway; returns the connections that carry it.
    fn send_byes(&self, exchange: &Exchange) -> Vec<Arc<Connection>> {
        let mut connections: Vec<_> =
            exchange.site_gateways().iter().filter_map(|gateway| gateway.connection()).collect();
        for link in exchange.links() {
            let connection = link.connection().filter(|connection| connection.is_confirmed());
            if link.lost().is_none() {
                link.bye();
            }
            link.lose("(this endpoint is closed)");
            connections.extend(connection.filter(|connection| !connection.is_shared()));
        }
        exchange.leave_gateways();
        connections
    }
}

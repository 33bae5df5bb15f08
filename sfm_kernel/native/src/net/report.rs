//! Reports for observers about connections to other sites and to gateways.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::exchange::{Exchange, Remote};
use super::Link;
use super::{elapsed, SECOND};
use crate::json::Json;
use crate::tcp_history::{unix_time, History};
use crate::tcp_info::{self, Field, TcpInfo};
use crate::wire::{Connection, Seen, Warmth, Wire};

/// Bytes of the report in a process's segment, which holds other things too.
const MAX_REPORT: usize = 2400;
/// Peers that the report of a gateway's connection names.
const MAX_NAMED: usize = 16;
/// Nanoseconds between two reports.
pub(super) const REPORT_EVERY: u64 = SECOND;

#[derive(Default)]
pub struct ConnectionReport {
    /// The gateway of this site that it leads to; None: it leads to the only one of `peers`.
    pub gateway: Option<u128>,
    pub peers: Vec<u128>,
    /// The number of peers; `peers` may name fewer.
    pub count: usize,
    pub site: u32,
    pub address: String,
    pub algorithm: String,
    /// The congestion control that the kernel refused; "" if none.
    pub refused: String,
    pub warmth: Warmth,
    /// None if the kernel does not say, or the connection has just ended.
    pub info: Option<TcpInfo>,
    pub history: History,
    /// Seconds since something was written; None if nothing was.
    pub unsent: Option<f64>,
    /// Seconds without an answer.
    pub silent: Option<f64>,
}

fn ago(at: u64) -> Option<f64> {
    (at != 0).then(|| elapsed(at) as f64 / 1e9)
}

impl ConnectionReport {
    fn read(
        connection: &Connection,
        gateway: Option<u128>,
        site: u32,
        address: &str,
    ) -> ConnectionReport {
        let Seen { history, wrote, refused } = connection.tcp().seen();
        let algorithm = connection.with_socket(|socket| tcp_info::congestion(socket).ok());
        ConnectionReport {
            gateway,
            site,
            address: address.to_owned(),
            algorithm: algorithm.flatten().unwrap_or_default(),
            refused,
            warmth: connection.tcp().warmth(),
            info: connection.info(),
            history,
            unsent: ago(wrote),
            ..ConnectionReport::default()
        }
    }

    fn number(&self, field: Field) -> Option<u64> {
        self.info.as_ref()?.number(field)
    }
}

impl Exchange {
    /// The connections in use that lead to other sites or to gateways.
    pub fn connection_reports(&self) -> Vec<ConnectionReport> {
        let links = self.links();
        let mut reports = Vec::new();
        for (connection, remote) in self.each() {
            let carries =
                |link: &Arc<Link>| link.connection().is_some_and(|its| its.id() == connection.id());
            match remote {
                Remote::Gateway(gateway) => {
                    let listed = &gateway.listed;
                    let mut report = ConnectionReport::read(
                        &connection,
                        Some(listed.uid),
                        listed.site,
                        &listed.address,
                    );
                    let through: Vec<_> = links.iter().filter(|link| carries(link)).collect();
                    report.count = through.len();
                    report.peers = through.iter().take(MAX_NAMED).map(|link| link.uid).collect();
                    report.silent =
                        ago(gateway.asked.load(Ordering::Relaxed)).filter(|late| *late > 1.0);
                    reports.push(report);
                }
                Remote::Dialed(link) | Remote::Peer(link)
                    if link.site != self.identity.site && carries(&link) =>
                {
                    let mut report =
                        ConnectionReport::read(&connection, None, link.site, &link.address);
                    (report.peers, report.count) = (vec![link.uid], 1);
                    report.silent = ago(link.silent_since());
                    reports.push(report);
                }
                _ => {}
            }
        }
        reports
    }

    /// Publish the direct connections to other sites for observers.
    pub(super) fn report_connections(&self) {
        let mut out = Json(String::new());
        out.list("lines", |out| {
            let mut sites: Vec<Vec<ConnectionReport>> = Vec::new();
            for report in self.direct() {
                match sites.iter_mut().find(|reports| reports[0].site == report.site) {
                    Some(site) => site.push(report),
                    None => sites.push(vec![report]),
                }
            }
            for site in sites {
                let before = out.0.len();
                out.object(None, |out| report_site(&site, out));
                if out.0.len() > MAX_REPORT {
                    return out.0.truncate(before);
                }
            }
        });
        let nothing = out.0.ends_with("[]");
        self.core.publish_connections(if nothing { "" } else { &out.0 });
    }

    /// Direct connections to other sites, and peers there that cannot be reached.
    fn direct(&self) -> Vec<ConnectionReport> {
        let mut reports = self.connection_reports();
        reports.retain(|report| report.gateway.is_none());
        for link in self.links() {
            let silent = ago(link.silent_since());
            if link.site != self.identity.site && link.connection().is_none() && silent.is_some() {
                let (peers, site) = (vec![link.uid], link.site);
                reports.push(ConnectionReport {
                    peers,
                    site,
                    silent,
                    ..ConnectionReport::default()
                });
            }
        }
        reports
    }
}

/// The connections to one other site, as one.
fn report_site(connections: &[ConnectionReport], out: &mut Json) {
    let sum = |field| connections.iter().filter_map(|report| report.number(field)).sum::<u64>();
    let least = |field| connections.iter().filter_map(|report| report.number(field)).min();
    let known = |field| connections.iter().any(|report| report.number(field).is_some());
    // Observers look its site up.
    out.string("peer", &format!("{:032x}", connections[0].peers[0]));
    out.raw("count", connections.iter().map(|report| report.count).sum::<usize>());
    let carrying = connections.iter().find(|report| report.count > 0);
    out.string("algorithm", carrying.map_or("", |report| &report.algorithm));
    let refused = connections.iter().find(|report| !report.refused.is_empty());
    out.string("refused", refused.map_or("", |report| &report.refused));
    out.string("warm", carrying.map_or("", |report| report.warmth.name()));
    out.maybe("rtt_s", least(tcp_info::RTT).map(|micros| micros as f64 / 1e6));
    out.raw("rate", sum(tcp_info::DELIVERY_RATE));
    out.raw("cwnd", sum(tcp_info::SND_CWND));
    out.raw("retransmissions", sum(tcp_info::TOTAL_RETRANS));
    let total = |field| known(field).then(|| sum(field));
    out.maybe("rto", total(tcp_info::TOTAL_RTO));
    out.maybe("out_of_order", total(tcp_info::RCV_OOOPACK));
    // Times, not ages: what has not changed is not published again.
    let when = |age: f64| format!("{:.0}", unix_time() - age);
    let newest = connections.iter().filter_map(|report| report.unsent).reduce(f64::min);
    out.maybe("sent_at", newest.map(when));
    let silent = connections.iter().filter_map(|report| report.silent).reduce(f64::max);
    out.maybe("silent_since", silent.map(when));
    let timeouts = |report: &ConnectionReport| {
        report.info.as_ref().map_or(0, |info| report.history.timeouts(info).0)
    };
    let most_timeouts = connections
        .iter()
        .max_by_key(|report| (timeouts(report), report.history.last.map(|last| last.at)));
    let restarts = connections.iter().map(|report| report.history.restarts).sum();
    if let Some(report) = most_timeouts {
        let mut history = report.history.clone();
        history.restarts = restarts;
        history.report(report.info.as_ref(), out);
    }
}

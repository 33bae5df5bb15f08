//! What is told of connections that lead to other sites, and to gateways.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::connection::Connection;
use super::exchange::{Exchange, Who};
use super::link::Link;
use super::now;
use crate::json::Json;
use crate::tcp_info::{self, Field, TcpInfo};
use crate::tcp_past::{since_1970, Past};

/// A line is long from this round trip on: it forgets how much it carries after a silence of as many
/// round trips as its timeout is long.
const LONG: u64 = 4_000_000;
/// Bytes of what observers are told in a process's segment, where there is more besides.
const ROOM: usize = 2400;
/// Of a connection to a gateway so many are named whom it leads to.
const NAMED: usize = 16;
/// Observers are told so often at most.
pub(super) const TELL_EVERY: u64 = 1_000_000_000;

/// What keeps a connection from forgetting, in a silence, how much it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Warmth {
    Unknown,
    /// It is short: nothing is needed.
    Short,
    /// Its congestion control does not forget.
    Remembers,
    Beats,
    /// It forgets, as the user has wished.
    Forgets,
}

/// Find out whether a line is long, and what keeps it from forgetting how much it carries. `chosen`
/// (of `SFM_TCP`) names the congestion control of long lines; `still` in it, as in `cubic,still`,
/// leaves them to themselves, to see what that costs.
pub(super) fn learn(info: &TcpInfo, way: &Connection, chosen: &str) {
    let round_trip = info.number(tcp_info::MIN_RTT).unwrap_or(0) * 1000;
    if round_trip < LONG {
        return way.set_warmth(Warmth::Short, "");
    }
    let (mut algorithm, mut beats) = ("bbr", true);
    for word in chosen.split(',').filter(|word| !word.is_empty()) {
        if word == "still" {
            beats = false;
        } else {
            algorithm = word;
        }
    }
    match tcp_info::set_congestion(way.socket.raw(), algorithm) {
        Ok(()) if algorithm == "bbr" => way.set_warmth(Warmth::Remembers, ""),
        Ok(()) if beats => way.set_warmth(Warmth::Beats, ""),
        Err(_) if beats => way.set_warmth(Warmth::Beats, algorithm),
        done => way.set_warmth(Warmth::Forgets, if done.is_ok() { "" } else { algorithm }),
    }
}

impl Warmth {
    pub fn of(number: u8) -> Warmth {
        match number {
            1 => Warmth::Short,
            2 => Warmth::Remembers,
            3 => Warmth::Beats,
            4 => Warmth::Forgets,
            _ => Warmth::Unknown,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Warmth::Unknown | Warmth::Short | Warmth::Forgets => "",
            Warmth::Remembers => "bbr",
            Warmth::Beats => "heartbeat",
        }
    }
}

/// One connection, as it is now.
pub struct ConnectionReport {
    /// It leads to this gateway of the own site; else to the only one of `peers`.
    pub gateway: Option<u128>,
    pub peers: Vec<u128>,
    /// How many peers there are.
    pub count: usize,
    pub site: u32,
    pub address: String,
    pub algorithm: String,
    /// The congestion control that was asked for and not given; "" where none was.
    pub refused: String,
    pub warmth: Warmth,
    /// None where the kernel does not say, or the connection has just ended.
    pub info: Option<TcpInfo>,
    pub past: Past,
    /// Seconds since something was written; None before.
    pub unsent: Option<f64>,
    /// Seconds for which nobody has answered.
    pub silent: Option<f64>,
}

fn ago(at: u64) -> Option<f64> {
    (at != 0).then(|| now().saturating_sub(at) as f64 / 1e9)
}

impl ConnectionReport {
    fn of(way: &Connection, gateway: Option<u128>, site: u32, address: &str) -> ConnectionReport {
        let (past, wrote, refused) = way.past();
        let raw = way.socket.raw();
        ConnectionReport {
            gateway,
            peers: Vec::new(),
            count: 0,
            site,
            address: address.to_owned(),
            algorithm: tcp_info::congestion(raw).unwrap_or_default(),
            refused,
            warmth: way.warmth(),
            info: TcpInfo::read(raw).ok(),
            past,
            unsent: ago(wrote),
            silent: None,
        }
    }

    fn number(&self, field: Field) -> Option<u64> {
        self.info.as_ref()?.number(field)
    }
}

impl Exchange {
    /// The connections that lead to other sites or to gateways, and on which messages go.
    pub fn connection_reports(&self) -> Vec<ConnectionReport> {
        let links = self.links();
        let mut all = Vec::new();
        for (connection, who) in self.each() {
            let is_way = |link: &Arc<Link>| link.way().is_some_and(|way| way.id == connection.id);
            match who {
                Who::Gateway(gate) => {
                    let listed = &gate.listed;
                    let mut told = ConnectionReport::of(
                        &connection,
                        Some(listed.uid),
                        listed.site,
                        &listed.address,
                    );
                    let through: Vec<_> = links.iter().filter(|link| is_way(link)).collect();
                    told.count = through.len();
                    told.peers = through.iter().take(NAMED).map(|link| link.uid).collect();
                    told.silent =
                        ago(gate.asked.load(Ordering::Relaxed)).filter(|late| *late > 1.0);
                    all.push(told);
                }
                Who::Dialed { link, .. } | Who::Peer(link)
                    if link.site != self.identity.site && is_way(&link) =>
                {
                    let mut told =
                        ConnectionReport::of(&connection, None, link.site, &link.address);
                    (told.peers, told.count) = (vec![link.uid], 1);
                    told.silent = ago(link.silent_since());
                    all.push(told);
                }
                _ => {}
            }
        }
        all
    }

    /// Tell observers of the lines to other sites on which messages go directly.
    pub(super) fn report_connections(&self) {
        let mut out = Json(String::new());
        out.list("lines", |out| {
            let mut sites: Vec<Vec<ConnectionReport>> = Vec::new();
            for told in self.direct() {
                match sites.iter_mut().find(|one| one[0].site == told.site) {
                    Some(site) => site.push(told),
                    None => sites.push(vec![told]),
                }
            }
            for site in sites {
                let before = out.0.len();
                out.object(None, |out| report_site(&site, out));
                if out.0.len() > ROOM {
                    return out.0.truncate(before);
                }
            }
        });
        let nothing = out.0.ends_with("[]");
        self.core.publish_connections(if nothing { "" } else { &out.0 });
    }

    /// Direct ways to other sites, and what cannot be reached there.
    fn direct(&self) -> Vec<ConnectionReport> {
        let mut all = self.connection_reports();
        all.retain(|one| one.gateway.is_none());
        for link in self.links() {
            let silent = ago(link.silent_since());
            if link.site != self.identity.site && link.way().is_none() && silent.is_some() {
                all.push(ConnectionReport {
                    gateway: None,
                    peers: vec![link.uid],
                    count: 0,
                    site: link.site,
                    address: String::new(),
                    algorithm: String::new(),
                    refused: String::new(),
                    warmth: Warmth::Unknown,
                    info: None,
                    past: Past::default(),
                    unsent: None,
                    silent,
                });
            }
        }
        all
    }
}

/// The lines to one other site, as one.
fn report_site(lines: &[ConnectionReport], out: &mut Json) {
    let sum = |field| lines.iter().filter_map(|one| one.number(field)).sum::<u64>();
    let least = |field| lines.iter().filter_map(|one| one.number(field)).min();
    let known = |field| lines.iter().any(|one| one.number(field).is_some());
    // Observers find out by it which site this is.
    out.string("peer", &format!("{:032x}", lines[0].peers[0]));
    out.raw("count", lines.iter().map(|one| one.count).sum::<usize>());
    let of_way = lines.iter().find(|one| one.count > 0);
    out.string("algorithm", of_way.map_or("", |one| &one.algorithm));
    out.string(
        "refused",
        lines.iter().map(|one| &*one.refused).find(|one| !one.is_empty()).unwrap_or(""),
    );
    out.string("warm", of_way.map_or("", |one| one.warmth.name()));
    out.maybe("rtt_s", least(tcp_info::RTT).map(|micros| micros as f64 / 1e6));
    out.raw("rate", sum(tcp_info::DELIVERY_RATE));
    out.raw("cwnd", sum(tcp_info::SND_CWND));
    out.raw("retransmissions", sum(tcp_info::TOTAL_RETRANS));
    let total = |field| known(field).then(|| sum(field));
    out.maybe("rto", total(tcp_info::TOTAL_RTO));
    out.maybe("out_of_order", total(tcp_info::RCV_OOOPACK));
    // Times, not ages: what has not changed is not told again.
    let when = |age: f64| format!("{:.0}", since_1970() - age);
    let newest = lines.iter().filter_map(|one| one.unsent).reduce(f64::min);
    out.maybe("sent_at", newest.map(when));
    let silent = lines.iter().filter_map(|one| one.silent).reduce(f64::max);
    out.maybe("silent_since", silent.map(when));
    let lately =
        |one: &ConnectionReport| one.info.as_ref().map_or((0, 0.0), |info| one.past.timeouts(info));
    let worst = lines.iter().max_by_key(|one| (lately(one).0, one.past.last.map(|last| last.at)));
    let restarts = lines.iter().map(|one| one.past.restarts).sum();
    if let Some(one) = worst {
        let mut past = one.past.clone();
        past.restarts = restarts;
        past.tell(one.info.as_ref(), out);
    }
}

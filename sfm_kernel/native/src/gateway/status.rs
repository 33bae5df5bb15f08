//! A gateway's report about itself, as JSON.

use std::collections::BTreeMap;
use std::time::Instant;

use super::connection::{Connection, Count, Delays, Remote};
use super::emulation::CANNOT_SHOW;
use super::engine::Engine;
use super::peers::Peer;
use super::sockets;
use super::wide::Wide;
use crate::frame::control::Reason;
use crate::json::Json;
use crate::tcp_history::unix_time;
use crate::tcp_info::{self, Value, FIELDS};

/// Seconds of round trip between gateways of one site. Gateways farther apart are probably of two
/// sites with one name.
const CLOSE: f64 = 5e-3;
/// Seconds until a note says that another gateway cannot be reached.
const MISSED: f64 = 5.0;
/// Processes, and flows, that are listed: those with most bytes waiting.
const MAX_LISTED: usize = 64;

/// A gateway's counts as JSON.
impl Json {
    fn count(&mut self, name: &str, count: &Count) {
        self.object(Some(name), |out| {
            out.raw("frames", count.frames);
            out.raw("bytes", count.bytes);
        });
    }

    fn delays(&mut self, name: &str, delays: &Delays) {
        self.object(Some(name), |out| {
            out.raw("frames", delays.count);
            out.raw("mean_s", delays.mean());
            out.raw("below_median_s", delays.below(0.5));
            out.raw("below_p99_s", delays.below(0.99));
            out.raw("longest_s", delays.longest.as_secs_f64());
        });
    }
}

fn hexadecimal(uid: u128) -> String {
    format!("{uid:032x}")
}

impl Engine {
    pub fn status(&self) -> String {
        let now = Instant::now();
        let mut out = Json::default();
        out.object(None, |out| {
            out.string("uid", &hexadecimal(self.codec.uid));
            out.string("site", &self.options.site);
            out.string("address", &format!("tcp://{}", self.address));
            out.raw("seconds", (now - self.started).as_secs_f64());
            // This clock gives the times below; others' clocks may differ.
            out.raw("time", unix_time());
            out.string("algorithm", &self.choice.algorithm);
            out.raw("connections", self.choice.connections);
            out.string("why", &self.choice.why);
            out.raw("mptcp", self.options.mptcp);
            out.maybe("pacing", self.options.pacing);
            out.string("scheduler", self.options.scheduler.name());
            out.count("forwarded", &self.counts.forwarded);
            out.delays("delay", &self.delays);
            self.write_counts(out);
            out.list("processes", |out| {
                let of_process =
                    |connection: &&Connection| matches!(connection.remote, Remote::Process(_));
                let mut processes: Vec<_> = self.connections.iter().filter(of_process).collect();
                processes.sort_by_key(|connection| std::cmp::Reverse(connection.held));
                for connection in processes.into_iter().take(MAX_LISTED) {
                    if let Remote::Process(uid) = connection.remote {
                        out.object(None, |out| write_process(connection, uid, out));
                    }
                }
            });
            out.list("gateways", |out| {
                for (&uid, peer) in &self.peers {
                    out.object(None, |out| self.write_peer(uid, peer, now, out));
                }
            });
            out.list("flows", |out| self.write_flows(now, out));
            self.write_emulation(out);
            out.list("notes", |out| {
                for note in self.notes(now) {
                    out.text(&note);
                }
            });
        });
        out.0
    }

    fn write_counts(&self, out: &mut Json) {
        out.object(Some("dropped"), |out| {
            for (reason, count) in Reason::ALL.iter().zip(self.counts.dropped) {
                out.raw(reason.name(), count);
            }
            out.raw("spoofed sender", self.counts.spoofed);
        });
        out.raw("told", self.counts.notices);
        out.object(Some("strangers"), |out| {
            out.raw("now", self.strangers.count());
            out.raw("mute", self.strangers.silent);
            out.raw("too many", self.strangers.crowded);
            out.raw("foreign key", self.counts.foreign);
            out.raw("replayed", self.counts.replayed);
            out.raw("for another gateway", self.counts.misdirected);
        });
    }

    fn write_peer(&self, uid: u128, peer: &Peer, now: Instant, out: &mut Json) {
        out.string("uid", &hexadecimal(uid));
        out.string("site", &peer.site_name);
        out.maybe("address", peer.address.map(|address| format!("\"tcp://{address}\"")));
        out.raw("listed", peer.listed);
        let trouble = peer.trouble.as_ref();
        out.maybe("unreachable_s", trouble.map(|(_, since)| (now - *since).as_secs_f64()));
        out.string("trouble", trouble.map_or("", |(why, _)| why));
        out.list("connections", |out| {
            for (nth, slot) in peer.slots.iter().enumerate() {
                let connection = slot.up.and_then(|up| self.connections.get(up));
                if let Some((connection, wide)) =
                    connection.and_then(|connection| Some((connection, connection.wide.as_ref()?)))
                {
                    out.object(None, |out| write_wide(nth, connection, wide, now, out));
                }
            }
        });
    }

    /// Flows that wait or were used recently; those with most bytes waiting first.
    fn write_flows(&self, now: Instant, out: &mut Json) {
        let mut waiting = BTreeMap::new();
        for wide in self.connections.iter().filter_map(|connection| connection.wide.as_ref()) {
            for (pair, frames, bytes) in wide.schedule.flows() {
                waiting.insert((pair.sender, pair.receiver), (frames, bytes));
            }
        }
        let mut flows: Vec<_> = self
            .flows
            .iter()
            .map(|(pair, flow)| {
                let waits = waiting.get(&(pair.sender, pair.receiver)).copied();
                (waits.unwrap_or_default(), pair, flow)
            })
            .collect();
        flows.sort_by_key(|((_, waits), _, flow)| std::cmp::Reverse((*waits, flow.bytes)));
        for ((frames, bytes), pair, flow) in flows.into_iter().take(MAX_LISTED) {
            out.object(None, |out| {
                out.string("sender", &hexadecimal(pair.sender));
                out.string("receiver", &hexadecimal(pair.receiver));
                out.raw("frames", flow.frames);
                out.raw("bytes", flow.bytes);
                out.raw("waiting_frames", frames);
                out.raw("waiting_bytes", bytes);
                out.raw("lost", flow.has_no_route());
                out.raw("silent_s", (now - flow.last).as_secs_f64());
            });
        }
    }

    fn write_emulation(&self, out: &mut Json) {
        let Some(path) = &self.emulation else { return out.raw("emulation", "null") };
        out.object(Some("emulation"), |out| {
            out.raw("delay_s", path.delay.as_secs_f64());
            out.maybe("bytes_per_s", path.limit);
            out.delays("late", &path.late);
            out.string("cannot_show", CANNOT_SHOW);
        });
    }

    /// Notes for somebody who looks for a fault, in addition to what the connections to other sites
    /// show: see observe/links.py.
    fn notes(&self, now: Instant) -> Vec<String> {
        let mut notes = Vec::new();
        let site = &self.options.site;
        for peer in self.peers.values() {
            let sibling = peer.site == self.codec.site;
            let address =
                peer.address.map_or("an unknown address".to_owned(), |known| known.to_string());
            if sibling && !peer.site_name.is_empty() && peer.site_name != *site {
                notes.push(format!(
                    "the sites {site:?} and {:?} have the same number: rename one of them",
                    peer.site_name
                ));
            }
            if let Some((why, since)) = peer.trouble.as_ref().filter(|_| sibling && peer.listed) {
                let seconds = (now - *since).as_secs_f64();
                if seconds >= MISSED {
                    notes.push(format!(
                        "the other gateway of site {site:?}, at {address}, has not been reached for \
                         {seconds:.0} s ({why}): if there are two sites of this name, rename one \
                         (--site)"
                    ));
                }
            }
            let ups = peer.slots.iter().filter_map(|slot| self.connections.get(slot.up?));
            for wide in ups.filter_map(|connection| connection.wide.as_ref()) {
                self.note_wide(peer, wide, &address, &mut notes);
            }
        }
        if self.counts.foreign > 0 {
            notes.push(format!(
                "{} connections, the last from {}, have shown a key that is not this world's \
                 SFM_GATEWAY_KEY",
                self.counts.foreign,
                self.counts.last_foreign.as_deref().unwrap_or("nowhere")
            ));
        }
        notes.sort();
        notes.dedup(); // several connections may give the same note
        notes
    }

    fn note_wide(&self, peer: &Peer, wide: &Wide, address: &str, notes: &mut Vec<String>) {
        let rtt = wide.number(tcp_info::MIN_RTT) as f64 / 1e6;
        if peer.site == self.codec.site && rtt > CLOSE {
            notes.push(format!(
                "the other gateway of site {:?}, at {address}, is {:.0} ms away: if there are two \
                 sites of this name, rename one (--site)",
                self.options.site,
                rtt * 1e3
            ));
        }
        if self.options.pacing.is_some() && wide.given.pacing.is_none() && !wide.sibling {
            notes.push(format!("the kernel does not pace the connection to {address}"));
        }
        if wide.given.mptcp == Some(false) {
            notes
                .push(format!("the connection to {address} was to be MPTCP, and fell back to TCP"));
        }
    }
}

fn write_process(connection: &Connection, uid: u128, out: &mut Json) {
    out.string("uid", &hexadecimal(uid));
    out.string("address", &format!("tcp://{}", connection.address));
    out.raw("waiting_bytes", connection.waiting());
    out.raw("held_bytes", connection.held);
    out.raw("held_up", connection.paused);
    out.count("received", &connection.received);
    out.count("sent", &connection.sent);
}

fn write_wide(nth: usize, connection: &Connection, wide: &Wide, now: Instant, out: &mut Json) {
    out.raw("number", nth);
    out.string("address", &format!("tcp://{}", connection.address));
    out.raw("dialed", wide.dialed);
    out.raw("seconds", (now - connection.since).as_secs_f64());
    out.string("algorithm_asked", &wide.asked);
    out.string("algorithm", &wide.given.algorithm);
    out.maybe("mptcp", wide.given.mptcp);
    out.maybe("pacing", wide.given.pacing);
    out.raw("silent", wide.silent);
    out.raw("silences", wide.silences);
    out.raw("heard_s", (now - wide.received_at).as_secs_f64());
    wide.history.report(wide.info.as_ref(), out);
    out.raw("waiting_bytes", wide.schedule.bytes() + connection.waiting());
    out.raw("in_kernel_bytes", sockets::in_kernel(&connection.stream));
    out.count("received", &connection.received);
    out.count("sent", &connection.sent);
    // rcv_ooopack: packets that came out of order, each answered by a duplicate acknowledgement;
    // the kernel does not count incoming duplicates. dsack_dups: packets that came twice;
    // reord_seen: how often a change of order was seen.
    out.object(Some("tcp"), |out| {
        for &field in FIELDS {
            match wide.info.as_ref().and_then(|info| info.value(field)) {
                Some(Value::Number(number)) => out.raw(field.name, number),
                Some(Value::Seconds(seconds)) => out.raw(field.name, seconds),
                None => out.raw(field.name, "null"),
            }
        }
    });
}

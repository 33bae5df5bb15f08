//! Making connections, and what to do when one has ended: the network thread's part.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::connection::Connection;
use super::exchange::{Event, Exchange, Who};
use super::gateways::SiteGateway;
use super::link::Link;
use super::monitor::{
    ConnectionMonitor, GatewayMonitor, BURIED, LOOK, LOOK_SELDOM, RETRY, RETURN, SECOND,
};
use super::now;
use super::report::TELL_EVERY;

/// The network thread's.
#[derive(Default)]
pub(super) struct Dialing {
    lines: HashMap<u128, ConnectionMonitor>,
    gates: HashMap<u128, GatewayMonitor>,
    next_look: u64,
    /// When observers were told of lines.
    told: u64,
    /// It was said that no descriptor is left.
    said: bool,
}

impl Dialing {
    pub fn work(&mut self, exchange: &Exchange) {
        for event in exchange.events() {
            match event {
                Event::Wanted(link) => self.want(exchange, &link),
                Event::Gateway(gate) => self.gateway(exchange, &gate),
                Event::Made(connection, link) => self.made(exchange, &connection, &link),
                Event::Ended(connection, who, error) => match who {
                    Who::Stranger | Who::Watcher => {}
                    Who::Gateway(gate) => self.gateway_ended(exchange, &connection, &gate),
                    Who::Peer(link) => self.ended(exchange, &connection, &link, None, error),
                    Who::Dialed { link, probe } => {
                        self.ended(exchange, &connection, &link, Some(probe), error);
                    }
                },
            }
        }
        if now() >= self.next_look {
            self.look(exchange);
        }
    }

    /// When `work` is to be called.
    pub fn due(&self) -> Option<u64> {
        (!self.lines.is_empty() || !self.gates.is_empty()).then_some(self.next_look)
    }

    fn want(&mut self, exchange: &Exchange, link: &Arc<Link>) {
        if link.lost().is_some() {
            self.drop_line(exchange, link.uid);
            return;
        }
        link.set_far(exchange.is_far(link));
        let line = self.lines.entry(link.uid).or_insert_with(|| ConnectionMonitor::new(link));
        line.choose(exchange, &mut self.said);
        if link.why_dropped().is_some() {
            line.next = 0;
        }
        self.next_look = self.next_look.min(now() + LOOK);
    }

    fn drop_line(&mut self, exchange: &Exchange, uid: u128) {
        if let Some(line) = self.lines.remove(&uid) {
            if let Some((attempt, _)) = line.attempt {
                exchange.end(&attempt);
            }
        }
    }

    /// A probe has come through: what was silent goes on there.
    fn made(&mut self, exchange: &Exchange, connection: &Arc<Connection>, link: &Arc<Link>) {
        let Some(line) = self.lines.get_mut(&link.uid) else {
            exchange.end(connection);
            return;
        };
        if connection.has_ended() {
            return; // another way was found meanwhile
        }
        let former = link.way();
        line.next = now() + RETURN;
        link.take_way(connection.clone(), true);
        line.reached();
        link.set_silent(0);
        if let Some(former) = former.filter(|way| !way.shared) {
            exchange.end(&former);
        }
    }

    /// `dialed`: we have made it (true: to probe).
    fn ended(
        &mut self,
        exchange: &Exchange,
        connection: &Arc<Connection>,
        link: &Arc<Link>,
        dialed: Option<bool>,
        error: Option<i32>,
    ) {
        let was_way = link.lose_way(connection.id);
        if link.lost().is_some() {
            return self.drop_line(exchange, link.uid);
        }
        let line = self.lines.entry(link.uid).or_insert_with(|| ConnectionMonitor::new(link));
        let mut begun = now();
        let is_attempt = line.attempt.as_ref().is_some_and(|(one, _)| one.id == connection.id);
        if is_attempt {
            begun = line.attempt.take().expect("just seen").1;
        }
        if connection.confirmed.load(Ordering::Relaxed) {
            line.broke = true;
            if was_way {
                line.slams = 0;
                line.refusals = 0;
                self.renew(exchange, link);
            }
            return;
        }
        if dialed.is_none() {
            return;
        }
        match error {
            Some(libc::ECONNREFUSED) => line.refused(),
            // Somebody is there, and has ended the connection.
            None | Some(libc::ECONNRESET | libc::EPIPE) => line.slammed(begun),
            _ => {
                (line.refusals, line.slams) = (0, 0);
                if link.silent_since() == 0 {
                    link.set_silent(begun);
                }
                line.next = now() + SECOND;
            }
        }
        line.judge();
        if error == Some(libc::ECONNREFUSED) && exchange.closing.load(Ordering::SeqCst) {
            link.lose(""); // once is enough for who leaves
        }
        if link.lost().is_some() {
            return self.drop_line(exchange, link.uid);
        }
        self.next_look = self.next_look.min(line.next);
        if was_way {
            if let Some(way) = exchange.other_way(link) {
                link.take_way(way, true);
            }
        }
    }

    /// The way to a peer broke: take another one at once.
    fn renew(&mut self, exchange: &Exchange, link: &Arc<Link>) {
        let Some(line) = self.lines.get_mut(&link.uid) else { return };
        if let Some(way) = exchange.other_way(link) {
            link.take_way(way, true);
        } else {
            line.choose(exchange, &mut self.said);
        }
        self.next_look = self.next_look.min(now() + LOOK);
    }

    // ---- gateways ----

    fn gateway(&mut self, exchange: &Exchange, gate: &Arc<SiteGateway>) {
        let uid = gate.listed.uid;
        let line = self.gates.entry(uid).or_insert_with(|| GatewayMonitor {
            gate: gate.clone(),
            attempt: None,
            next: 0,
        });
        if gate.way().is_some() {
            line.attempt = None;
            // Who went another way meanwhile goes through the gateway again, when nothing is under way.
            for line in self.lines.values_mut() {
                line.choose(exchange, &mut self.said);
            }
        } else if line.attempt.is_none() {
            line.dial(exchange);
        }
        self.next_look = self.next_look.min(now() + LOOK);
    }

    fn gateway_ended(
        &mut self,
        exchange: &Exchange,
        connection: &Arc<Connection>,
        gate: &Arc<SiteGateway>,
    ) {
        gate.lose_way(connection.id);
        let Some(line) = self.gates.get_mut(&gate.listed.uid) else { return };
        line.attempt = None;
        line.next =
            now() + if connection.confirmed.load(Ordering::Relaxed) { RETRY } else { SECOND };
        if !exchange.is_listed(gate) {
            self.gates.remove(&gate.listed.uid);
        }
        for line in self.lines.values_mut() {
            if line.link.lose_way(connection.id) {
                line.broke = true;
                line.choose(exchange, &mut self.said);
            }
        }
        self.next_look = self.next_look.min(now() + RETRY);
    }

    // ---- looking ----

    fn look(&mut self, exchange: &Exchange) {
        let mut every = LOOK_SELDOM;
        self.gates.retain(|_, one| exchange.is_listed(&one.gate));
        for gate in self.gates.values_mut() {
            every = every.min(gate.look(exchange));
        }
        let mut given_up = Vec::new();
        for line in self.lines.values_mut() {
            let link = line.link.clone();
            if link.lost().is_some() {
                given_up.push(link.uid);
                continue;
            }
            every = every.min(line.look(exchange, &mut self.said));
            let silent = match link.silent_since() {
                0 => 0,
                since => now().saturating_sub(since),
            };
            if silent > BURIED && link.gone.load(Ordering::Relaxed) {
                link.lose("");
            } else if silent > exchange.patience {
                let seconds = exchange.patience / SECOND;
                let why = match link.why_silent() {
                    "" => String::new(),
                    why => format!("; {why}"),
                };
                link.lose(&format!(
                    "(it could not be reached for {seconds} s: the limit in SFM_UNREACHABLE{why})"
                ));
            }
        }
        for uid in given_up {
            self.drop_line(exchange, uid);
        }
        if now() >= self.told + TELL_EVERY {
            self.told = now();
            exchange.report_connections();
        }
        self.next_look = now() + every;
    }
}

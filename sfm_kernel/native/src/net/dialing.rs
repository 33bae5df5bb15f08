//! Makes connections, and replaces those that have ended: the network thread's part.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::exchange::{Event, Exchange, Remote};
use super::failures::Failures;
use super::gateways::{GatewayMonitor, SiteGateway};
use super::monitor::{
    dial, ConnectionMonitor, CHECK_EVERY, DEAD_AFTER, IDLE_CHECK_EVERY, RETRY_AFTER,
};
use super::report::REPORT_EVERY;
use super::{elapsed, now, Link, SECOND};
use crate::wire::{Connection, Wire};

/// State of the network thread.
#[derive(Default)]
pub(super) struct Dialing {
    monitors: HashMap<u128, ConnectionMonitor>,
    gateway_monitors: HashMap<u128, GatewayMonitor>,
    next_check: u64,
    /// When connections were last reported to observers.
    reported_at: u64,
    /// The user knows that no descriptor is left.
    warned: bool,
}

impl Dialing {
    pub fn work(&mut self, exchange: &Exchange) {
        for event in exchange.events() {
            match event {
                Event::CheckLink(link) => self.check_link(exchange, &link),
                Event::AroundGateways(link) => {
                    monitor_of(&mut self.monitors, &link).go_around_gateways();
                    self.check_link(exchange, &link);
                }
                Event::Gateway(gateway) => self.check_gateway(exchange, &gateway),
                Event::ProbeConnected(connection, link) => {
                    self.probe_connected(exchange, &connection, &link)
                }
                Event::Ended(connection, remote, error) => match remote {
                    Remote::Stranger(_) => {}
                    Remote::Gateway(gateway) => self.gateway_ended(exchange, &connection, &gateway),
                    Remote::Peer(link) => self.ended(exchange, &connection, &link, false, error),
                    Remote::Dialed(link) | Remote::Probe(link) => {
                        self.ended(exchange, &connection, &link, true, error);
                    }
                },
            }
        }
        if now() >= self.next_check {
            self.check_all(exchange);
        }
    }

    /// When `work` is due.
    pub fn due(&self) -> Option<u64> {
        (!self.monitors.is_empty() || !self.gateway_monitors.is_empty()).then_some(self.next_check)
    }

    fn check_link(&mut self, exchange: &Exchange, link: &Arc<Link>) {
        if link.lost().is_some() {
            return self.drop_monitor(exchange, link.uid);
        }
        link.set_uses_gateways(exchange.uses_gateways(link));
        let monitor = monitor_of(&mut self.monitors, link);
        monitor.choose_connection(exchange, &mut self.warned);
        if link.why_dropped().is_some() {
            monitor.next = 0;
        }
        self.next_check = self.next_check.min(now() + CHECK_EVERY);
    }

    fn drop_monitor(&mut self, exchange: &Exchange, uid: u128) {
        if let Some(mut monitor) = self.monitors.remove(&uid) {
            monitor.give_up_attempt(exchange);
        }
    }

    /// A probe has found that somebody listens there: a silent link goes on with a new connection.
    fn probe_connected(
        &mut self,
        exchange: &Exchange,
        connection: &Arc<Connection>,
        link: &Arc<Link>,
    ) {
        let Some(monitor) = self.monitors.get_mut(&link.uid) else { return };
        if monitor.attempt.take_if(|(attempt, _)| attempt.id() == connection.id()).is_none() {
            return; // the link has found another connection meanwhile
        }
        let former = link.connection();
        monitor.go_around_gateways();
        monitor.reached();
        link.end_silence();
        monitor.broke = true;
        dial(exchange, monitor, false, &mut self.warned);
        if let Some(former) = former.filter(|connection| !connection.is_shared()) {
            exchange.end(&former);
        }
    }

    /// `dialed`: this process has made the connection.
    fn ended(
        &mut self,
        exchange: &Exchange,
        connection: &Arc<Connection>,
        link: &Arc<Link>,
        dialed: bool,
        error: Option<i32>,
    ) {
        let was_current = link.drop_connection(connection.id());
        if link.lost().is_some() {
            return self.drop_monitor(exchange, link.uid);
        }
        let monitor = monitor_of(&mut self.monitors, link);
        let attempt = monitor.attempt.take_if(|(attempt, _)| attempt.id() == connection.id());
        let begun = attempt.map_or_else(now, |(_, begun)| begun);
        if connection.is_confirmed() {
            monitor.broke = true;
            if was_current {
                monitor.failures = Failures::default();
                self.replace_connection(exchange, link);
            }
            return;
        }
        if !dialed {
            return;
        }
        match error {
            Some(libc::ECONNREFUSED) => monitor.refused(),
            // A process listens there, and has ended the connection.
            None | Some(libc::ECONNRESET | libc::EPIPE) => monitor.hung_up(begun),
            // libzmq could not connect, and does not say why.
            Some(libc::ENOTCONN) => dial(exchange, monitor, true, &mut self.warned),
            _ => {
                monitor.failures = Failures::default();
                link.begin_silence(begun);
                monitor.next = now() + SECOND;
            }
        }
        monitor.lose_if_proven_dead();
        if error == Some(libc::ECONNREFUSED) && exchange.closing.load(Ordering::SeqCst) {
            link.lose(""); // one refusal is enough for a process that leaves
        }
        if link.lost().is_some() {
            return self.drop_monitor(exchange, link.uid);
        }
        self.next_check = self.next_check.min(monitor.next);
        if was_current {
            if let Some(connection) = exchange.other_connection(link) {
                link.use_connection(connection, true);
            }
        }
    }

    /// The connection to a peer broke: use another one at once.
    fn replace_connection(&mut self, exchange: &Exchange, link: &Arc<Link>) {
        let Some(monitor) = self.monitors.get_mut(&link.uid) else { return };
        if let Some(connection) = exchange.other_connection(link) {
            link.use_connection(connection, true);
        } else {
            monitor.choose_connection(exchange, &mut self.warned);
        }
        self.next_check = self.next_check.min(now() + CHECK_EVERY);
    }

    // ---- gateways ----

    fn check_gateway(&mut self, exchange: &Exchange, gateway: &Arc<SiteGateway>) {
        let uid = gateway.listed.uid;
        let monitor =
            self.gateway_monitors.entry(uid).or_insert_with(|| GatewayMonitor::new(gateway));
        if gateway.connection().is_some() {
            monitor.attempt = None;
            // Links that went around this gateway return to it when nothing is under way.
            for monitor in self.monitors.values_mut() {
                monitor.choose_connection(exchange, &mut self.warned);
            }
        } else if monitor.attempt.is_none() {
            monitor.dial(exchange);
        }
        self.next_check = self.next_check.min(now() + CHECK_EVERY);
    }

    fn gateway_ended(
        &mut self,
        exchange: &Exchange,
        connection: &Arc<Connection>,
        gateway: &Arc<SiteGateway>,
    ) {
        gateway.drop_connection(connection.id());
        let Some(monitor) = self.gateway_monitors.get_mut(&gateway.listed.uid) else { return };
        monitor.attempt = None;
        monitor.next = now() + if connection.is_confirmed() { RETRY_AFTER } else { SECOND };
        if !exchange.is_listed(gateway) {
            self.gateway_monitors.remove(&gateway.listed.uid);
        }
        for monitor in self.monitors.values_mut() {
            if monitor.link.drop_connection(connection.id()) {
                monitor.broke = true;
                monitor.choose_connection(exchange, &mut self.warned);
            }
        }
        self.next_check = self.next_check.min(now() + RETRY_AFTER);
    }

    // ---- checking ----

    fn check_all(&mut self, exchange: &Exchange) {
        let mut every = IDLE_CHECK_EVERY;
        self.gateway_monitors.retain(|_, monitor| exchange.is_listed(&monitor.gateway));
        for gateway in self.gateway_monitors.values_mut() {
            every = every.min(gateway.check(exchange));
        }
        let mut given_up = Vec::new();
        for monitor in self.monitors.values_mut() {
            let link = monitor.link.clone();
            if link.lost().is_some() {
                given_up.push(link.uid);
                continue;
            }
            every = every.min(monitor.check(exchange, &mut self.warned));
            let silent = match link.silent_since() {
                0 => 0,
                since => elapsed(since),
            };
            if silent > DEAD_AFTER && link.departed.load(Ordering::Relaxed) {
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
            self.drop_monitor(exchange, uid);
        }
        if now() >= self.reported_at + REPORT_EVERY {
            self.reported_at = now();
            exchange.report_connections();
        }
        self.next_check = now() + every;
    }
}

fn monitor_of<'a>(
    monitors: &'a mut HashMap<u128, ConnectionMonitor>,
    link: &Arc<Link>,
) -> &'a mut ConnectionMonitor {
    monitors.entry(link.uid).or_insert_with(|| ConnectionMonitor::new(link))
}

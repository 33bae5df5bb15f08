//! Judges the connection to one peer: whether it is up, silent or lost.
//!
//! Only the kernel counts, never how fast a peer answers: a process that is stopped or busy keeps
//! its connections, and its kernel acknowledges. When a process dies, its kernel closes its
//! connections at once and refuses new ones: that is proof of its death, as is another process at
//! its address. A peer that cannot be reached is *silent*, not dead: the monitor tries to reach it
//! every second, the link keeps what was sent to it, and gives it up only at a limit that the user
//! has set.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::exchange::{Exchange, Remote};
use super::failures::{Failures, Proof};
use super::{elapsed, now, Link, SECOND};
use crate::frame::FrameKind;
use crate::tcp_info::{self, TcpInfo};
use crate::wire::gateway::Socket;
use crate::wire::{Connection, Warmth, Wire};

const MILLISECOND: u64 = 1_000_000;
/// Pause after a refusal, in nanoseconds.
pub(super) const RETRY_AFTER: u64 = 100 * MILLISECOND;
/// Seconds without an acknowledgement until a connection is silent: of sent data, and of the
/// kernel's keepalive probes on an idle connection.
const SILENT_SENDING: f64 = 1.2;
const SILENT_IDLE: f64 = 4.5;
/// Unanswered window probes that a connection without room may have.
const UNANSWERED_PROBES: u64 = 2;
/// Nanoseconds of silence after which nothing can be under way of a peer that the directory calls
/// dead.
pub(super) const DEAD_AFTER: u64 = 5 * SECOND;
/// Nanoseconds until a link that goes around gateways uses them again.
const RETURN_AFTER: u64 = 5 * SECOND;
/// Nanoseconds between two checks while something may be wrong, and while all seems well.
pub(super) const CHECK_EVERY: u64 = 250 * MILLISECOND;
pub(super) const IDLE_CHECK_EVERY: u64 = 2 * SECOND;
/// Nanoseconds between two beats on a long connection whose congestion control would forget, and
/// seconds since its last use for which it beats.
const BEAT: u64 = 100 * MILLISECOND;
const BEATS_FOR: f64 = 60.0;

/// The state of one peer.
pub(super) struct ConnectionMonitor {
    pub link: Arc<Link>,
    /// A connection that is being made, also as a probe, and since when.
    pub attempt: Option<(Arc<Connection>, u64)>,
    /// When to try again.
    pub next: u64,
    /// Until when the link stays on a direct connection although there are gateways.
    around_until: u64,
    /// The link has had a connection on which the peer has shown the key.
    pub broke: bool,
    pub failures: Failures,
    /// When the kernel's silence was last noticed first; it had begun before.
    silence_noticed: u64,
}

impl ConnectionMonitor {
    pub fn new(link: &Arc<Link>) -> ConnectionMonitor {
        ConnectionMonitor {
            link: link.clone(),
            attempt: None,
            next: 0,
            around_until: 0,
            broke: false,
            failures: Failures::default(),
            silence_noticed: 0,
        }
    }

    /// Whether a connection is being made. (An attempt that the peer's connection has replaced has
    /// ended.)
    pub fn is_dialing(&mut self) -> bool {
        self.attempt.take_if(|(attempt, _)| attempt.has_ended());
        self.attempt.is_some()
    }

    /// Give the peer up if its death, or its other key, is proven.
    pub fn lose_if_proven_dead(&self) {
        self.link.lose(match self.failures.proof(now()) {
            Some(Proof::Death) => "",
            Some(Proof::OtherKey) => "(whoever listens at its address does not have its key)",
            None => return,
        });
    }

    /// The link has left the gateways for a direct connection, since nothing arrives through them,
    /// at least in one direction.
    pub fn go_around_gateways(&mut self) {
        self.around_until = now() + RETURN_AFTER;
    }

    /// The peer's kernel answers.
    pub fn reached(&mut self) {
        self.attempt = None;
        self.failures = Failures::default();
    }

    pub fn refused(&mut self) {
        self.failures.refused(now());
        self.next = now() + RETRY_AFTER;
    }

    pub fn hung_up(&mut self, begun: u64) {
        self.next = now() + RETRY_AFTER;
        if !self.failures.hung_up(begun, now()) {
            self.link.begin_silence(begun);
        }
    }

    /// Switch the link to the connection that it should use, unless something is under way on
    /// another one.
    pub fn choose_connection(&mut self, exchange: &Exchange, warned: &mut bool) {
        let link = self.link.clone();
        if link.lost().is_some() {
            return;
        }
        let connection = link.connection();
        let is_direct = connection.as_ref().is_some_and(|connection| !connection.is_shared());
        let stays = is_direct && now() < self.around_until;
        if connection.is_none() || (link.is_empty() && !stays) {
            // Also to return from another gateway or a direct connection.
            let gateway = exchange.gateway_to(&link);
            let is_other = |gateway: &Arc<Connection>| {
                connection.as_ref().is_none_or(|connection| connection.id() != gateway.id())
            };
            if let Some(gateway) = gateway.filter(is_other) {
                link.use_connection(gateway, self.broke);
                if let Some(former) = connection.filter(|connection| !connection.is_shared()) {
                    exchange.end(&former);
                }
                return self.give_up_attempt(exchange);
            }
        }
        // A gateway that was asked only just now is about to answer.
        let answer_is_due = exchange.uses_gateways(&link)
            && exchange.site_gateways().iter().any(|gateway| {
                let asked = gateway.asked.load(Ordering::Relaxed);
                asked != 0 && elapsed(asked) < SECOND
            });
        if connection.is_none() && !self.is_dialing() && !answer_is_due {
            dial(exchange, self, false, warned);
        }
    }

    /// Check the connection; returns nanoseconds until the next check.
    pub fn check(&mut self, exchange: &Exchange, warned: &mut bool) -> u64 {
        let mut late = false;
        if let Some((attempt, begun)) = &self.attempt {
            if attempt.is_confirmed() {
                self.reached();
                self.link.end_silence();
            } else if elapsed(*begun) > SECOND {
                // The kernel repeats its request after 1, 3, 7 … seconds. A peer that returns is
                // noticed sooner.
                late = true;
                if has_no_answer(attempt) {
                    let begun = *begun;
                    self.give_up_attempt(exchange);
                    self.link.begin_silence(begun);
                    self.failures = Failures::default();
                }
            }
        }
        if late || self.link.connection().is_none() {
            // The peer has made a connection: then this process need not be able to reach it.
            if let Some(other) = exchange.other_connection(&self.link) {
                self.give_up_attempt(exchange);
                self.link.use_connection(other, true);
                self.reached();
            }
        }
        if let Some(ended) = self.link.connection().filter(|connection| connection.has_ended()) {
            self.link.drop_connection(ended.id());
        }
        let Some(connection) = self.link.connection() else {
            if now() >= self.next {
                self.choose_connection(exchange, warned);
            }
            return CHECK_EVERY;
        };
        if connection.is_shared() {
            return self.check_through_gateway(exchange, &connection, warned);
        }
        if self.attempt.as_ref().is_some_and(|(attempt, _)| attempt.id() == connection.id()) {
            return CHECK_EVERY; // not confirmed yet
        }
        self.check_direct(exchange, &connection, warned)
    }

    pub fn give_up_attempt(&mut self, exchange: &Exchange) {
        if let Some((attempt, _)) = self.attempt.take() {
            self.link.drop_connection(attempt.id());
            exchange.end(&attempt);
        }
    }

    /// Check whether frames through a gateway arrive. If not, ask the gateway and dial the peer
    /// directly.
    fn check_through_gateway(
        &mut self,
        exchange: &Exchange,
        connection: &Arc<Connection>,
        warned: &mut bool,
    ) -> u64 {
        let Some(since) = self.link.waits_since() else {
            self.link.end_silence();
            self.give_up_attempt(exchange);
            self.choose_connection(exchange, warned);
            return IDLE_CHECK_EVERY;
        };
        let dropped = self.link.why_dropped().is_some();
        let waited = elapsed(since);
        if waited as f64 / 1e9 > SILENT_SENDING || (dropped && waited > RETRY_AFTER) {
            self.link.begin_silence(since);
            if now() >= self.next {
                self.next = now() + SECOND;
                self.link.check_losses();
                for gateway in exchange.site_gateways() {
                    if gateway.connection().is_some_and(|its| its.id() == connection.id()) {
                        exchange.ask_gateway(&gateway, connection);
                    }
                }
                if !self.is_dialing() {
                    dial(exchange, self, true, warned);
                }
            }
        } else {
            self.link.end_silence();
        }
        CHECK_EVERY
    }

    fn check_direct(
        &mut self,
        exchange: &Exchange,
        connection: &Arc<Connection>,
        warned: &mut bool,
    ) -> u64 {
        let Some(info) = connection.info() else { return CHECK_EVERY };
        let milliseconds = |field| info.number(field).unwrap_or(0);
        let under_way = connection.unacknowledged() > 0;
        if let Some(quiet) = silence(&info, under_way) {
            if self.link.silent_since() == 0 {
                self.silence_noticed = now();
            }
            self.link.begin_silence(now().saturating_sub((quiet * SECOND as f64) as u64).max(1));
            if !self.is_dialing() && now() >= self.next {
                dial(exchange, self, true, warned);
                self.next = now() + SECOND;
            }
            return CHECK_EVERY;
        }
        let silent_since = self.link.silent_since();
        if silent_since != 0 {
            // Of a connection that was made before, something must have come since it was noticed.
            let quiet = milliseconds(tcp_info::LAST_ACK_RECV) * MILLISECOND;
            if quiet > elapsed(silent_since.max(self.silence_noticed)) {
                return CHECK_EVERY;
            }
            self.link.end_silence();
            self.give_up_attempt(exchange);
        }
        let returns = now() >= self.next.max(self.around_until);
        if let Some(gateway) = exchange.gateway_to(&self.link).filter(|_| returns) {
            // This connection was used because gateways could not be reached.
            self.next = now() + RETURN_AFTER;
            self.link.use_connection(gateway, true);
            exchange.end(connection);
            return CHECK_EVERY;
        }
        let unsent = milliseconds(tcp_info::LAST_DATA_SENT) as f64 / 1e3;
        let tcp = connection.tcp();
        tcp.sample(&info);
        if tcp.warmth() == Warmth::Unknown {
            connection.with_socket(|fd| tcp.choose_warmth(fd, &info, &exchange.congestion));
        }
        if tcp.warmth() == Warmth::Beats && unsent < BEATS_FOR {
            if unsent * SECOND as f64 >= 0.9 * BEAT as f64 {
                self.link.control(FrameKind::Beat, false, 0, b"");
            }
            return BEAT;
        }
        if under_way {
            CHECK_EVERY
        } else {
            IDLE_CHECK_EVERY
        }
    }
}

/// Whether the peer's kernel has not answered an attempt, or no longer answers.
fn has_no_answer(attempt: &Connection) -> bool {
    const SYN_SENT: u64 = 2;
    let Some(info) = attempt.info() else { return true }; // libzmq has no connection yet
    let is_being_made = info.number(tcp_info::STATE) == Some(SYN_SENT);
    is_being_made || silence(&info, attempt.unacknowledged() > 0).is_some()
}

/// Seconds for which the peer's kernel has been silent, if that is too long.
fn silence(info: &TcpInfo, under_way: bool) -> Option<f64> {
    let number = |field| info.number(field).unwrap_or(0);
    // The peer does not read and has no room: this kernel probes it now and then, and the peer's
    // kernel answers at once.
    if under_way && number(tcp_info::UNACKED) == 0 && number(tcp_info::PROBES) < UNANSWERED_PROBES {
        return None;
    }
    let quiet = number(tcp_info::LAST_ACK_RECV) as f64 / 1e3;
    (quiet > if under_way { SILENT_SENDING } else { SILENT_IDLE }).then_some(quiet)
}

/// Begin a connection, which messages use at once; or, as a `probe`, find out whether somebody
/// listens there, which libzmq does not tell.
pub(super) fn dial(
    exchange: &Exchange,
    monitor: &mut ConnectionMonitor,
    probe: bool,
    warned: &mut bool,
) {
    let link = monitor.link.clone();
    let made = if probe {
        Socket::connect(&link.address)
            .map(|socket| exchange.add_connection(socket, Remote::Probe(link.clone())))
    } else {
        exchange.dial_direct(&link)
    };
    match made {
        Ok(connection) => {
            monitor.attempt = Some((connection.clone(), now()));
            if !probe {
                link.use_connection(connection, monitor.broke);
            }
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => {
                monitor.refused();
                monitor.lose_if_proven_dead();
            }
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                monitor.next = now() + CHECK_EVERY;
                if !std::mem::replace(warned, true) {
                    exchange.warn(&format!(
                        "no descriptor left for a connection to {}: close files, or raise the \
                         limit (ulimit -n). Trying again meanwhile",
                        link.address
                    ));
                }
            }
            Some(_) => {
                monitor.next = now() + SECOND;
                link.begin_silence(now());
            }
            None => link.lose(&format!("({}: {error})", link.address)),
        },
    }
}

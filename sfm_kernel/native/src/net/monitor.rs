//! One line, to a peer or a gateway: what it means that it broke, or is silent.
//!
//! Only the kernel's word counts, never how fast a peer answers: a process that is stopped or
//! computes keeps its connections, and its kernel acknowledges. One that died closes them at once, and
//! its kernel refuses new ones: that, and that another process has its address now, is proof. A peer
//! that cannot be reached is *silent*, not dead: it is tried again every second, what was sent to it is
//! kept, and it is given up only at a limit that the user has set.

use std::sync::atomic::Ordering;
use std::sync::Arc;

use super::connection::Connection;
use super::exchange::{Exchange, Who};
use super::frame::Kind;
use super::gateways::SiteGateway;
use super::link::Link;
use super::now;
use super::report::{learn, Warmth};
use super::socket::Socket;
use crate::tcp_info::{self, TcpInfo};

const MILLISECOND: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1000 * MILLISECOND;
/// After a refusal it is tried again so soon.
pub(super) const RETRY: u64 = 100 * MILLISECOND;
/// Refused so often in so long: the process is gone, since it listens as long as it lives.
const REFUSALS: u32 = 3;
const REFUSED_FOR: u64 = 300 * MILLISECOND;
/// Hung up on without a word so often in so long: whoever is there has another key. (Once may be a
/// mistake: of too many strangers some are turned away, see admission.rs.)
const UNWELCOME_FOR: u64 = 1500 * MILLISECOND;
/// A connection that was ended so long after it was made was not looked at in time.
const PATIENCE: u64 = 1500 * MILLISECOND;
/// Without an acknowledgement for so long a line is silent: of what was sent, and of the kernel's own
/// questions on an idle one.
const SILENT_SENDING: f64 = 1.2;
const SILENT_IDLE: f64 = 4.5;
/// So many unanswered questions whether there is room by now.
const UNANSWERED: u64 = 2;
/// What the directory says is gone, and is silent for so long: nothing of it is under way any more.
pub(super) const BURIED: u64 = 5 * SECOND;
/// Who goes around gateways goes through them again after so long.
pub(super) const RETURN: u64 = 5 * SECOND;
/// Lines are looked at so often, while something may be wrong and while nothing seems to be.
pub(super) const LOOK: u64 = 250 * MILLISECOND;
pub(super) const LOOK_SELDOM: u64 = 2 * SECOND;
/// A long line whose congestion control would forget is kept awake so often, for so long after it was
/// used last.
const BEAT: u64 = 100 * MILLISECOND;
const BEATS_FOR: f64 = 60.0;

/// One peer, as seen from here.
pub(super) struct ConnectionMonitor {
    pub link: Arc<Link>,
    /// The attempt that is under way, and since when; also one that probes whether the peer can be
    /// reached again.
    pub attempt: Option<(Arc<Connection>, u64)>,
    /// When to try again.
    pub next: u64,
    /// There was a connection before, on which the peer has shown the key.
    pub broke: bool,
    pub refusals: u32,
    refused_since: u64,
    pub slams: u32,
    slammed_since: u64,
}

/// A gateway of the own site, as seen from here.
pub(super) struct GatewayMonitor {
    pub gate: Arc<SiteGateway>,
    pub attempt: Option<(Arc<Connection>, u64)>,
    pub next: u64,
}

impl ConnectionMonitor {
    pub fn new(link: &Arc<Link>) -> ConnectionMonitor {
        ConnectionMonitor {
            link: link.clone(),
            attempt: None,
            next: 0,
            broke: false,
            refusals: 0,
            refused_since: 0,
            slams: 0,
            slammed_since: 0,
        }
    }

    /// Whether an attempt is under way. (One in whose place the peer's own was taken has ended.)
    pub fn is_trying(&mut self) -> bool {
        self.attempt.take_if(|(attempt, _)| attempt.has_ended());
        self.attempt.is_some()
    }

    /// Lose the peer if that it is gone is proven.
    pub fn judge(&self) {
        if self.refusals >= REFUSALS && now() - self.refused_since > REFUSED_FOR {
            self.link.lose("");
        } else if self.slams >= REFUSALS && now() - self.slammed_since > UNWELCOME_FOR {
            self.link.lose("(at its address somebody refuses our key)");
        }
    }

    /// The peer's kernel answers.
    pub fn reached(&mut self) {
        self.attempt = None;
        (self.refusals, self.slams) = (0, 0);
    }

    pub fn refused(&mut self) {
        if self.refusals == 0 {
            self.refused_since = now();
        }
        self.refusals += 1;
        self.next = now() + RETRY;
    }

    pub fn slammed(&mut self, begun: u64) {
        self.refusals = 0;
        self.next = now() + RETRY;
        if now() - begun > PATIENCE {
            self.slams = 0;
            return;
        }
        if self.slams == 0 {
            self.slammed_since = now();
        }
        self.slams += 1;
    }

    /// Take the way that is right now, unless there is one that something is under way on.
    pub fn choose(&mut self, exchange: &Exchange, said: &mut bool) {
        let link = self.link.clone();
        if link.lost().is_some() {
            return;
        }
        let way = link.way();
        if way.is_none() || link.is_empty() {
            // Also where another gateway, or a direct connection, had to take its place.
            let gateway = exchange.gateway_to(&link);
            let is_other = |one: &Arc<Connection>| way.as_ref().is_none_or(|way| way.id != one.id);
            if let Some(gateway) = gateway.filter(is_other) {
                link.take_way(gateway, self.broke);
                if let Some(former) = way.filter(|way| !way.shared) {
                    exchange.end(&former);
                }
                if let Some((attempt, _)) = self.attempt.take() {
                    exchange.end(&attempt);
                }
                return;
            }
        }
        // A gateway that was only just asked is about to answer.
        let soon = exchange.is_far(&link)
            && exchange.own_gates().iter().any(|one| {
                let asked = one.asked.load(Ordering::Relaxed);
                asked != 0 && now() - asked < SECOND
            });
        if way.is_none() && !self.is_trying() && !soon {
            dial(exchange, self, false, said);
        }
    }

    /// See how it is; in how many nanoseconds to look again.
    pub fn look(&mut self, exchange: &Exchange, said: &mut bool) -> u64 {
        let mut late = false;
        if let Some((attempt, begun)) = &self.attempt {
            if attempt.confirmed.load(Ordering::Relaxed) {
                self.reached();
                self.link.set_silent(0);
            } else if now() - begun > SECOND {
                // The kernel asks again after 1, 3, 7 … seconds. Who has come back is to be seen sooner.
                late = true;
                if is_unanswered(attempt) {
                    let begun = *begun;
                    self.give_up_attempt(exchange);
                    if self.link.silent_since() == 0 {
                        self.link.set_silent(begun);
                    }
                    (self.refusals, self.slams) = (0, 0);
                }
            }
        }
        if late || self.link.way().is_none() {
            // The peer reaches us, though we may not reach it: it need not be reached.
            if let Some(other) = exchange.other_way(&self.link) {
                self.give_up_attempt(exchange);
                self.link.take_way(other, true);
                self.reached();
                self.link.set_silent(0);
            }
        }
        if let Some(ended) = self.link.way().filter(|way| way.has_ended()) {
            self.link.lose_way(ended.id);
        }
        let Some(way) = self.link.way() else {
            if now() >= self.next {
                self.choose(exchange, said);
            }
            return LOOK;
        };
        if way.shared {
            return self.look_through_gateway(exchange, &way, said);
        }
        if self.attempt.as_ref().is_some_and(|(one, _)| one.id == way.id) {
            return LOOK; // not confirmed yet
        }
        self.look_at(exchange, &way, said)
    }

    fn give_up_attempt(&mut self, exchange: &Exchange) {
        if let Some((attempt, _)) = self.attempt.take() {
            self.link.lose_way(attempt.id);
            exchange.end(&attempt);
        }
    }

    /// Whether what goes through a gateway arrives. If it does not, the gateway is asked, and the peer
    /// is tried directly.
    fn look_through_gateway(
        &mut self,
        exchange: &Exchange,
        way: &Arc<Connection>,
        said: &mut bool,
    ) -> u64 {
        let Some(since) = self.link.waits_since() else {
            self.link.set_silent(0);
            if let Some((probe, _)) = self.attempt.take() {
                exchange.end(&probe);
            }
            self.choose(exchange, said);
            return LOOK_SELDOM;
        };
        let dropped = self.link.why_dropped().is_some();
        let waited = now().saturating_sub(since);
        if waited as f64 / 1e9 > SILENT_SENDING || (dropped && waited > RETRY) {
            if self.link.silent_since() == 0 {
                self.link.set_silent(since);
            }
            if now() >= self.next {
                self.next = now() + SECOND;
                self.link.may_have_lost();
                for gate in exchange.own_gates() {
                    if gate.way().is_some_and(|one| one.id == way.id) {
                        exchange.ask_gateway(&gate, way);
                    }
                }
                if !self.is_trying() {
                    dial(exchange, self, true, said);
                }
            }
        } else if self.link.silent_since() != 0 {
            self.link.set_silent(0);
        }
        LOOK
    }

    fn look_at(&mut self, exchange: &Exchange, way: &Arc<Connection>, said: &mut bool) -> u64 {
        let Ok(info) = TcpInfo::read(way.socket.raw()) else { return LOOK };
        let milliseconds = |field| info.number(field).unwrap_or(0);
        let under_way = way.socket.unacknowledged() > 0;
        if let Some(quiet) = is_quiet(&info, under_way) {
            if self.link.silent_since() == 0 {
                self.link.set_silent(now().saturating_sub((quiet * SECOND as f64) as u64).max(1));
            }
            if !self.is_trying() && now() >= self.next {
                dial(exchange, self, true, said);
                self.next = now() + SECOND;
            }
            return LOOK;
        }
        if self.link.silent_since() != 0 {
            self.link.set_silent(0);
            if let Some((probe, _)) = self.attempt.take() {
                exchange.end(&probe);
            }
        }
        if let Some(gateway) = exchange.gateway_to(&self.link).filter(|_| now() >= self.next) {
            // A way that was taken because gateways could not be reached.
            self.next = now() + RETURN;
            self.link.take_way(gateway, true);
            exchange.end(way);
            return LOOK;
        }
        let unsent = milliseconds(tcp_info::LAST_DATA_SENT) as f64 / 1e3;
        way.saw(&info);
        if way.warmth() == Warmth::Unknown {
            learn(&info, way, &exchange.congestion);
        }
        if way.warmth() == Warmth::Beats && unsent < BEATS_FOR {
            if unsent * SECOND as f64 >= 0.9 * BEAT as f64 {
                self.link.control(Kind::Beat, false, 0, b"");
            }
            return BEAT;
        }
        if under_way {
            LOOK
        } else {
            LOOK_SELDOM
        }
    }
}

impl GatewayMonitor {
    pub fn dial(&mut self, exchange: &Exchange) {
        self.next = now() + SECOND;
        if let Ok(connection) = exchange.dial_gateway(&self.gate) {
            self.attempt = Some((connection, now()));
        }
    }

    /// See how it is; in how many nanoseconds to look again.
    pub fn look(&mut self, exchange: &Exchange) -> u64 {
        let asked = self.gate.asked.load(Ordering::Relaxed);
        let late = asked != 0 && now() - asked > SECOND;
        match (self.gate.way(), &self.attempt) {
            // It is connected, and says nothing: what goes there goes nowhere.
            (Some(way), _) if late => {
                way.socket.break_off();
                LOOK
            }
            (Some(_), _) if asked != 0 => LOOK,
            (Some(_), _) => LOOK_SELDOM,
            (None, Some((attempt, begun))) if now() - begun > SECOND => {
                exchange.end(attempt);
                self.attempt = None;
                self.dial(exchange);
                LOOK
            }
            (None, None) if now() >= self.next && !self.gate.refused.load(Ordering::Relaxed) => {
                self.dial(exchange);
                LOOK
            }
            _ => LOOK,
        }
    }
}

/// Whether the peer's kernel has not answered to an attempt, or answers no more.
fn is_unanswered(attempt: &Connection) -> bool {
    const SYN_SENT: u64 = 2;
    let Ok(info) = TcpInfo::read(attempt.socket.raw()) else { return false };
    let is_being_made = info.number(tcp_info::STATE) == Some(SYN_SENT);
    is_being_made || is_quiet(&info, attempt.socket.unacknowledged() > 0).is_some()
}

/// For how many seconds the peer's kernel has said nothing, if that is too long.
fn is_quiet(info: &TcpInfo, under_way: bool) -> Option<f64> {
    let number = |field| info.number(field).unwrap_or(0);
    // It has no room, since nobody reads there: it is asked now and then, and answers at once.
    if under_way && number(tcp_info::UNACKED) == 0 && number(tcp_info::PROBES) < UNANSWERED {
        return None;
    }
    let quiet = number(tcp_info::LAST_ACK_RECV) as f64 / 1e3;
    (quiet > if under_way { SILENT_SENDING } else { SILENT_IDLE }).then_some(quiet)
}

/// Begin a connection. Unless it is to `probe`, messages go on it at once.
fn dial(exchange: &Exchange, line: &mut ConnectionMonitor, probe: bool, said: &mut bool) {
    let link = line.link.clone();
    match Socket::connect(&link.address) {
        Ok(socket) => {
            let who = Who::Dialed { link: link.clone(), probe };
            let connection = exchange.connection(socket, who);
            line.attempt = Some((connection.clone(), now()));
            if !probe {
                link.take_way(connection, line.broke);
            }
        }
        Err(error) => match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => {
                line.refused();
                line.judge();
            }
            Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => {
                line.next = now() + LOOK;
                if !std::mem::replace(said, true) {
                    exchange.say(&format!(
                        "no descriptor left for a connection to {}: close files, or raise the \
                         limit (ulimit -n). Trying again meanwhile",
                        link.address
                    ));
                }
            }
            Some(_) => {
                line.next = now() + SECOND;
                if link.silent_since() == 0 {
                    link.set_silent(now());
                }
            }
            None => link.lose(&format!("({}: {error})", link.address)),
        },
    }
}

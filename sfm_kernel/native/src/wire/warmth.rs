//! How a long connection keeps its congestion window through a silence.

use std::os::fd::RawFd;

use super::tcp_state::TcpState;
use crate::tcp_info::{self, TcpInfo};

/// Round trip in nanoseconds from which a connection is long: in a silence longer than its timeout
/// it forgets its congestion window.
const LONG_ROUND_TRIP: u64 = 4_000_000;

/// A connection's means to keep its congestion window through a silence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Warmth {
    #[default]
    Unknown,
    /// Its round trip is short: nothing is needed.
    Short,
    /// Its congestion control does not forget.
    Remembers,
    Beats,
    /// It forgets, as the user has chosen.
    Forgets,
}

impl Warmth {
    pub fn from_u8(number: u8) -> Warmth {
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

impl TcpState {
    /// Find out whether a connection is long, and how it keeps its congestion window. `chosen` (from
    /// `SFM_TCP`) names the congestion control of long connections; with `still`, as in `cubic,still`,
    /// they do not beat, which shows what that costs.
    pub fn choose_warmth(&self, socket: RawFd, info: &TcpInfo, chosen: &str) {
        let round_trip = info.number(tcp_info::MIN_RTT).unwrap_or(0) * 1000;
        if round_trip < LONG_ROUND_TRIP {
            return self.set_warmth(Warmth::Short, "");
        }
        let (mut algorithm, mut beats) = ("bbr", true);
        for word in chosen.split(',').filter(|word| !word.is_empty()) {
            if word == "still" {
                beats = false;
            } else {
                algorithm = word;
            }
        }
        match tcp_info::set_congestion(socket, algorithm) {
            Ok(()) if algorithm == "bbr" => self.set_warmth(Warmth::Remembers, ""),
            Ok(()) if beats => self.set_warmth(Warmth::Beats, ""),
            Err(_) if beats => self.set_warmth(Warmth::Beats, algorithm),
            done => self.set_warmth(Warmth::Forgets, if done.is_ok() { "" } else { algorithm }),
        }
    }
}

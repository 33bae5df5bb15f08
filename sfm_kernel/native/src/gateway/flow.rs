//! Frames that pass the gateway, and their flows.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::poll::Id;
pub use crate::frame::control::Pair;
use crate::frame::control::Reason;
use crate::frame::{Class, Header, HEADER};

/// Time for which an idle flow is remembered; much longer if it has lost something, so that its
/// sender hears when there is a route again.
const REMEMBER_FOR: Duration = Duration::from_secs(10);
const REMEMBER_LOSS_FOR: Duration = Duration::from_secs(600);
/// A flow that has been idle for this time has nothing under way: it may change its connection.
const SETTLED: Duration = Duration::from_secs(1);
/// A flow that has been idle for this time had nothing in a connection that broke.
const IN_FLIGHT: Duration = Duration::from_secs(10);
/// Time between two reports to the sender of a flow, and between two equal reports.
const NOTIFY_EVERY: Duration = Duration::from_millis(100);
const REPEAT_EVERY: Duration = Duration::from_secs(1);
/// Flows that are remembered; drops of other flows are counted, but not reported.
const MAX_FLOWS: usize = 1 << 18;

/// A frame that was read and will be written.
pub struct Frame {
    pub header: Header,
    pub bytes: Vec<u8>,
    /// The connection on which it came.
    pub from: Id,
    pub arrived_at: Instant,
}

impl Frame {
    pub fn new(header: Header, bytes: Vec<u8>, from: Id, arrived_at: Instant) -> Frame {
        debug_assert_eq!(header.frame(), bytes.len());
        Frame { header, bytes, from, arrived_at }
    }

    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    pub fn pair(&self) -> Pair {
        Pair { sender: self.header.sender, receiver: self.header.receiver }
    }

    /// Count one hop: hops are the only part of a header that the sender has not sealed.
    pub fn hop(&mut self) {
        self.header.hops -= 1;
        self.bytes[5] = self.header.hops;
        debug_assert!(self.bytes.len() > HEADER);
    }
}

/// The recent history of a flow.
pub struct Flow {
    pub last: Instant,
    /// The connection on which its frames come.
    pub from: Id,
    /// The wide-area connection on which its frames leave.
    pub to: Option<Id>,
    pub from_site: u32,
    pub to_site: u32,
    pub frames: u64,
    pub bytes: u64,
    /// Why something may have been dropped: later messages are useless until the sender resumes.
    pub broken: Option<Reason>,
    notified_at: Option<Instant>,
    owed: Option<Reason>,
}

impl Flow {
    /// The sender does not know whether there is a route again.
    pub fn has_no_route(&self) -> bool {
        self.broken.is_some_and(|reason| reason != Reason::PathBroke)
    }

    /// Some of its frames may be under way, or were lost there.
    fn is_recent(&self, now: Instant) -> bool {
        now < self.last + IN_FLIGHT || self.has_no_route()
    }

    /// Why a frame of this class is useless; None if it is not.
    pub fn useless(&mut self, class: Class) -> Option<Reason> {
        if class == Class::Resume {
            (self.broken, self.owed) = (None, None);
        }
        self.broken.filter(|_| class.is_message())
    }
}

#[derive(Default)]
pub struct Flows(HashMap<Pair, Flow>);

impl Flows {
    /// Record a frame; None if there are too many flows.
    pub fn record(&mut self, frame: &Frame) -> Option<&mut Flow> {
        let pair = frame.pair();
        if self.0.len() >= MAX_FLOWS && !self.0.contains_key(&pair) {
            return None;
        }
        let flow = self.0.entry(pair).or_insert_with(|| Flow {
            last: frame.arrived_at,
            from: frame.from,
            to: None,
            from_site: frame.header.from_site,
            to_site: frame.header.to_site,
            frames: 0,
            bytes: 0,
            broken: None,
            notified_at: None,
            owed: None,
        });
        (flow.from, flow.to_site) = (frame.from, frame.header.to_site);
        flow.frames += 1;
        flow.bytes += frame.size() as u64;
        if flow.last + SETTLED < frame.arrived_at {
            flow.to = None;
        }
        flow.last = frame.arrived_at;
        Some(flow)
    }

    pub fn get_mut(&mut self, pair: Pair) -> Option<&mut Flow> {
        self.0.get_mut(&pair)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Pair, &Flow)> {
        self.0.iter()
    }

    /// Record a drop; returns whether to notify the sender now. If not, `owed` returns the notice
    /// later.
    pub fn record_drop(&mut self, pair: Pair, reason: Reason, now: Instant) -> bool {
        let Some(flow) = self.0.get_mut(&pair) else { return false };
        let is_new = flow.broken.replace(reason) != Some(reason);
        let every = if is_new { NOTIFY_EVERY } else { REPEAT_EVERY };
        if flow.notified_at.is_some_and(|last| now < last + every) {
            if is_new {
                flow.owed = Some(reason);
            }
            return false;
        }
        (flow.notified_at, flow.owed) = (Some(now), None);
        true
    }

    /// The notices that are due now.
    pub fn owed(&mut self, now: Instant) -> Vec<(Pair, Reason)> {
        let due = |(pair, flow): (&Pair, &mut Flow)| {
            let is_due = flow.notified_at.is_none_or(|last| now >= last + NOTIFY_EVERY);
            let reason = flow.owed.take_if(|_| is_due)?;
            flow.notified_at = Some(now);
            Some((*pair, reason))
        };
        self.0.iter_mut().filter_map(due).collect()
    }

    /// Flows that may have had something in the wide-area connection `to`, and their sites. They
    /// choose a new connection.
    pub fn reroute(&mut self, to: Id, now: Instant) -> Vec<(Pair, u32)> {
        let mut rerouted = Vec::new();
        for (pair, flow) in self.0.iter_mut().filter(|(_, flow)| flow.to == Some(to)) {
            flow.to = None;
            if flow.is_recent(now) {
                rerouted.push((*pair, flow.to_site));
            }
        }
        rerouted
    }

    /// Flows that may have had something in the connection of a process.
    pub fn towards(&self, receiver: u128, now: Instant) -> Vec<Pair> {
        let recent = self.0.iter().filter(|(_, flow)| flow.is_recent(now));
        recent.map(|(pair, _)| *pair).filter(|pair| pair.receiver == receiver).collect()
    }

    /// Flows that have lost something, and that have a route again according to `has_route`.
    pub fn lost(&self, has_route: impl Fn(&Pair, &Flow) -> bool) -> Vec<Pair> {
        self.0
            .iter()
            .filter(|(pair, flow)| flow.has_no_route() && has_route(pair, flow))
            .map(|(pair, _)| *pair)
            .collect()
    }

    /// Forget the flows that have been idle for long.
    pub fn sweep(&mut self, now: Instant) {
        self.0.retain(|_, flow| {
            let remembered = if flow.has_no_route() { REMEMBER_LOSS_FOR } else { REMEMBER_FOR };
            flow.owed.is_some() || now < flow.last + remembered
        });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::frame::{HOPS, INNER, TAG};

    /// A frame whose body is `length` zeros.
    pub fn frame(sender: u128, receiver: u128, class: Class, length: usize, ahead: u32) -> Frame {
        let header = Header {
            length: (INNER + length + TAG) as u32,
            hops: HOPS,
            class,
            ahead,
            from_site: 1,
            to_site: 2,
            clear: false,
            sender,
            receiver,
            counter: 1,
        };
        let mut bytes = vec![0; header.frame()];
        header.write(&mut bytes);
        Frame::new(header, bytes, Id::NONE, Instant::now())
    }

    #[test]
    fn a_hop_changes_nothing_else() {
        let mut frame = frame(1, 2, Class::Bulk, 10, 77);
        let before = frame.header;
        frame.hop();
        let after = Header::read(&frame.bytes).unwrap();
        assert_eq!(after, Header { hops: HOPS - 1, ..before });
        assert_eq!(after, frame.header);
    }

    #[test]
    fn a_sender_is_notified_now_and_of_the_latest_reason_later() {
        let mut flows = Flows::default();
        let frame = frame(1, 2, Class::Bulk, 10, 0);
        let (pair, start) = (frame.pair(), frame.arrived_at);
        assert!(!flows.record_drop(pair, Reason::Full, start), "nobody knows it");
        flows.record(&frame).unwrap();
        assert!(flows.record_drop(pair, Reason::Full, start));
        assert!(!flows.record_drop(pair, Reason::Full, start));
        assert!(!flows.record_drop(pair, Reason::PathBroke, start));
        assert!(flows.owed(start).is_empty());
        assert_eq!(flows.owed(start + NOTIFY_EVERY), [(pair, Reason::PathBroke)]);
        assert!(flows.owed(start + 3 * NOTIFY_EVERY).is_empty());
        assert!(flows.record_drop(pair, Reason::Loop, start + 3 * NOTIFY_EVERY));
        // An equal report is repeated much later.
        assert!(!flows.record_drop(pair, Reason::Loop, start + 5 * NOTIFY_EVERY));
        assert!(flows.owed(start + 5 * NOTIFY_EVERY).is_empty());
        assert!(flows.record_drop(pair, Reason::Loop, start + 3 * NOTIFY_EVERY + REPEAT_EVERY));
    }

    #[test]
    fn after_a_loss_messages_are_useless_until_their_sender_resumes() {
        let mut flows = Flows::default();
        let frame = frame(1, 2, Class::Bulk, 10, 0);
        let (pair, start) = (frame.pair(), frame.arrived_at);
        assert_eq!(flows.record(&frame).unwrap().useless(Class::Bulk), None);
        for reason in [Reason::Full, Reason::PathBroke] {
            flows.record_drop(pair, reason, start);
            let flow = flows.get_mut(pair).unwrap();
            for class in [Class::Message, Class::Bulk] {
                assert_eq!(flow.useless(class), Some(reason));
            }
            for class in [Class::Control, Class::Status] {
                assert_eq!(flow.useless(class), None);
            }
        }
        assert_eq!(flows.get_mut(pair).unwrap().useless(Class::Resume), None);
        assert_eq!(flows.get_mut(pair).unwrap().useless(Class::Message), None);
        assert!(flows.owed(start + NOTIFY_EVERY).is_empty(), "it knows");
    }

    #[test]
    fn a_flow_with_a_loss_is_remembered_until_there_is_a_route() {
        let mut flows = Flows::default();
        for receiver in [2, 3] {
            flows.record(&frame(1, receiver, Class::Bulk, 10, 0)).unwrap();
        }
        let (lost, start) = (Pair { sender: 1, receiver: 3 }, Instant::now());
        flows.record_drop(lost, Reason::Unknown, start);
        flows.sweep(start + REMEMBER_FOR + SETTLED);
        assert_eq!(flows.iter().map(|(pair, _)| *pair).collect::<Vec<_>>(), [lost]);
        assert_eq!(flows.lost(|pair, flow| pair.receiver == 3 && flow.to_site == 2), [lost]);
        assert!(flows.lost(|_, _| false).is_empty());
        flows.record_drop(lost, Reason::PathBroke, start + SETTLED);
        assert!(flows.lost(|_, _| true).is_empty());
        flows.sweep(start + REMEMBER_FOR + SETTLED);
        assert_eq!(flows.iter().count(), 0);
    }

    #[test]
    fn a_flow_keeps_its_connection_while_something_may_be_under_way() {
        let mut flows = Flows::default();
        let mut frame = frame(1, 2, Class::Bulk, 10, 0);
        let connection = Id::new(3, 4);
        flows.record(&frame).unwrap().to = Some(connection);
        frame.arrived_at += SETTLED / 2;
        assert_eq!(flows.record(&frame).unwrap().to, Some(connection));
        frame.arrived_at += 2 * SETTLED;
        assert_eq!(flows.record(&frame).unwrap().to, None);
        flows.record(&frame).unwrap().to = Some(connection);
        assert_eq!(flows.reroute(connection, frame.arrived_at + 2 * IN_FLIGHT), []);
        flows.record(&frame).unwrap().to = Some(connection);
        assert_eq!(flows.reroute(connection, frame.arrived_at), [(frame.pair(), 2)]);
    }
}

//! The frames that wait for room on a connection.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::frame::Header;

pub struct SendQueue {
    frames: VecDeque<Arc<Vec<u8>>>,
    /// Number of frames at the front that nothing may pass: the connection's first frame, and those
    /// put ahead.
    ahead: usize,
    /// Bytes of the first frame that have gone.
    sent: usize,
}

impl Default for SendQueue {
    fn default() -> SendQueue {
        SendQueue { frames: VecDeque::new(), ahead: 1, sent: 0 }
    }
}

impl SendQueue {
    /// Add a frame behind all others.
    pub fn put(&mut self, frame: Arc<Vec<u8>>) {
        self.frames.push_back(frame);
    }

    /// Add a frame before all others, but behind the connection's first one, earlier ones put ahead,
    /// and one that has gone in part.
    pub fn put_ahead(&mut self, frame: Arc<Vec<u8>>) {
        let at = self.ahead.max(self.started()).min(self.frames.len());
        self.frames.insert(at, frame);
        self.ahead = at + 1;
    }

    /// Remove the messages to this peer, except one that has gone in part.
    pub fn withdraw(&mut self, receiver: u128) {
        let mut waiting = self.frames.split_off(self.started());
        waiting.retain(|frame| {
            let header = Header::read(frame).expect("frames have headers");
            header.receiver != receiver || !header.class.is_message()
        });
        self.frames.append(&mut waiting);
    }

    fn started(&self) -> usize {
        usize::from(self.has_begun())
    }

    /// Whether the first frame has gone in part.
    pub fn has_begun(&self) -> bool {
        self.sent > 0
    }

    /// What must go next, in order.
    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let skip = |nth| if nth == 0 { self.sent } else { 0 };
        self.frames.iter().enumerate().map(move |(nth, frame)| &frame[skip(nth)..])
    }

    /// Take the first frame out, whole.
    pub fn pop(&mut self) -> Option<Arc<Vec<u8>>> {
        debug_assert!(!self.has_begun());
        let frame = self.frames.pop_front()?;
        self.ahead = self.ahead.saturating_sub(1);
        Some(frame)
    }

    /// So many bytes have gone.
    pub fn remove(&mut self, bytes: usize) {
        let mut sent = self.sent + bytes;
        while let Some(frame) = self.frames.front().filter(|frame| frame.len() <= sent) {
            sent -= frame.len();
            self.frames.pop_front();
            self.ahead = self.ahead.saturating_sub(1);
        }
        self.sent = sent;
    }

    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Forget all frames: nothing more goes.
    pub fn clear(&mut self) {
        self.frames.clear();
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{tests::header, Class};

    fn frame(receiver: u128, class: Class, length: usize) -> Arc<Vec<u8>> {
        let header = Header { receiver, class, length: length as u32, ..header() };
        let mut bytes = vec![0; header.frame()];
        header.write(&mut bytes);
        Arc::new(bytes)
    }

    /// Receivers and lengths of the frames that wait.
    fn waiting(queue: &SendQueue) -> Vec<(u128, u32)> {
        let read = |frame: &Arc<Vec<u8>>| {
            Header::read(frame).map(|header| (header.receiver, header.length))
        };
        queue.frames.iter().filter_map(read).collect()
    }

    #[test]
    fn frames_put_ahead_pass_all_but_the_first_and_one_that_has_begun() {
        let mut queue = SendQueue::default();
        queue.put_ahead(frame(1, Class::Control, 50));
        queue.put(frame(10, Class::Bulk, 50));
        queue.put_ahead(frame(2, Class::Status, 50));
        queue.put_ahead(frame(3, Class::Status, 50));
        let receivers =
            |queue: &SendQueue| waiting(queue).iter().map(|its| its.0).collect::<Vec<_>>();
        assert_eq!(receivers(&queue), [1, 2, 3, 10]);
        let length = frame(1, Class::Control, 50).len();
        queue.put(frame(11, Class::Bulk, 50));
        queue.remove(3 * length + 1);
        assert!(queue.has_begun());
        queue.put_ahead(frame(4, Class::Status, 50));
        queue.put_ahead(frame(5, Class::Status, 50));
        assert_eq!(receivers(&queue), [10, 4, 5, 11]);
        assert_eq!(queue.pieces().map(<[u8]>::len).collect::<Vec<_>>()[..2], [length - 1, length]);
    }

    #[test]
    fn withdraw_removes_one_peers_messages_that_have_not_begun() {
        let mut queue = SendQueue::default();
        queue.put(frame(7, Class::Bulk, 500));
        queue.remove(1);
        queue.put(frame(7, Class::Message, 50));
        queue.put(frame(8, Class::Message, 60));
        queue.put(frame(7, Class::Control, 70));
        queue.put(frame(7, Class::Bulk, 500));
        queue.withdraw(7);
        queue.put_ahead(frame(7, Class::Resume, 80));
        assert_eq!(waiting(&queue), [(7, 500), (7, 80), (8, 60), (7, 70)]);
    }
}

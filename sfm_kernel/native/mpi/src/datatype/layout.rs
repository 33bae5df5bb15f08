//! The layout of a datatype's data, as a tree that stays as small as its description: a vector of a
//! million blocks is one node.
//!
//! The data of a node has an order (the packed order), so a range of packed bytes identifies any
//! excerpt of it. Visiting an excerpt skips the data outside the range without touching it.

use std::ops::Range;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// `bytes` contiguous bytes from `at` on; at least one unless the entire layout is empty.
    Run { at: isize, bytes: usize },
    /// `count` copies of `body` at `at`, `at + stride`, …
    Repeat { at: isize, count: usize, stride: isize, body: Arc<Layout>, body_bytes: usize },
    /// Several layouts in packed order; `ends` has the packed bytes up to the end of each.
    Sequence { at: isize, children: Arc<[Layout]>, ends: Arc<[usize]> },
}

/// Receives the runs of a layout, in packed order.
pub trait Visitor {
    fn run(&mut self, at: isize, bytes: usize);

    /// `count` runs of the same length at equal distances.
    fn runs(&mut self, at: isize, bytes: usize, stride: isize, count: usize) {
        for nth in 0..count as isize {
            self.run(at + nth * stride, bytes);
        }
    }
}

impl Layout {
    pub fn run(at: isize, bytes: usize) -> Layout {
        Layout::Run { at, bytes }
    }

    pub fn nothing() -> Layout {
        Layout::run(0, 0)
    }

    pub fn bytes(&self) -> usize {
        match self {
            Layout::Run { bytes, .. } => *bytes,
            Layout::Repeat { count, body_bytes, .. } => count * body_bytes,
            Layout::Sequence { ends, .. } => ends.last().copied().unwrap_or(0),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    pub fn shifted(self, by: isize) -> Layout {
        match self {
            Layout::Run { at, bytes } => Layout::Run { at: at + by, bytes },
            Layout::Repeat { at, count, stride, body, body_bytes } => {
                Layout::Repeat { at: at + by, count, stride, body, body_bytes }
            }
            Layout::Sequence { at, children, ends } => {
                Layout::Sequence { at: at + by, children, ends }
            }
        }
    }

    /// `count` copies of `body` from `at` on, `stride` bytes apart; adjacent runs are merged.
    pub fn repeated(body: &Arc<Layout>, at: isize, count: usize, stride: isize) -> Layout {
        let body_bytes = body.bytes();
        if count == 0 || body_bytes == 0 {
            return Layout::nothing();
        }
        if count == 1 {
            return Layout::clone(body).shifted(at);
        }
        match **body {
            Layout::Run { at: inner, bytes } if stride == bytes as isize => {
                Layout::run(at + inner, bytes * count)
            }
            Layout::Repeat { at: inner, count: each, stride: step, ref body, .. }
                if step.checked_mul(each as isize) == Some(stride) =>
            {
                Layout::repeated(body, at + inner, count * each, step)
            }
            _ => Layout::Repeat { at, count, stride, body: body.clone(), body_bytes },
        }
    }

    /// Concatenate layouts; adjacent runs are merged, and so are equal runs at equal distances.
    pub fn joined(all: impl IntoIterator<Item = Layout>) -> Layout {
        let mut children: Vec<Layout> = Vec::new();
        for next in all.into_iter().filter(|child| !child.is_empty()) {
            match children.last_mut() {
                Some(last) => {
                    if let Some(next) = last.absorb(next) {
                        children.push(next);
                    }
                }
                None => children.push(next),
            }
        }
        match children.len() {
            0 => Layout::nothing(),
            1 => children.remove(0),
            _ => {
                let mut end = 0;
                let mut ends = Vec::with_capacity(children.len());
                for child in &children {
                    end += child.bytes();
                    ends.push(end);
                }
                Layout::Sequence { at: 0, children: children.into(), ends: ends.into() }
            }
        }
    }

    /// Extend this layout by `next` if that continues it; otherwise return `next`.
    fn absorb(&mut self, next: Layout) -> Option<Layout> {
        let Layout::Run { at: to, bytes: more } = next else { return Some(next) };
        match self {
            Layout::Run { at, bytes } if *at + *bytes as isize == to => *bytes += more,
            Layout::Run { at, bytes } if *bytes == more && *at < to => {
                let body = Arc::new(Layout::run(0, more));
                let stride = to - *at;
                *self = Layout::Repeat { at: *at, count: 2, stride, body, body_bytes: more };
            }
            Layout::Repeat { at, count, stride, body, .. }
                if **body == (Layout::Run { at: 0, bytes: more })
                    && *at + *stride * *count as isize == to =>
            {
                *count += 1;
            }
            _ => return Some(next),
        }
        None
    }

    /// Offset and length if this is a single run.
    pub fn as_run(&self) -> Option<(isize, usize)> {
        match *self {
            Layout::Run { at, bytes } => Some((at, bytes)),
            _ => None,
        }
    }

    /// Visit this range of packed bytes, with `base` added to each displacement.
    pub fn visit(&self, base: isize, range: Range<usize>, visitor: &mut impl Visitor) {
        if range.is_empty() {
            return;
        }
        match self {
            Layout::Run { at, bytes } => {
                let end = range.end.min(*bytes);
                if range.start < end {
                    visitor.run(base + at + range.start as isize, end - range.start);
                }
            }
            Layout::Repeat { at, count, stride, body, body_bytes } => {
                let end = range.end.min(count * body_bytes);
                let (mut nth, mut from) = (range.start / body_bytes, range.start % body_bytes);
                while nth * body_bytes < end {
                    let origin = base + at + *stride * nth as isize;
                    // From here on complete runs, for which one call is enough.
                    if let (Layout::Run { at: inner, bytes }, 0) = (&**body, from) {
                        let complete = end / body_bytes - nth;
                        visitor.runs(origin + inner, *bytes, *stride, complete);
                        nth += complete;
                        let rest = base + at + *stride * nth as isize + inner;
                        if end % body_bytes > 0 {
                            visitor.run(rest, end % body_bytes);
                        }
                        return;
                    }
                    let to = (end - nth * body_bytes).min(*body_bytes);
                    body.visit(origin, from..to, visitor);
                    (nth, from) = (nth + 1, 0);
                }
            }
            Layout::Sequence { at, children, ends } => {
                let first = ends.partition_point(|end| *end <= range.start);
                for (child, end) in children.iter().zip(&ends[..]).skip(first) {
                    let start = end - child.bytes();
                    if start >= range.end {
                        return;
                    }
                    let inside = range.start.saturating_sub(start)..range.end - start;
                    child.visit(base + at, inside, visitor);
                }
            }
        }
    }

    /// The lowest byte and the one after the highest; None if the layout is empty.
    pub fn bounds(&self) -> Option<(isize, isize)> {
        if self.is_empty() {
            return None;
        }
        Some(match self {
            Layout::Run { at, bytes } => (*at, at + *bytes as isize),
            Layout::Repeat { at, count, stride, body, .. } => {
                let (low, high) = body.bounds()?;
                let last = stride * (*count as isize - 1);
                (at + low + last.min(0), at + high + last.max(0))
            }
            Layout::Sequence { at, children, .. } => {
                let all = children.iter().filter_map(Layout::bounds);
                let (low, high) = all.reduce(|(a, b), (low, high)| (a.min(low), b.max(high)))?;
                (at + low, at + high)
            }
        })
    }
}

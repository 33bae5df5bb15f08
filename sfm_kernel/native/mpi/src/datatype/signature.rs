//! The sequence of basic elements of a datatype, which MPI_Get_elements counts.

use std::sync::Arc;

use super::external::External;

#[derive(Debug)]
pub enum Signature {
    /// One element of this many bytes.
    Basic(usize, External),
    Repeat(usize, Arc<Signature>),
    Sequence(Vec<Arc<Signature>>),
}

impl Signature {
    pub fn bytes(&self) -> usize {
        match self {
            Signature::Basic(bytes, _) => *bytes,
            Signature::Repeat(count, body) => count * body.bytes(),
            Signature::Sequence(all) => all.iter().map(|child| child.bytes()).sum(),
        }
    }

    /// The number of elements of one item.
    pub fn elements(&self) -> usize {
        match self {
            Signature::Basic(..) => 1,
            Signature::Repeat(count, body) => count * body.elements(),
            Signature::Sequence(all) => all.iter().map(|child| child.elements()).sum(),
        }
    }

    /// The number of complete elements in the first `bytes`, and the bytes that remain.
    pub fn within(&self, bytes: usize) -> (usize, usize) {
        match self {
            Signature::Basic(size, _) if bytes < *size => (0, bytes),
            Signature::Basic(size, _) => (1, bytes - size),
            Signature::Repeat(count, body) => {
                let complete = bytes.checked_div(body.bytes()).unwrap_or(0).min(*count);
                let rest = bytes - complete * body.bytes();
                if complete == *count {
                    return (complete * body.elements(), rest);
                }
                let (more, rest) = body.within(rest);
                (complete * body.elements() + more, rest)
            }
            Signature::Sequence(all) => {
                let (mut elements, mut rest) = (0, bytes);
                for child in all {
                    if rest < child.bytes() {
                        let (more, remaining) = child.within(rest);
                        return (elements + more, remaining);
                    }
                    elements += child.elements();
                    rest -= child.bytes();
                }
                (elements, rest)
            }
        }
    }

    /// The bytes of the first `elements` elements of many items.
    pub fn bytes_of(&self, elements: usize) -> usize {
        match self {
            Signature::Basic(size, _) => size * elements,
            Signature::Repeat(_, body) => {
                let each = body.elements().max(1);
                elements / each * body.bytes() + body.bytes_of_incomplete(elements % each)
            }
            Signature::Sequence(_) => {
                let each = self.elements().max(1);
                elements / each * self.bytes() + self.bytes_of_incomplete(elements % each)
            }
        }
    }

    /// The bytes of the first `elements` elements, which are fewer than one item has.
    fn bytes_of_incomplete(&self, elements: usize) -> usize {
        let Signature::Sequence(all) = self else { return self.bytes_of(elements) };
        let (mut bytes, mut rest) = (0, elements);
        for child in all {
            if rest < child.elements() {
                return bytes + child.bytes_of_incomplete(rest);
            }
            bytes += child.bytes();
            rest -= child.elements();
        }
        bytes
    }
}

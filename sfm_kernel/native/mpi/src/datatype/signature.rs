//! Which basic elements a datatype has, in order: what MPI_Get_elements counts.

use std::sync::Arc;

use super::external::External;

#[derive(Debug)]
pub enum Signature {
    /// One element of so many bytes.
    Basic(usize, External),
    Repeat(usize, Arc<Signature>),
    Sequence(Vec<Arc<Signature>>),
}

impl Signature {
    pub fn bytes(&self) -> usize {
        match self {
            Signature::Basic(bytes, _) => *bytes,
            Signature::Repeat(count, body) => count * body.bytes(),
            Signature::Sequence(all) => all.iter().map(|one| one.bytes()).sum(),
        }
    }

    /// How many elements one item has.
    pub fn elements(&self) -> usize {
        match self {
            Signature::Basic(..) => 1,
            Signature::Repeat(count, body) => count * body.elements(),
            Signature::Sequence(all) => all.iter().map(|one| one.elements()).sum(),
        }
    }

    /// How many elements the first `bytes` are, and how many bytes of the next one are left over.
    pub fn within(&self, bytes: usize) -> (usize, usize) {
        match self {
            Signature::Basic(size, _) if bytes < *size => (0, bytes),
            Signature::Basic(size, _) => (1, bytes - size),
            Signature::Repeat(count, body) => {
                let whole = bytes.checked_div(body.bytes()).unwrap_or(0).min(*count);
                let rest = bytes - whole * body.bytes();
                if whole == *count {
                    return (whole * body.elements(), rest);
                }
                let (more, rest) = body.within(rest);
                (whole * body.elements() + more, rest)
            }
            Signature::Sequence(all) => {
                let (mut elements, mut rest) = (0, bytes);
                for one in all {
                    if rest < one.bytes() {
                        let (more, left) = one.within(rest);
                        return (elements + more, left);
                    }
                    elements += one.elements();
                    rest -= one.bytes();
                }
                (elements, rest)
            }
        }
    }

    /// How many bytes the first `elements` elements of many items are.
    pub fn bytes_of(&self, elements: usize) -> usize {
        match self {
            Signature::Basic(size, _) => size * elements,
            Signature::Repeat(_, body) => {
                let each = body.elements().max(1);
                elements / each * body.bytes() + body.partly(elements % each)
            }
            Signature::Sequence(_) => {
                let each = self.elements().max(1);
                elements / each * self.bytes() + self.partly(elements % each)
            }
        }
    }

    /// The same for fewer than all of one item.
    fn partly(&self, elements: usize) -> usize {
        let Signature::Sequence(all) = self else { return self.bytes_of(elements) };
        let (mut bytes, mut rest) = (0, elements);
        for one in all {
            if rest < one.elements() {
                return bytes + one.partly(rest);
            }
            bytes += one.bytes();
            rest -= one.elements();
        }
        bytes
    }
}

//! The memory that a process has attached to a dynamic window.

use std::collections::BTreeMap;

use crate::errors::{fail, Answer};
use crate::handles::*;

/// Bytes by their first address.
#[derive(Default)]
pub struct Attached(BTreeMap<usize, usize>);

impl Attached {
    pub fn add(&mut self, base: usize, size: usize) -> Answer {
        let end = base.saturating_add(size);
        if let Some((first, bytes)) = self.0.range(..end.max(base + 1)).next_back() {
            if first + bytes > base || *first == base {
                let text = format!(
                    "the {size} bytes at {base:#x} overlap {bytes} bytes at {first:#x} that are \
                     attached already; detach those first"
                );
                return Err(fail(MPI_ERR_RMA_ATTACH, text));
            }
        }
        self.0.insert(base, size);
        Ok(())
    }

    pub fn remove(&mut self, base: usize) -> Answer {
        self.0.remove(&base).map(|_| ()).ok_or_else(|| {
            let text = format!("no memory that begins at {base:#x} is attached");
            fail(MPI_ERR_RMA_ATTACH, text)
        })
    }

    /// True if all of these bytes are in one attached block.
    pub fn has(&self, at: usize, bytes: usize) -> bool {
        let found = self.0.range(..=at).next_back();
        found.is_some_and(|(first, size)| at + bytes <= first + size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attached_memory_does_not_overlap() {
        let mut attached = Attached::default();
        attached.add(100, 50).unwrap();
        attached.add(150, 10).unwrap();
        attached.add(90, 10).unwrap();
        for (base, size) in [(100, 50), (120, 1), (80, 11), (80, 1000), (159, 5)] {
            assert_eq!(attached.add(base, size).unwrap_err().code, MPI_ERR_RMA_ATTACH);
        }
        assert!(attached.has(100, 50) && attached.has(149, 1) && !attached.has(149, 2));
        assert!(!attached.has(89, 1) && !attached.has(160, 1));
        attached.remove(100).unwrap();
        assert_eq!(attached.remove(100).unwrap_err().code, MPI_ERR_RMA_ATTACH);
        assert!(!attached.has(100, 1) && attached.has(150, 10));
    }
}

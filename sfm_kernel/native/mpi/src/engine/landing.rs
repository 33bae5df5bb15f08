//! The memory into which the bytes of a large message come, in any order.

use sfm_native::core::Payload;

use super::Receiving;
use crate::data::Data;

pub struct Landing {
    /// Contiguous: the receive's memory, or `packed`.
    pub to: Data,
    packed: Vec<u8>,
}

impl Landing {
    /// For the first `length` bytes, as far as the receive has room.
    pub fn of(receiving: &Receiving, length: usize) -> Landing {
        let length = length.min(receiving.data().len());
        let mut packed = Vec::new();
        let start = receiving.data().contiguous().unwrap_or_else(|| {
            packed.reserve_exact(length);
            packed.as_mut_ptr()
        });
        Landing { to: Data::bytes(start, length), packed }
    }

    pub fn start(&self) -> *mut u8 {
        self.to.contiguous().expect("it is")
    }

    /// All bytes have come: move them to where the receive wants them.
    pub fn finish(&mut self, receiving: &Receiving) {
        if receiving.data().contiguous().is_none() {
            // SAFETY: all bytes were written, unless the receive's memory is released; that memory.
            receiving.write(|| unsafe {
                self.packed.set_len(self.to.len());
                receiving.data().fill(Payload(&self.packed, &[]));
            });
        }
    }
}

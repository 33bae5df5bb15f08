//! Objects by handle. A handle has the kind's bits, an age, and an index; the age distinguishes a
//! freed handle from the current one with the same index.

use std::sync::{Arc, RwLock};

use crate::handles::{handle, number, Handle};

const INDEX_BITS: u32 = 18; // 262,144 objects of a kind at a time
const AGE_BITS: u32 = 4;

pub struct Table<T> {
    kind: u32,
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    all: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    age: u32,
    references: u32,
    object: Option<Arc<T>>,
}

impl<T> Table<T> {
    /// `kind` has the bits that all handles of this table have in common.
    pub const fn new(kind: u32) -> Table<T> {
        Table { kind, slots: RwLock::new(Slots { all: Vec::new(), free: Vec::new() }) }
    }

    /// A new handle, with one reference. Panics if there are more than any sensible program uses.
    pub fn insert(&self, object: Arc<T>) -> Handle {
        let mut slots = self.slots.write().expect("no panic under the lock");
        let index = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(Slot { age: 0, references: 0, object: None });
            slots.all.len() - 1
        });
        assert!(
            index < 1 << INDEX_BITS,
            "more than {} handles of a kind are in use",
            1 << INDEX_BITS
        );
        let slot = &mut slots.all[index];
        slot.age = slot.age % ((1 << AGE_BITS) - 1) + 1; // never 0, which MPICH's own objects have
        slot.references = 1;
        slot.object = Some(object);
        handle(self.kind | slot.age << INDEX_BITS | index as u32)
    }

    pub fn get(&self, handle: Handle) -> Option<Arc<T>> {
        let slots = self.slots.read().expect("no panic under the lock");
        let (index, age) = self.index_and_age(handle)?;
        slots.all.get(index).filter(|slot| slot.age == age)?.object.clone()
    }

    /// All objects in use.
    pub fn all(&self) -> Vec<Arc<T>> {
        let slots = self.slots.read().expect("no panic under the lock");
        slots.all.iter().filter_map(|slot| slot.object.clone()).collect()
    }

    /// Add a reference to this handle. False if it is not in use.
    pub fn retain(&self, handle: Handle) -> bool {
        let mut slots = self.slots.write().expect("no panic under the lock");
        self.slot(&mut slots, handle).map(|slot| slot.references += 1).is_some()
    }

    /// Remove a reference; the last one frees the handle. None if it is not in use.
    pub fn release(&self, handle: Handle) -> Option<Arc<T>> {
        let mut slots = self.slots.write().expect("no panic under the lock");
        let slot = self.slot(&mut slots, handle)?;
        slot.references -= 1;
        if slot.references > 0 {
            return slot.object.clone();
        }
        let object = slot.object.take();
        let index = self.index_and_age(handle)?.0;
        slots.free.push(index);
        object
    }

    fn slot<'a>(&self, slots: &'a mut Slots<T>, handle: Handle) -> Option<&'a mut Slot<T>> {
        let (index, age) = self.index_and_age(handle)?;
        slots.all.get_mut(index).filter(|slot| slot.age == age && slot.object.is_some())
    }

    fn index_and_age(&self, handle: Handle) -> Option<(usize, u32)> {
        let rest = number(handle)? ^ self.kind;
        let age = rest >> INDEX_BITS;
        (1..1 << AGE_BITS)
            .contains(&age)
            .then_some(((rest & ((1 << INDEX_BITS) - 1)) as usize, age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_handle_is_not_the_next_one() {
        let table = Table::new(0x8800_0000);
        let first = table.insert(Arc::new("a"));
        assert_eq!(table.release(first).as_deref(), Some(&"a"));
        let second = table.insert(Arc::new("b"));
        assert_ne!(first, second);
        assert!(table.get(first).is_none());
        assert!(table.release(first).is_none());
        assert_eq!(table.get(second).as_deref(), Some(&"b"));
        assert!(table.get(second ^ 0x0400_0000).is_none(), "another kind's");
    }

    #[test]
    fn a_handle_lives_as_long_as_its_references() {
        let table = Table::new(0x9400_0000);
        let handle = table.insert(Arc::new(1));
        assert!(table.retain(handle));
        table.release(handle);
        assert!(table.get(handle).is_some() && table.all() == [Arc::new(1)]);
        table.release(handle);
        assert!(table.get(handle).is_none() && !table.retain(handle) && table.all().is_empty());
    }
}

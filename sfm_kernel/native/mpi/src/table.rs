//! Objects by handle. A handle has the kind's bits, an age, and a place; the age tells a handle
//! that was freed from the one that has its place now.

use std::sync::{Arc, RwLock};

use crate::handles::{handle, number, Handle};

const PLACES: u32 = 18; // bits: 262,144 objects of a kind at a time
const AGES: u32 = 4;

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
    /// `kind` has the bits that every handle of this table has.
    pub const fn new(kind: u32) -> Table<T> {
        Table { kind, slots: RwLock::new(Slots { all: Vec::new(), free: Vec::new() }) }
    }

    /// A new handle, with one reference. Panics when there are more than any program can mean.
    pub fn insert(&self, object: Arc<T>) -> Handle {
        let mut slots = self.slots.write().expect("no panic under the lock");
        let place = slots.free.pop().unwrap_or_else(|| {
            slots.all.push(Slot { age: 0, references: 0, object: None });
            slots.all.len() - 1
        });
        assert!(place < 1 << PLACES, "more than {} handles of a kind are in use", 1 << PLACES);
        let slot = &mut slots.all[place];
        slot.age = slot.age % ((1 << AGES) - 1) + 1; // never 0: MPICH's own objects have that
        slot.references = 1;
        slot.object = Some(object);
        handle(self.kind | slot.age << PLACES | place as u32)
    }

    pub fn get(&self, handle: Handle) -> Option<Arc<T>> {
        let slots = self.slots.read().expect("no panic under the lock");
        let (place, age) = self.place(handle)?;
        slots.all.get(place).filter(|slot| slot.age == age)?.object.clone()
    }

    /// All that are in use.
    pub fn all(&self) -> Vec<Arc<T>> {
        let slots = self.slots.read().expect("no panic under the lock");
        slots.all.iter().filter_map(|slot| slot.object.clone()).collect()
    }

    /// One more reference to this handle. False if it is not in use.
    pub fn retain(&self, handle: Handle) -> bool {
        let mut slots = self.slots.write().expect("no panic under the lock");
        self.slot(&mut slots, handle).map(|slot| slot.references += 1).is_some()
    }

    /// One reference less; the handle is free when none is left. None if it is not in use.
    pub fn release(&self, handle: Handle) -> Option<Arc<T>> {
        let mut slots = self.slots.write().expect("no panic under the lock");
        let slot = self.slot(&mut slots, handle)?;
        slot.references -= 1;
        if slot.references > 0 {
            return slot.object.clone();
        }
        let object = slot.object.take();
        let place = self.place(handle)?.0;
        slots.free.push(place);
        object
    }

    fn slot<'a>(&self, slots: &'a mut Slots<T>, handle: Handle) -> Option<&'a mut Slot<T>> {
        let (place, age) = self.place(handle)?;
        slots.all.get_mut(place).filter(|slot| slot.age == age && slot.object.is_some())
    }

    fn place(&self, handle: Handle) -> Option<(usize, u32)> {
        let rest = number(handle)? ^ self.kind;
        let age = rest >> PLACES;
        (1..1 << AGES).contains(&age).then_some(((rest & ((1 << PLACES) - 1)) as usize, age))
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

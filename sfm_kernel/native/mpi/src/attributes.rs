//! Attributes: values that the program attaches to a communicator, datatype or window under its
//! keys, with functions that copy and delete them.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use sfm_endpoint::callers::kept;
use sfm_native::sync::lock;

use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::table::Table;

/// The kind of object that a key is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    Comm,
    Type,
    Win,
}

struct Key {
    owner: Owner,
    copy: MPI_Copy_function,
    delete: MPI_Delete_function,
    /// The program's extra state, passed to both functions; an address, so that it may cross
    /// threads.
    extra: usize,
    /// True once the program has freed it; further calls change nothing.
    freed: AtomicBool,
}

/// MPI_COMM_DUP_FN and the like in the standard's ABI; in MPICH's they are a function of this
/// library.
const DUP_FN: usize = 1;

static KEYS: Table<Key> = Table::new(0xa440_0000);

/// The values of one object, oldest first. A value is an address that only the program interprets.
#[derive(Default)]
pub struct Attributes(Mutex<Vec<Value>>);

#[derive(Clone)]
struct Value {
    hold: Arc<Hold>,
    key: Arc<Key>,
    value: usize,
}

/// Keeps a key's handle valid as long as a value is set under it, even after the program has freed
/// the key: that value can still be read and deleted.
struct Hold(c_int);

impl Hold {
    fn of(keyval: c_int) -> Arc<Hold> {
        KEYS.retain(of(keyval));
        Arc::new(Hold(keyval))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        KEYS.release(of(self.0));
    }
}

pub fn create_key(
    owner: Owner,
    copy: MPI_Copy_function,
    delete: MPI_Delete_function,
    extra: *mut c_void,
) -> c_int {
    let freed = AtomicBool::new(false);
    KEYS.insert(Arc::new(Key { owner, copy, delete, extra: extra as usize, freed })) as c_int
}

/// The table's handle of a key, which is an int in every ABI.
fn of(keyval: c_int) -> Handle {
    handle(keyval as u32)
}

/// Free the key; it is removed when no value is set under it any more.
pub fn free_key(keyval: c_int, owner: Owner) -> Answer {
    if !key(keyval, owner)?.freed.swap(true, Relaxed) {
        KEYS.release(of(keyval));
    }
    Ok(())
}

fn key(keyval: c_int, owner: Owner) -> Answer<Arc<Key>> {
    match KEYS.get(of(keyval)) {
        Some(key) if key.owner == owner => Ok(key),
        Some(key) => {
            let text = format!("the key was made for a {:?}, not for a {owner:?}", key.owner);
            Err(wrong_key(&text))
        }
        None if keyval == MPI_KEYVAL_INVALID => Err(wrong_key("the key is MPI_KEYVAL_INVALID")),
        None => Err(wrong_key(&format!("{keyval:#010x} is not a key, or was freed"))),
    }
}

fn wrong_key(text: &str) -> Failure {
    fail(MPI_ERR_KEYVAL, format!("{text}; MPI_Comm_create_keyval and the like make one"))
}

impl Attributes {
    /// An error if there is no such key.
    pub fn get(&self, keyval: c_int, owner: Owner) -> Answer<Option<*mut c_void>> {
        key(keyval, owner)?;
        Ok(self.find(keyval).map(|value| value.value as *mut c_void))
    }

    fn find(&self, keyval: c_int) -> Option<Value> {
        lock(&self.0).iter().find(|value| value.keyval() == keyval).cloned()
    }

    /// Set a value; an existing one is deleted first.
    ///
    /// # Safety
    /// `object` is the handle that these attributes belong to; the program's functions may be
    /// called with it.
    pub unsafe fn set(
        &self,
        object: Handle,
        keyval: c_int,
        owner: Owner,
        to: *mut c_void,
    ) -> Answer {
        let key = key(keyval, owner)?;
        if self.find(keyval).is_some() {
            self.delete(object, keyval, owner)?;
        }
        let value = Value { hold: Hold::of(keyval), key, value: to as usize };
        lock(&self.0).push(value);
        Ok(())
    }

    /// # Safety
    /// As for `set`.
    pub unsafe fn delete(&self, object: Handle, keyval: c_int, owner: Owner) -> Answer {
        key(keyval, owner)?;
        let no_value = || wrong_key("no attribute is set under this key");
        self.find(keyval).ok_or_else(no_value)?.delete(object)?;
        lock(&self.0).retain(|value| value.keyval() != keyval);
        Ok(())
    }

    /// Delete all values, the youngest first, before the object is freed.
    ///
    /// # Safety
    /// As for `set`.
    pub unsafe fn clear(&self, object: Handle) -> Answer {
        loop {
            let last = lock(&self.0).last().cloned();
            let Some(last) = last else { return Ok(()) };
            last.delete(object)?;
            lock(&self.0).retain(|value| value.keyval() != last.keyval());
        }
    }

    /// The attributes of a duplicate of `object`: each value's copy function decides.
    ///
    /// # Safety
    /// As for `set`.
    pub unsafe fn copy(&self, object: Handle) -> Answer<Attributes> {
        let all = lock(&self.0).clone();
        let mut copies = Vec::new();
        for value in all {
            if let Some(copy) = value.copy(object)? {
                copies.push(Value { value: copy, ..value });
            }
        }
        Ok(Attributes(Mutex::new(copies)))
    }
}

impl Value {
    fn keyval(&self) -> c_int {
        self.hold.0
    }

    unsafe fn delete(&self, object: Handle) -> Answer {
        let Some(function) = self.key.delete else { return Ok(()) };
        let extra = self.key.extra as *mut c_void;
        check("delete", kept(|| function(object, self.keyval(), self.value as *mut c_void, extra)))
    }

    unsafe fn copy(&self, object: Handle) -> Answer<Option<usize>> {
        let Some(function) = self.key.copy else { return Ok(None) };
        if function as usize == DUP_FN {
            return Ok(Some(self.value));
        }
        let (extra, value) = (self.key.extra as *mut c_void, self.value as *mut c_void);
        let (mut copy, mut flag) = (0_usize, 0);
        let to = (&raw mut copy).cast();
        check("copy", kept(|| function(object, self.keyval(), extra, value, to, &mut flag)))?;
        Ok((flag != 0).then_some(copy))
    }
}

fn check(which: &str, code: c_int) -> Answer {
    if code == MPI_SUCCESS {
        return Ok(());
    }
    let text = format!("the program's {which} function of an attribute returned {code}");
    Err(fail(if crate::classes::class(code).is_ok() { code } else { MPI_ERR_OTHER }, text))
}

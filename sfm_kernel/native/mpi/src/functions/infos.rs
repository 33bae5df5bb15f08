//! Info objects.

use crate::checks::{self, put, put_found, put_new, put_text, text};
use crate::errors::{fail, Answer, Failure};
use crate::handles::*;
use crate::info::{self, Info};

unsafe fn key(at: *const c_char) -> Answer<String> {
    let key = text("key", at)?;
    if key.is_empty() || key.len() > MPI_MAX_INFO_KEY as usize {
        let text =
            format!("argument key has {} characters; it has 1 to {MPI_MAX_INFO_KEY}", key.len());
        return Err(fail(MPI_ERR_INFO_KEY, text));
    }
    Ok(key)
}

fn no_key(key: &str) -> Failure {
    fail(MPI_ERR_INFO_NOKEY, format!("the info object has no key {key:?}"))
}

pub unsafe fn info_create(info: *mut MPI_Info) -> Answer {
    put_new("info", info, || info::open(Info::default()))
}

pub unsafe fn info_create_env(
    _argc: c_int,
    _argv: *mut *mut c_char,
    info: *mut MPI_Info,
) -> Answer {
    info_dup(MPI_INFO_ENV, info)
}

pub unsafe fn info_dup(info: MPI_Info, newinfo: *mut MPI_Info) -> Answer {
    put("newinfo", newinfo, info::open(info::with(info, |info| info.clone())?))
}

pub unsafe fn info_free(info: *mut MPI_Info) -> Answer {
    info::free(*info)?;
    *info = MPI_INFO_NULL;
    Ok(())
}

pub unsafe fn info_set(info: MPI_Info, key: *const c_char, value: *const c_char) -> Answer {
    let (key, value) = (self::key(key)?, text("value", value)?);
    if value.is_empty() || value.len() > MPI_MAX_INFO_VAL as usize {
        let text = format!(
            "argument value has {} characters; it has 1 to {MPI_MAX_INFO_VAL}",
            value.len()
        );
        return Err(fail(MPI_ERR_INFO_VALUE, text));
    }
    info::with(info, |info| info.set(key, value))
}

pub unsafe fn info_delete(info: MPI_Info, key: *const c_char) -> Answer {
    let key = self::key(key)?;
    match info::with(info, |info| info.delete(&key))? {
        true => Ok(()),
        false => Err(no_key(&key)),
    }
}

/// `valuelen` does not count the final zero: one more character is written.
pub unsafe fn info_get(
    info: MPI_Info,
    key: *const c_char,
    valuelen: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Answer {
    let key = self::key(key)?;
    let room = checks::count("valuelen", valuelen)? as c_int;
    let found = info::with(info, |info| info.get(&key).map(str::to_owned))?;
    put_found(flag, found, |found| {
        put_text("value", value, room.saturating_add(1), &found, std::ptr::null_mut())
    })
}

/// `buflen` counts the final zero, and returns the length that the value needs.
pub unsafe fn info_get_string(
    info: MPI_Info,
    key: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Answer {
    let key = self::key(key)?;
    checks::not_null("buflen", buflen)?;
    let room = checks::count("buflen", *buflen)? as c_int;
    let found = info::with(info, |info| info.get(&key).map(str::to_owned))?;
    put_found(flag, found, |found| {
        if room > 0 {
            put_text("value", value, room, &found, std::ptr::null_mut())?;
        }
        *buflen = found.len() as c_int + 1;
        Ok(())
    })
}

pub unsafe fn info_get_valuelen(
    info: MPI_Info,
    key: *const c_char,
    valuelen: *mut c_int,
    flag: *mut c_int,
) -> Answer {
    let key = self::key(key)?;
    let found = info::with(info, |info| info.get(&key).map(str::len))?;
    put_found(flag, found, |length| put("valuelen", valuelen, length as c_int))
}

pub unsafe fn info_get_nkeys(info: MPI_Info, nkeys: *mut c_int) -> Answer {
    put("nkeys", nkeys, info::with(info, |info| info.entries.len())? as c_int)
}

pub unsafe fn info_get_nthkey(info: MPI_Info, n: c_int, key: *mut c_char) -> Answer {
    let (found, all) = info::with(info, |info| {
        let nth = usize::try_from(n).ok().and_then(|n| info.entries.get(n));
        (nth.map(|(key, _)| key.clone()), info.entries.len())
    })?;
    match found {
        Some(found) => put_text("key", key, MPI_MAX_INFO_KEY + 1, &found, std::ptr::null_mut()),
        None => {
            let text = format!("argument n is {n}, but the info object has {all} keys, from 0 on");
            Err(fail(MPI_ERR_ARG, text))
        }
    }
}

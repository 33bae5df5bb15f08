//! libzmq, found at run time: the copy that pyzmq has brought, or the system's.
//!
//! Nothing is linked and nothing is built: a machine without ZeroMQ runs all that stays on it. The
//! functions and the 64 bytes of a message are the same in every libzmq since 4.1; 4.2 is the first
//! with all options that are used here.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::io::Error;
use std::sync::OnceLock;

/// zmq_msg_t: it may be moved, but not copied.
#[repr(C, align(8))]
pub(super) struct Raw(pub(super) [u8; 64]);

/// What libzmq calls when it has done with memory that it was lent.
pub(super) type Free = unsafe extern "C" fn(data: *mut c_void, hint: *mut c_void);

macro_rules! functions {
    ($($field:ident($($argument:ty),*) -> $result:ty;)*) => {
        /// The functions, without `zmq_`; what they do is in libzmq's manual.
        pub struct Library {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Library {
            /// All of them, by name; the missing one's name if one is missing.
            fn of(module: *mut c_void) -> Result<Library, &'static str> {
                Ok(Library {
                    $($field: {
                        let name = concat!("zmq_", stringify!($field), "\0");
                        // SAFETY: a lookup by a name that ends with zero.
                        let at = unsafe { libc::dlsym(module, name.as_ptr().cast()) };
                        if at.is_null() {
                            return Err(name.trim_end_matches('\0'));
                        }
                        // SAFETY: libzmq's function of this name has this type.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) -> $result,
                            >(at)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    version(*mut c_int, *mut c_int, *mut c_int) -> ();
    has(*const c_char) -> c_int;
    errno() -> c_int;
    ctx_new() -> *mut c_void;
    ctx_set(*mut c_void, c_int, c_int) -> c_int;
    ctx_term(*mut c_void) -> c_int;
    socket(*mut c_void, c_int) -> *mut c_void;
    close(*mut c_void) -> c_int;
    setsockopt(*mut c_void, c_int, *const c_void, usize) -> c_int;
    getsockopt(*mut c_void, c_int, *mut c_void, *mut usize) -> c_int;
    bind(*mut c_void, *const c_char) -> c_int;
    connect(*mut c_void, *const c_char) -> c_int;
    socket_monitor(*mut c_void, *const c_char, c_int) -> c_int;
    msg_init(*mut Raw) -> c_int;
    msg_init_size(*mut Raw, usize) -> c_int;
    msg_init_data(*mut Raw, *mut c_void, usize, Free, *mut c_void) -> c_int;
    msg_data(*mut Raw) -> *mut c_void;
    msg_size(*const Raw) -> usize;
    msg_more(*const Raw) -> c_int;
    msg_get(*const Raw, c_int) -> c_int;
    msg_gets(*const Raw, *const c_char) -> *const c_char;
    msg_recv(*mut Raw, *mut c_void, c_int) -> c_int;
    msg_send(*mut Raw, *mut c_void, c_int) -> c_int;
    msg_close(*mut Raw) -> c_int;
    curve_keypair(*mut c_char, *mut c_char) -> c_int;
    curve_public(*mut c_char, *const c_char) -> c_int;
    z85_encode(*mut c_char, *const u8, usize) -> *mut c_char;
    z85_decode(*mut u8, *const c_char) -> *mut u8;
}

/// The oldest version that will do.
const OLDEST: (c_int, c_int) = (4, 2);

const INSTALL: &str = "pip install pyzmq, or Debian's libzmq5, brings one that will do";

static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();

impl Library {
    /// The library: the first of `candidates` that can be loaded, otherwise the system's. The first
    /// call decides for the whole process.
    ///
    /// A candidate is the path of a libzmq, or of a module that is linked with one: a lookup in a
    /// module also searches the libraries that it needs. pyzmq's copy and another do not know each
    /// other's sockets.
    pub fn load(candidates: &[CString]) -> Result<&'static Library, String> {
        LIBRARY.get_or_init(|| Library::find(candidates)).as_ref().map_err(String::clone)
    }

    fn find(candidates: &[CString]) -> Result<Library, String> {
        let system = [c"libzmq.so.5".to_owned()];
        let mut module = std::ptr::null_mut();
        let found = candidates.iter().chain(&system).find(|path| {
            // SAFETY: libzmq's initialisers only set up the library; it is never closed.
            module = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
            !module.is_null()
        });
        let Some(found) = found else {
            return Err(format!("there is no libzmq on this machine: {INSTALL}"));
        };
        let name = found.to_string_lossy();
        let library = Library::of(module).map_err(|missing| {
            format!("{name} gives no access to libzmq ({missing} is missing): {INSTALL}")
        })?;
        library.check(&name)?;
        Ok(library)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        // SAFETY: room for three numbers, and a name.
        let curve = unsafe {
            (self.version)(&mut major, &mut minor, &mut patch);
            (self.has)(c"curve".as_ptr()) == 1
        };
        is_usable(name, [major, minor, patch], curve)
    }

    pub(super) fn last_error(&self) -> Error {
        // SAFETY: libzmq sets no condition for this call.
        Error::from_raw_os_error(unsafe { (self.errno)() })
    }

    /// What a call's result says: an error below zero.
    pub(super) fn done(&self, result: c_int) -> Result<(), Error> {
        match result < 0 {
            true => Err(self.last_error()),
            false => Ok(()),
        }
    }
}

/// A sentence if a libzmq of this version, with or without CURVE, cannot be used.
fn is_usable(name: &str, version: [c_int; 3], curve: bool) -> Result<(), String> {
    let [major, minor, patch] = version;
    let (least, part) = OLDEST;
    if (major, minor) < OLDEST {
        return Err(format!(
            "{name} is libzmq {major}.{minor}.{patch}, and {least}.{part} or newer is needed: {INSTALL}"
        ));
    }
    match curve {
        true => Ok(()),
        false => Err(format!("{name} was built without CURVE, its encryption: {INSTALL}")),
    }
}

/// A text of libzmq's.
pub(super) fn text(at: *const c_char) -> Option<String> {
    // SAFETY: null, or a string that ends with zero.
    (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(candidate: &str) -> String {
        let candidates = [CString::new(candidate).unwrap()];
        Library::find(&candidates).err().expect("this is no libzmq")
    }

    #[test]
    fn a_library_without_its_functions_is_named() {
        let found = error("libc.so.6");
        let expected = "libc.so.6 gives no access to libzmq (zmq_version is missing): pip install";
        assert!(found.starts_with(expected), "{found}");
    }

    #[test]
    fn an_old_library_and_one_without_curve_are_named() {
        assert_eq!(is_usable("libzmq.so", [4, 2, 0], true), Ok(()));
        let old = is_usable("libzmq.so", [4, 1, 8], true).unwrap_err();
        assert!(old.starts_with("libzmq.so is libzmq 4.1.8, and 4.2 or newer is needed"), "{old}");
        let bare = is_usable("libzmq.so", [4, 3, 5], false).unwrap_err();
        assert!(bare.starts_with("libzmq.so was built without CURVE"), "{bare}");
    }
}

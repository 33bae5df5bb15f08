//! Call locations in a program without Python: the address to which a call returns.
//!
//! Each function of the library begins with a few instructions that `entry!` makes: they write the
//! return address and the function's name into two words of the thread, and jump on. So a call pays
//! a nanosecond, observed or not, and no frame pointers are needed. When an event is published, the
//! word becomes a code location (core: code_location.rs): a binary and an address in it. The
//! observer finds the source line in the binary's debug information.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{fence, AtomicU64, AtomicUsize, Ordering};
use std::sync::Mutex;

use sfm_native::code_location::{self, CodeLocation};
use sfm_native::sync::lock;

use crate::modules::{self, Module};
use crate::sites::{self, Lookup, NOWHERE};

/// Call sites whose location is cached, by a hash of their address.
const CAPACITY: usize = 256;

// The words of each thread: the address, and a pointer to the name. Not a `thread_local!`, whose
// address only Rust knows; and found from the thread's pointer without a call (initial-exec), since
// all registers belong to the arguments. Such variables have little room: a program may load the
// library late.
std::arch::global_asm!(
    ".pushsection .tbss.sfm_caller,\"awT\",%nobits",
    ".balign 8",
    ".globl sfm_caller",
    ".hidden sfm_caller",
    "sfm_caller:",
    ".zero 16",
    ".popsection"
);

/// Export functions under these names, which note their caller and go on as another one:
/// `entry!(sfm_send => send)`, where `send` is `unsafe extern "C"`. With its prototype,
/// `entry!(MPI_Wtime() -> c_double, wtime)`, Rust can call it, too.
#[macro_export]
macro_rules! entry {
    ($name:ident($($argument:ident: $kind:ty),*) -> $returns:ty, $body:path) => {
        $crate::entry_name!($name);
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $kind),*) -> $returns {
            $crate::note_caller_and_jump!($name, $body)
        }
    };
    ($($name:ident),+ => $body:path) => { $(
        $crate::entry_name!($name);
        /// # Safety
        /// The same as for the function that it goes on as, whose arguments it has.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            $crate::note_caller_and_jump!($name, $body)
        }
    )+ };
}

/// The name of an entry, in a module of the same name.
#[doc(hidden)]
#[macro_export]
macro_rules! entry_name {
    ($name:ident) => {
        #[allow(non_snake_case)]
        mod $name {
            pub static NAME: &str = stringify!($name);
        }
    };
}

#[cfg(target_arch = "x86_64")]
#[doc(hidden)]
#[macro_export]
macro_rules! note_caller_and_jump {
    ($name:ident, $body:path) => {
        ::core::arch::naked_asm!(
            "mov r11, qword ptr [rsp]",
            "mov r10, qword ptr [rip + sfm_caller@GOTTPOFF]",
            "mov qword ptr fs:[r10], r11",
            "lea r11, [rip + {name}]",
            "mov qword ptr fs:[r10 + 8], r11",
            "jmp {body}",
            name = sym $name::NAME,
            body = sym $body,
        )
    };
}

#[cfg(target_arch = "aarch64")]
#[doc(hidden)]
#[macro_export]
macro_rules! note_caller_and_jump {
    ($name:ident, $body:path) => {
        ::core::arch::naked_asm!(
            "mrs x16, tpidr_el0",
            "adrp x17, :gottprel:sfm_caller",
            "ldr x17, [x17, :gottprel_lo12:sfm_caller]",
            "add x16, x16, x17",
            "adrp x17, {name}",
            "add x17, x17, :lo12:{name}",
            "stp x30, x17, [x16]",
            "b {body}",
            name = sym $name::NAME,
            body = sym $body,
        )
    };
}

/// The contents of this thread's words.
#[derive(Clone, Copy)]
struct Words {
    /// The address after the latest call; 0 before the first.
    caller: usize,
    /// The name of the function that was called.
    name: Option<&'static &'static str>,
}

fn words() -> *mut Words {
    let words: *mut Words;
    // SAFETY: reads the thread's pointer and a constant of the linker.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        std::arch::asm!(
            "mov {words}, qword ptr fs:[0]",
            "add {words}, qword ptr [rip + sfm_caller@GOTTPOFF]",
            words = out(reg) words,
            options(nostack, readonly, pure),
        );
        #[cfg(target_arch = "aarch64")]
        std::arch::asm!(
            "mrs {words}, tpidr_el0",
            "adrp {offset}, :gottprel:sfm_caller",
            "ldr {offset}, [{offset}, :gottprel_lo12:sfm_caller]",
            "add {words}, {words}, {offset}",
            words = out(reg) words,
            offset = out(reg) _,
            options(nostack, readonly, pure),
        );
    }
    words
}

/// The address after the latest call of this thread; 0 before the first.
pub fn caller() -> usize {
    // SAFETY: this thread's words, which live as long as it does.
    unsafe { (*words()).caller }
}

/// The function that this thread has called last; empty before the first.
pub fn name() -> &'static str {
    // SAFETY: as above; an entry has written it.
    unsafe { (*words()).name.map_or("", |name| name) }
}

/// Run a function of the program, which may make calls itself. Later calls keep their location.
pub fn kept<T>(function: impl FnOnce() -> T) -> T {
    struct Back(Words);
    impl Drop for Back {
        fn drop(&mut self) {
            // SAFETY: as in `caller`.
            unsafe { *words() = self.0 }
        }
    }
    // SAFETY: as in `caller`.
    let _back = Back(unsafe { *words() });
    function()
}

/// Publish this program's binaries and addresses as code locations from now on.
pub fn install() {
    code_location::set_finder(location);
}

/// The location of this thread's latest call; 0 before the first, and if it is in no binary.
pub fn location() -> CodeLocation {
    match caller() {
        0 => 0,
        caller => SITES.get(caller).unwrap_or_else(|| find(caller)),
    }
}

static SITES: Sites = Sites { sites: [const { Site::new() }; CAPACITY], writing: Mutex::new(()) };

/// Locations by addresses; of two with the same entry the later one has it.
struct Sites {
    sites: [Site; CAPACITY],
    writing: Mutex<()>,
}

struct Site {
    address: AtomicUsize,
    location: AtomicU64,
}

impl Site {
    const fn new() -> Site {
        Site { address: AtomicUsize::new(0), location: AtomicU64::new(0) }
    }
}

impl Sites {
    fn get(&self, address: usize) -> Option<CodeLocation> {
        let site = &self.sites[address % CAPACITY];
        // SYNC POINT callers: the address before the location, and again after it.
        let matches = site.address.load(Ordering::Acquire) == address;
        let location = site.location.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let still_matches = site.address.load(Ordering::Relaxed) == address;
        (matches && still_matches).then_some(location)
    }

    fn put(&self, address: usize, location: CodeLocation) {
        let _one_at_a_time = lock(&self.writing);
        let site = &self.sites[address % CAPACITY];
        // SYNC POINT callers: no address while the location changes.
        site.address.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        site.location.store(location, Ordering::Relaxed);
        site.address.store(address, Ordering::Release);
    }
}

#[cold]
fn find(caller: usize) -> CodeLocation {
    let location = code_before(caller)
        .map_or(0, |(code, line)| code_location::location(code_location::register(code), line));
    SITES.put(caller, location);
    location
}

/// The text of the binary that has made a call, and the address in it; None if no binary has. The
/// address is that of the instruction before the return: if a call is the last instruction of a
/// function, the next line may be another's.
fn code_before(caller: usize) -> Option<(String, u32)> {
    let address = caller.checked_sub(1)?;
    let code =
        |module: &Module| Some((text_of(module), u32::try_from(address - module.base).ok()?));
    modules::find(address, code).flatten()
}

/// The number of this thread's latest call.
pub fn site() -> u32 {
    // SAFETY: as in `caller`.
    let Words { caller, name } = unsafe { *words() };
    let key = (caller, name.map_or(0, |name| std::ptr::from_ref(name) as usize));
    match sites::find(key) {
        Lookup::Known(number) => number,
        Lookup::New => new_site(key),
        Lookup::Hidden | Lookup::Full => NOWHERE,
    }
}

#[cold]
fn new_site(key: sites::Key) -> u32 {
    let (code, line) = code_before(key.0).unwrap_or_default();
    match sites::add(key, Some(sites::Site::new(name().to_owned(), code, line))) {
        Lookup::Known(number) => number,
        _ => NOWHERE,
    }
}

/// The location of this thread's latest call, for the launcher: two lines, which the observer's
/// crashes.py reads. The first is the cell, the second the address, the build id and the binary;
/// both empty if nothing is known.
pub fn report() -> String {
    let address = caller().saturating_sub(1);
    let site = modules::find(address, |module| {
        let (offset, path) = (address - module.base, path_of(module.name));
        format!("{offset} @{} {}", module.build_id(), path.display())
    });
    format!("{}\n{}", cell(), site.unwrap_or_default())
}

/// The cell of this program, from `SFM_CELL`: number and id, with a tab between them.
fn cell() -> String {
    let cell = std::env::var("SFM_CELL").ok().filter(|cell| cell.matches('\t').count() == 1);
    cell.unwrap_or_else(|| "\t".to_owned())
}

/// The text of a binary for observers: that of a piece of code
/// (sfm_kernel/observe/code_locations.py), whose function is the binary's build id, behind an @.
fn text_of(module: &Module) -> String {
    let path = path_of(module.name);
    format!("{}\t0\t@{}\t{}", cell(), module.build_id(), path.display())
}

/// The file of a binary; `name`: from the dynamic linker, empty for the program itself.
fn path_of(name: &CStr) -> PathBuf {
    if name.is_empty() {
        return std::fs::read_link("/proc/self/exe").unwrap_or_default();
    }
    let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
    std::fs::canonicalize(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_caller(address: usize) {
        // SAFETY: as in `caller`.
        unsafe { (*words()).caller = address }
    }

    #[test]
    fn the_location_of_a_call_is_its_binary_and_an_address_in_it() {
        assert_eq!(location(), 0);
        let address = the_location_of_a_call_is_its_binary_and_an_address_in_it as fn() as usize;
        for _ in 0..2 {
            set_caller(address + 1);
            let found = location();
            assert_ne!(code_location::code_of(found), 0);
            let offset = modules::find(address, |module| address - module.base).unwrap();
            assert_eq!(code_location::line_of(found) as usize, offset);
        }
        let site = sites::get(site()).unwrap();
        assert!(
            site.code.contains("\t@") && site.line == code_location::line_of(location()),
            "{site:?}"
        );
        assert!(report().starts_with("\t\n") && report().contains(" @"), "{}", report());
        set_caller(17); // no code is there
        assert_eq!(location(), 0);
        assert_eq!(report(), "\t\n");
    }

    #[test]
    fn a_call_of_a_program_function_preserves_the_caller() {
        set_caller(1234);
        kept(|| set_caller(99));
        assert_eq!(caller(), 1234);
    }

    #[test]
    fn addresses_with_the_same_entry_are_not_mixed_up() {
        let sites = Sites { sites: [const { Site::new() }; CAPACITY], writing: Mutex::new(()) };
        sites.put(5, 50);
        assert_eq!(sites.get(5), Some(50));
        sites.put(5 + CAPACITY, 60);
        assert_eq!((sites.get(5), sites.get(5 + CAPACITY)), (None, Some(60)));
    }
}

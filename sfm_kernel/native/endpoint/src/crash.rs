//! Crash reports of a program to its launcher: the signal, and the frames.
//!
//! Handlers take the signals that crashes raise, and SIGINT, by which the launcher stops the
//! program and learns where it was, if the program has no handlers of its own. They
//! send a report on the launcher's socket (sfm_kernel/mpi/launch/reports.py), and then let the
//! program die as it would have without them: exit status and core dump stay. They allocate nothing
//! and take no lock but the dynamic linker's; should one of them crash over a broken stack, a
//! second one reports what is known so far. The launcher finds the source lines
//! (sfm_kernel/observe/crashes.py).

mod report;

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::OnceLock;

use self::report::Report;
use crate::host::this_thread;
use crate::modules;

/// A crash raises these.
pub const CRASHES: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGABRT, libc::SIGTRAP];

/// Bytes of the handlers' stack: the program's may be full.
const STACK: usize = 256 << 10;
/// Most frames in a report, from the innermost.
const FRAMES: usize = 24;
/// Most bytes of a report.
const ROOM: usize = 16 << 10;

/// The launcher's socket, and the process whose crashes are reported: not those of its forked
/// children.
static REPORTS: AtomicI32 = AtomicI32::new(-1);
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// The thread whose crash is reported; 0 while there is none.
static CRASHED: AtomicI32 = AtomicI32::new(0);
/// The cell of this program, as in callers.rs: later its environment may be damaged.
static CELL: OnceLock<String> = OnceLock::new();
/// The lowest address that the main thread's stack can have; 0 if it has no limit.
static STACK_LIMIT: AtomicUsize = AtomicUsize::new(0);

/// Report crashes of this process on the socket `reports`; on this thread also a full stack.
pub fn install(reports: c_int) {
    PROCESS.store(process::id(), Ordering::Relaxed);
    if REPORTS.swap(reports, Ordering::Relaxed) >= 0 {
        return;
    }
    let _ = CELL.set(std::env::var("SFM_CELL").unwrap_or_default());
    STACK_LIMIT.store(stack_limit(), Ordering::Relaxed);
    set_stack();
    for signal in CRASHES.into_iter().chain([libc::SIGINT]) {
        // SAFETY: plain calls, with memory of this frame.
        unsafe {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            libc::sigaction(signal, std::ptr::null(), &mut action);
            if action.sa_sigaction != libc::SIG_DFL {
                continue; // the program handles it
            }
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// Whether the handler at this address is one of these.
pub fn is_handler(address: usize) -> bool {
    address == handle as *const () as usize
}

fn set_stack() {
    // SAFETY: fresh memory, which stays for good.
    unsafe {
        let mut former = MaybeUninit::<libc::stack_t>::zeroed().assume_init();
        libc::sigaltstack(std::ptr::null(), &mut former);
        if former.ss_flags & libc::SS_DISABLE == 0 {
            return;
        }
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let memory = libc::mmap(std::ptr::null_mut(), STACK, access, kind, -1, 0);
        if memory != libc::MAP_FAILED {
            let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: STACK };
            libc::sigaltstack(&stack, std::ptr::null_mut());
        }
    }
}

fn stack_limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: memory of this frame.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
    let start = &raw const limit as usize; // or little more
    start.saturating_sub(usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX))
}

unsafe extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives both to a handler with SA_SIGINFO.
    let (info, context) = unsafe { (&*info, &*context.cast::<libc::ucontext_t>()) };
    if PROCESS.load(Ordering::Relaxed) == process::id() {
        match CRASHED.compare_exchange(0, this_thread(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                WALK.begin(signal, info, context);
                WALK.walk();
                report();
            }
            Err(first) if first == this_thread() => report(), // it crashed while this walked its stack
            Err(_) => loop {
                // SAFETY: waits for the process's end, which the other thread brings.
                unsafe { libc::pause() };
            },
        }
    }
    // SAFETY: plain calls, allowed in handlers.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        // An instruction raises its signal again; a signal that was sent has to be sent again.
        if info.si_code <= 0 {
            libc::raise(signal);
        }
    }
}

/// The crash as far as it is known.
static WALK: Walk = Walk { about: UnsafeCell::new(About::NOTHING), count: AtomicUsize::new(0) };

struct Walk {
    about: UnsafeCell<About>,
    /// Frames that are complete.
    count: AtomicUsize,
}

struct About {
    signal: c_int,
    code: c_int,
    /// The address that was touched, for signals that have one.
    address: usize,
    /// The compiler's check that has failed, if the signal means that.
    check: Option<u8>,
    is_stack_full: bool,
    /// Addresses of instructions in the program.
    frames: [usize; FRAMES],
}

// SAFETY: only used by the one thread that CRASHED names.
unsafe impl Sync for Walk {}

impl About {
    const NOTHING: About = About {
        signal: 0,
        code: 0,
        address: 0,
        check: None,
        is_stack_full: false,
        frames: [0; FRAMES],
    };
}

impl Walk {
    fn begin(&self, signal: c_int, info: &libc::siginfo_t, context: &libc::ucontext_t) {
        let (instruction, stack) = registers(context);
        // SAFETY: see `Sync`; and the union's field that these signals have.
        unsafe {
            let about = &mut *self.about.get();
            (about.signal, about.code) = (signal, info.si_code);
            about.address = info.si_addr() as usize;
            about.is_stack_full = is_full(stack);
        }
        self.push(instruction);
        if modules::find(instruction, |_| ()).is_none() {
            // A call of an address that is no function: its caller is where it would return to.
            self.push(return_address(context).wrapping_sub(1));
        } else if signal == libc::SIGILL || signal == libc::SIGTRAP {
            // SAFETY: see `Sync`.
            unsafe { (*self.about.get()).check = failed_check(instruction) };
        }
    }

    /// Walk the outer frames.
    fn walk(&self) {
        // SAFETY: the function takes this argument, and is called while this runs.
        unsafe { _Unwind_Backtrace(step, (&raw const *self).cast_mut().cast()) };
    }

    fn push(&self, address: usize) {
        let count = self.count.load(Ordering::Relaxed);
        // SAFETY: see `Sync`.
        let frames = unsafe { &mut (*self.about.get()).frames };
        if let Some(frame) = frames.get_mut(count) {
            *frame = address;
            self.count.store(count + 1, Ordering::Release);
        }
    }

    fn about(&self) -> (&About, &[usize]) {
        // SAFETY: see `Sync`; the reporting thread no longer walks.
        let about = unsafe { &*self.about.get() };
        (about, &about.frames[..self.count.load(Ordering::Acquire)])
    }
}

// From the compiler's runtime, which Rust's library is linked with anyway.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIPInfo(frame: *mut c_void, is_exact: *mut c_int) -> usize;
}

/// Called for each frame from this handler's own outwards.
unsafe extern "C" fn step(frame: *mut c_void, walk: *mut c_void) -> c_int {
    const CONTINUE: c_int = 0;
    const END: c_int = 5;
    // SAFETY: the argument of `walk`.
    let walk = unsafe { &*walk.cast::<Walk>() };
    let mut is_exact = 0;
    // SAFETY: the frame is the unwinder's, and there while this runs.
    let after = unsafe { _Unwind_GetIPInfo(frame, &mut is_exact) };
    let first = walk.about().1[0];
    // The frame that the signal has interrupted is known; those before it are the handler's.
    static IS_OUTSIDE: AtomicI32 = AtomicI32::new(0);
    if after == first {
        IS_OUTSIDE.store(1, Ordering::Relaxed);
    } else if IS_OUTSIDE.load(Ordering::Relaxed) != 0 {
        walk.push(if is_exact == 0 { after.wrapping_sub(1) } else { after });
    }
    if after == 0 || walk.about().1.len() == FRAMES {
        END
    } else {
        CONTINUE
    }
}

/// The point of interruption: instruction and stack.
fn registers(context: &libc::ucontext_t) -> (usize, usize) {
    let machine = &context.uc_mcontext;
    #[cfg(target_arch = "x86_64")]
    let found = (machine.gregs[libc::REG_RIP as usize], machine.gregs[libc::REG_RSP as usize]);
    #[cfg(target_arch = "aarch64")]
    let found = (machine.pc, machine.sp);
    (found.0 as usize, found.1 as usize)
}

/// Whether this thread's stack has reached its end.
fn is_full(stack: usize) -> bool {
    const NEARLY: usize = 64 << 10;
    let limit = STACK_LIMIT.load(Ordering::Relaxed);
    this_thread() as u32 == process::id() && limit != 0 && stack < limit + NEARLY
}

/// The number of the check by which clang has ended the program; gcc does not give it.
fn failed_check(instruction: usize) -> Option<u8> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: it was executed; the first three bytes show whether there are more.
        let code = |nth: usize| unsafe { *((instruction + nth) as *const u8) };
        let is_check =
            [0x67, 0x0f, 0xb9, 0x40].iter().enumerate().all(|(n, byte)| code(n) == *byte);
        is_check.then(|| code(4)) // ud1 NUMBER(%eax), %eax
    }
    #[cfg(target_arch = "aarch64")]
    {
        // SAFETY: it was executed.
        let code = unsafe { *(instruction as *const u32) };
        (code & 0xffff_e01f == 0xd42a_a000).then_some((code >> 5) as u8) // brk 0x5500 + NUMBER
    }
}

/// The return address of a function that has only just been called.
fn return_address(context: &libc::ucontext_t) -> usize {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the call has just written it there; if there was none, a second handler reports the
    // rest.
    let found = unsafe { *(registers(context).1 as *const usize) };
    #[cfg(target_arch = "aarch64")]
    let found = context.uc_mcontext.regs[30] as usize;
    found
}

/// Send the report: [kind, status, text] as JSON. The text's lines: signal, code, address, whether
/// the stack is full, failed check; the cell; then for each frame address, build id behind an @,
/// and binary.
fn report() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if REPORTED.swap(true, Ordering::Relaxed) {
        return; // even this has crashed
    }
    let (about, frames) = WALK.about();
    let mut report = Report { bytes: [0; ROOM], used: 0 };
    let _ = report.write(about, frames); // what has no room is left out
    let bytes = &report.bytes[..report.used];
    let reports = REPORTS.load(Ordering::Relaxed);
    // SAFETY: these bytes.
    unsafe { libc::send(reports, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
}

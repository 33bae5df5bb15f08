//! The cores of this machine: how many there are, how many are wanted, and which one this thread
//! runs on.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// Cores that this process may use (affinity and container quota).
pub fn usable() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Processes and threads that run or want to, on the whole machine, this one included; None if the
/// system does not say. Some 2 us.
pub fn wanted() -> Option<usize> {
    static LOAD: OnceLock<Option<File>> = OnceLock::new();
    let file = LOAD.get_or_init(|| File::open("/proc/loadavg").ok()).as_ref()?;
    let mut text = [0u8; 64];
    let length = file.read_at(&mut text, 0).ok()?;
    // "0.52 0.41 0.33 2/345 6789"
    let field = std::str::from_utf8(&text[..length]).ok()?.split(' ').nth(3)?;
    field.split('/').next()?.parse().ok()
}

/// The core on which this thread runs. Some nanoseconds: the C library reads it from memory that
/// the kernel keeps up to date.
pub fn current() -> u32 {
    // SAFETY: the call takes no arguments, and only returns a number.
    unsafe { libc::sched_getcpu() as u32 }
}

/// Move this thread to another core, where it competes with what runs there; false if it may not
/// use every core of the machine.
///
/// The thread may use every core afterwards, as before. A thread that was confined to some of them
/// stays where it is: after a change and its reversal, it would not follow later changes of its
/// container's cores.
pub fn leave_current() -> bool {
    // SAFETY: the sets are plain bits, as large as the calls are told; 0 is this thread.
    unsafe {
        let size = std::mem::size_of::<libc::cpu_set_t>();
        let mut others: libc::cpu_set_t = std::mem::zeroed();
        let known = libc::sched_getaffinity(0, size, &mut others) == 0;
        let all = libc::sysconf(libc::_SC_NPROCESSORS_ONLN);
        let here = current() as usize;
        if !known || all < 2 || i64::from(libc::CPU_COUNT(&others)) != all || here >= 8 * size {
            return false;
        }
        libc::CPU_CLR(here, &mut others);
        let moved = libc::sched_setaffinity(0, size, &others) == 0;
        let mut every: libc::cpu_set_t = std::mem::zeroed();
        (0..8 * size).for_each(|core| libc::CPU_SET(core, &mut every));
        libc::sched_setaffinity(0, size, &every);
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed() -> Vec<usize> {
        // SAFETY: the calls read and write a set of this function, of the stated size.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, std::mem::size_of_val(&set), &mut set);
            (0..libc::CPU_SETSIZE as usize).filter(|core| libc::CPU_ISSET(*core, &set)).collect()
        }
    }

    #[test]
    fn a_thread_that_leaves_its_core_may_use_all_of_them_afterwards() {
        let before = allowed();
        let may = before.len() > 1 && before.len() == usable();
        assert!(leave_current() || !may);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn a_confined_thread_stays() {
        let here = allowed()[0];
        // SAFETY: the calls read and write a set of this function, of the stated size.
        unsafe {
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(here, &mut one);
            libc::sched_setaffinity(0, std::mem::size_of_val(&one), &one);
        }
        assert!(!leave_current());
        assert_eq!((allowed(), current() as usize), (vec![here], here));
    }

    #[test]
    fn the_system_says_how_many_cores_are_wanted() {
        assert!(wanted().is_none_or(|wanted| wanted > 0));
    }
}

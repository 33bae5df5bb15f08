//! A kernel without BBR: it refuses a test's threads any change of the algorithm.

use super::*;

const ALLOW: u32 = 0x7fff_0000; // SECCOMP_RET_ALLOW
const REFUSE: u32 = 0x0005_0000 | libc::EPERM as u32; // SECCOMP_RET_ERRNO

/// Offsets in `struct seccomp_data` (the kernel's uapi/linux/seccomp.h) of the call's number, and
/// of the lower halves of its second and third argument.
const CALL: u32 = 0;
const LEVEL: u32 = 16 + 8 + if cfg!(target_endian = "big") { 4 } else { 0 };
const OPTION: u32 = LEVEL + 8;

/// From now on this thread, and threads that it starts, cannot choose TCP's congestion control.
fn refuse_congestion_control() {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jf| libc::sock_filter { code, jt: 0, jf, k };
    let mut steps = [
        step(LOAD, CALL, 0),
        step(EQUAL, libc::SYS_setsockopt as u32, 5),
        step(LOAD, LEVEL, 0),
        step(EQUAL, libc::IPPROTO_TCP as u32, 3),
        step(LOAD, OPTION, 0),
        step(EQUAL, libc::TCP_CONGESTION as u32, 1),
        step(RETURN, REFUSE, 0),
        step(RETURN, ALLOW, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the kernel reads the program, which outlives the calls and applies to this thread
    // only.
    let failed = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0
    };
    assert!(!failed, "{}", std::io::Error::last_os_error());
}

#[test]
fn without_bbr_there_are_four_connections_unless_a_number_was_asked_for() {
    let without_bbr = || {
        refuse_congestion_control();
        let with = |connections| Gateway::start(Options { connections, ..options("A") }).unwrap();
        let (a, b) = (with(None), gateway("B"));
        assert_eq!(a.choice.connections, 4);
        assert_ne!(a.choice.algorithm, "");
        assert!(a.choice.why.contains("no bbr here: 4 connections"), "{}", a.choice.why);
        introduce(&[(&a, "A"), (&b, "B")]);
        wait_until(|| connections_up(&a) == 4);
        assert_eq!(with(Some(2)).choice.connections, 2);
        let named = Options { algorithm: Some("bbr".into()), ..options("A") };
        let refused = Gateway::start(named).err().unwrap().to_string();
        assert!(refused.contains("refuses the congestion control \"bbr\""), "{refused}");
    };
    // In a separate thread, because the filter stays with it.
    std::thread::spawn(without_bbr).join().unwrap();
}

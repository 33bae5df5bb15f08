//! The stack of a process's main thread that waits in a system call: the addresses of its frames.
//!
//! The system tells where the stack and the next instruction are; how far each frame reaches stands
//! in the binaries, in the tables from which C++ finds its handlers (.eh_frame). The process does
//! not notice that its memory is read. If it goes on meanwhile, the walk ends early, or shows what
//! was true a moment ago.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use gimli::{BaseAddresses, CfaRule, EhFrame, EhFrameHdr, Register, RegisterRule, UnwindContext};
use gimli::{RunTimeEndian, UnwindSection};
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};
use pyo3::prelude::*;

use crate::host::gil::without_gil;

/// Frames, at most.
const DEEPEST: usize = 64;

#[cfg(target_arch = "x86_64")]
const REGISTERS: Registers =
    Registers { stack: Register(7), frame: Register(6), back: Register(16) };
#[cfg(target_arch = "aarch64")]
const REGISTERS: Registers =
    Registers { stack: Register(31), frame: Register(29), back: Register(30) };

/// The numbers that DWARF gives to registers.
struct Registers {
    stack: Register,
    frame: Register,
    /// The return address.
    back: Register,
}

/// The binary of each frame and the address in it, innermost first; empty if the thread is in no
/// system call, or the system does not say.
#[pyfunction]
#[pyo3(signature = (pid, /))]
pub fn native_stack(py: Python<'_>, pid: u32) -> Vec<(PathBuf, u64)> {
    without_gil(py, || walk(pid).unwrap_or_default())
}

fn walk(pid: u32) -> Option<Vec<(PathBuf, u64)>> {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
    let [instruction, stack, ..] = *call.split_ascii_whitespace().rev().collect::<Vec<_>>() else {
        return None;
    };
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    let mut frame = Frame { instruction: number(instruction)?, stack: number(stack)?, frame: None };
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut found = Vec::new();
    while found.len() < DEEPEST {
        // An address after a call may be the next function's.
        let at = frame.instruction - u64::from(!found.is_empty());
        let Some((path, offset)) = mapped(&maps, at) else { break };
        let Some((address, caller)) = step(&path, offset, &frame, &memory) else { break };
        found.push((path, address));
        match caller {
            Some(caller) if caller.stack > frame.stack => frame = caller,
            _ => break,
        }
    }
    Some(found)
}

#[derive(Clone, Copy)]
struct Frame {
    instruction: u64,
    stack: u64,
    /// The register that may hold the frame's address, if it is known.
    frame: Option<u64>,
}

/// The file that is mapped at an address, and the offset in it: proc(5), maps.
fn mapped(maps: &str, address: u64) -> Option<(PathBuf, u64)> {
    maps.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (hex(start)?, hex(end)?);
        let (_access, offset) = (words.next()?, hex(words.next()?)?);
        let path = line.find('/').map(|at| PathBuf::from(&line[at..]))?;
        (start..end).contains(&address).then(|| (path, address - start + offset))
    })
}

/// The address of an offset in a binary, and the frame's caller; none if the tables do not say.
fn step(path: &PathBuf, offset: u64, frame: &Frame, memory: &File) -> Option<(u64, Option<Frame>)> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let segment = file.segments().find(|segment| {
        let (start, size) = segment.file_range();
        let is_code = matches!(segment.flags(), SegmentFlags::Elf { p_flags } if p_flags & 1 != 0);
        is_code && (start..start + size).contains(&offset)
    })?;
    let address = offset - segment.file_range().0 + segment.address();
    Some((address, caller(&file, address, frame, memory)))
}

fn caller(file: &object::File, address: u64, frame: &Frame, memory: &File) -> Option<Frame> {
    let section = |name| {
        let section = file.section_by_name(name)?;
        Some((section.address(), section.data().ok()?))
    };
    let (header_at, header) = section(".eh_frame_hdr")?;
    let (tables_at, tables) = section(".eh_frame")?;
    let text_at = section(".text")?.0;
    let bases = BaseAddresses::default()
        .set_eh_frame_hdr(header_at)
        .set_eh_frame(tables_at)
        .set_text(text_at);
    let endian = RunTimeEndian::Little;
    let tables = EhFrame::new(tables, endian);
    let header = EhFrameHdr::new(header, endian).parse(&bases, 8).ok()?;
    let mut context = UnwindContext::new();
    let from_offset = EhFrame::cie_from_offset;
    let row = header.table()?;
    let row =
        row.unwind_info_for_address(&tables, &bases, &mut context, address, from_offset).ok()?;
    let end = match *row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let base = match register {
                known if known == REGISTERS.stack => frame.stack,
                known if known == REGISTERS.frame => frame.frame?,
                _ => return None,
            };
            base.checked_add_signed(offset)?
        }
        CfaRule::Expression(_) => return None,
    };
    let word = |offset: i64| {
        let mut word = [0; 8];
        memory.read_exact_at(&mut word, end.checked_add_signed(offset)?).ok()?;
        Some(u64::from_ne_bytes(word))
    };
    let saved = |register| match row.register(register) {
        RegisterRule::Offset(offset) => word(offset),
        _ => None,
    };
    let instruction = saved(REGISTERS.back)?;
    let keeps =
        matches!(row.register(REGISTERS.frame), RegisterRule::Undefined | RegisterRule::SameValue);
    let frame = if keeps { frame.frame } else { saved(REGISTERS.frame) };
    Some(Frame { instruction, stack: end, frame })
}

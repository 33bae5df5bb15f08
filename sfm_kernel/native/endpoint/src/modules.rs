//! The binaries that are loaded in this process, by the addresses of their code.
//!
//! Allocates nothing, so that a crash handler can use it. The dynamic linker's lock, under which
//! its list is read, may be taken again by the thread that has it.

use std::ffi::{c_int, c_void, CStr};
use std::fmt;

pub struct Module<'a> {
    /// Added to the addresses in its file.
    pub base: usize,
    /// From the dynamic linker: empty for the program itself.
    pub name: &'a CStr,
    build_id: &'a [u8],
}

impl Module<'_> {
    /// The first digits of the id that its linker has written into it, which distinguishes it from
    /// a binary compiled anew in its place; empty if there is none.
    pub fn build_id(&self) -> BuildId<'_> {
        BuildId(&self.build_id[..self.build_id.len().min(BYTES)])
    }
}

/// Bytes of a build id that are shown.
const BYTES: usize = 8;

pub struct BuildId<'a>(&'a [u8]);

impl fmt::Display for BuildId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Give `use_it` the module that contains `address`; None if there is none.
pub fn find<T, F: FnOnce(&Module) -> T>(address: usize, use_it: F) -> Option<T> {
    let mut search = Search { address, use_it: Some(use_it), found: None };
    // SAFETY: the function takes this argument, and is called before this returns.
    unsafe { libc::dl_iterate_phdr(Some(visit::<T, F>), (&raw mut search).cast()) };
    search.found
}

struct Search<T, F> {
    address: usize,
    use_it: Option<F>,
    found: Option<T>,
}

unsafe extern "C" fn visit<T, F: FnOnce(&Module) -> T>(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the argument of `find`, and what dl_iterate_phdr promises: valid while this runs.
    let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<T, F>>()) };
    // SAFETY: as above.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let base = info.dlpi_addr as usize;
    let offset = search.address.wrapping_sub(base);
    let is_in = |header: &libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD
            && offset.wrapping_sub(header.p_vaddr as usize) < header.p_memsz as usize
    };
    if !headers.iter().any(is_in) {
        return 0;
    }
    // SAFETY: a text where it is not null.
    let name = unsafe { info.dlpi_name.as_ref().map_or(c"", |name| CStr::from_ptr(name)) };
    let notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    let build_id = notes.filter_map(|header| {
        let start = (base + header.p_vaddr as usize) as *const u8;
        // SAFETY: the linker has put these notes there, in a segment that is loaded.
        build_id_in(unsafe { std::slice::from_raw_parts(start, header.p_memsz as usize) })
    });
    let module = Module { base, name, build_id: build_id.into_iter().next().unwrap_or_default() };
    search.found = search.use_it.take().map(|use_it| use_it(&module));
    1
}

/// The build id among notes: elf(5), Nhdr.
fn build_id_in(mut notes: &[u8]) -> Option<&[u8]> {
    const NT_GNU_BUILD_ID: u32 = 3;
    let word = |bytes: &[u8]| bytes.first_chunk().copied().map(u32::from_ne_bytes);
    loop {
        let name_size = word(notes)? as usize;
        let size = word(notes.get(4..)?)? as usize;
        let kind = word(notes.get(8..)?)?;
        let name = notes.get(12..)?;
        let data = name.get(name_size.next_multiple_of(4)..)?;
        if kind == NT_GNU_BUILD_ID && name.get(..name_size)? == b"GNU\0" {
            return data.get(..size);
        }
        notes = data.get(size.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_in_its_binary_and_nothing_else_is() {
        let address = code_is_found_in_its_binary_and_nothing_else_is as fn() as usize;
        assert!(find(address, |module| module.name.is_empty()).unwrap());
        let of_libc = libc::getpid as *const () as usize;
        let name = find(of_libc, |module| module.name.to_string_lossy().into_owned()).unwrap();
        assert!(name.contains("libc"), "{name}");
        assert!(find(17, |_| ()).is_none());
    }

    #[test]
    fn a_build_id_is_found_among_notes() {
        let note = |kind: u32, name: &[u8], data: &[u8]| {
            let words = [name.len() as u32, data.len() as u32, kind];
            let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
            bytes.extend(name);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes.extend(data);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let other = note(1, b"GNU\0", &[1, 2, 3, 4, 5]);
        let notes = [other.clone(), note(3, b"GNU\0", &[0xab, 0xcd])].concat();
        assert_eq!(build_id_in(&notes), Some(&[0xab, 0xcd][..]));
        assert_eq!(build_id_in(&other), None);
        assert_eq!(build_id_in(&notes[..notes.len() - 4]), None);
    }
}

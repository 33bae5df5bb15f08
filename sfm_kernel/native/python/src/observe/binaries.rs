//! The line of a program's source for an address in its binary, from its debug information.
//!
//! Binaries are copied into memory, not mapped: recompiling one meanwhile must not kill the reader.
//! The libraries that parse them check their contents, and do not panic.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use addr2line::{demangle_auto, Context};
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use pyo3::prelude::*;

use crate::host::gil::without_gil;
use sfm_native::sync::lock;

/// Binaries in the cache, at most.
const CACHED: usize = 16;
/// Bytes of a binary; larger ones are not read.
const LARGEST: u64 = 1 << 30;

/// File, line (0: not known) and function of an address in a binary; None if nothing is known, or
/// the build id of the present binary does not begin with `build_id`.
#[pyfunction]
#[pyo3(signature = (path, address, build_id="", /))]
pub fn resolve(py: Python<'_>, path: PathBuf, address: u64, build_id: &str) -> Option<Line> {
    without_gil(py, || {
        let binary = binary(&path)?;
        let mut binary = lock(&binary);
        binary.build_id.starts_with(build_id).then(|| binary.line(address))?
    })
}

type Line = (Option<String>, u32, Option<String>);
type Bytes = EndianArcSlice<RunTimeEndian>;

struct Binary {
    build_id: String,
    context: Option<Context<Bytes>>,
    /// Begin, end and name of each function, in the order of their beginnings.
    functions: Vec<(u64, u64, String)>,
    known: HashMap<u64, Option<Line>>,
}

/// Identifies a version of a file: device, inode, size, time of change.
type Stamp = (u64, u64, u64, i64, i64);

fn stamp(about: &Metadata) -> Stamp {
    (about.dev(), about.ino(), about.size(), about.mtime(), about.mtime_nsec())
}

/// The binary at a path; None if there is none that can be read.
fn binary(path: &Path) -> Option<Arc<Mutex<Binary>>> {
    type Known = (PathBuf, Stamp, Option<Arc<Mutex<Binary>>>);
    static BINARIES: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    let about = fs::metadata(path).ok().filter(|about| about.is_file())?;
    let stamp = stamp(&about);
    let is_known = |known: &&Known| known.0 == path && known.1 == stamp;
    let known = lock(&BINARIES).iter().find(is_known).map(|known| known.2.clone());
    known.unwrap_or_else(|| {
        let read = (about.len() <= LARGEST).then(|| Binary::read(&fs::read(path).ok()?));
        let fresh = read.flatten().map(|binary| Arc::new(Mutex::new(binary)));
        let mut binaries = lock(&BINARIES);
        binaries.retain(|known| known.0 != path);
        if binaries.len() >= CACHED {
            binaries.remove(0);
        }
        binaries.push((path.to_owned(), stamp, fresh.clone()));
        fresh
    })
}

impl Binary {
    fn read(bytes: &[u8]) -> Option<Binary> {
        let file = object::File::parse(bytes).ok()?;
        let build_id = file.build_id().ok().flatten().unwrap_or_default();
        Some(Binary {
            build_id: build_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            context: context(&file),
            functions: functions(&file),
            known: HashMap::new(),
        })
    }

    fn line(&mut self, address: u64) -> Option<Line> {
        if let Some(known) = self.known.get(&address) {
            return known.clone();
        }
        let found = self.frame(address).or_else(|| {
            let function = self.function(address)?;
            Some((None, 0, Some(demangled(&function))))
        });
        self.known.insert(address, found.clone());
        found
    }

    /// From the debug information: among inlined functions the innermost of the program, whose
    /// source contains the call.
    fn frame(&self, address: u64) -> Option<Line> {
        let mut frames = self.context.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            let location =
                frame.location.and_then(|found| Some((found.file?.to_owned(), found.line?)));
            let Some((file, line)) = location else { continue };
            let name = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
            let is_system = is_system(Path::new(&file));
            outermost = Some((Some(file), line, name));
            if !is_system {
                break;
            }
        }
        outermost
    }

    /// From the table of symbols.
    fn function(&self, address: u64) -> Option<String> {
        let nth =
            self.functions.partition_point(|function| function.0 <= address).checked_sub(1)?;
        let (_, end, name) = &self.functions[nth];
        (address < *end).then(|| name.clone())
    }
}

/// Whether a file belongs to a compiler or a library, not to the program.
fn is_system(file: &Path) -> bool {
    file.starts_with("/usr")
        || file.components().any(|component| component.as_os_str() == "include")
}

fn demangled(name: &str) -> String {
    demangle_auto(name.into(), None).into_owned()
}

fn context(file: &object::File) -> Option<Context<Bytes>> {
    let endian = match file.is_little_endian() {
        true => RunTimeEndian::Little,
        false => RunTimeEndian::Big,
    };
    let load = |id: SectionId| -> Result<Bytes, object::Error> {
        let data = file.section_by_name(id.name()).map(|section| section.uncompressed_data());
        Ok(Bytes::new(Arc::from(&*data.transpose()?.unwrap_or_default()), endian))
    };
    file.section_by_name(SectionId::DebugInfo.name())?;
    Context::from_dwarf(Dwarf::load(load).ok()?).ok()
}

fn functions(file: &object::File) -> Vec<(u64, u64, String)> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let is_code =
        |symbol: &object::Symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition();
    let mut found: Vec<_> = symbols
        .filter(is_code)
        .filter_map(|symbol| {
            let end = symbol.address().saturating_add(symbol.size()); // the file may be damaged
            Some((symbol.address(), end, symbol.name().ok()?.to_owned()))
        })
        .collect();
    found.sort();
    found.dedup_by_key(|function| function.0);
    found
}

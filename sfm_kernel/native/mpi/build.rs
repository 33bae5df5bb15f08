//! Generates the exported functions and the constants from the tables of tools/mpi_standard.py.
//!
//! Each line of standard.txt becomes an entry `MPI_X` and its profiling twin `PMPI_X`, which call
//! the `pub unsafe fn x(…)` of a file of src/functions, or another one: see `implementation`.
//!
//! A collective's `x(…)` is in one of COLLECTIVES and returns a `Call` made from its arguments:
//! `MPI_X` runs it, `MPI_Ix` begins it for a request, and `MPI_X_init` makes a persistent request
//! of it. `MPI_Xv` calls the same `x`, with other types of buffers.
//!
//! `MPI_X_c`, if the standard has it, calls the same `x`, which gets counts as MPI_Count, arrays of
//! them as `Numbers`, and pointers to results as `Results`, of either size. If the twins differ in
//! more than that (`MPI_Op_create_c`) both are written. Arguments that belong together are one for
//! `x`: a buffer's address, count and datatype are a `UserBuffer`, see `grouped`.
//!
//! Two packages compile these sources: sfm-mpi for MPICH's ABI, and sfm-mpi-abi for the standard's,
//! with `cfg(abi)`. They differ in the table of constants, in the type of handles (src/handles.rs),
//! and in the status (src/handles/status.rs).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use prototype::{parse, Prototype};

mod prototype;

/// Types of handles, without `MPI_`.
const HANDLES: [&str; 15] = [
    "Comm",
    "Datatype",
    "Errhandler",
    "File",
    "Group",
    "Info",
    "Message",
    "Op",
    "Request",
    "Session",
    "Win",
    "T_cvar_handle",
    "T_event_registration",
    "T_pvar_handle",
    "T_pvar_session",
];

/// Files of src/collective.
const COLLECTIVES: [&str; 3] = ["arguments.rs", "reductions.rs", "neighbors.rs"];

/// Functions of the standard without an `x` of their own, and the `x` that implements them.
const OTHER_NAMES: [(&str, &str); 12] = [
    // the names before MPI-2 and MPI-3
    ("address", "get_address"),
    ("attr_delete", "comm_delete_attr"),
    ("attr_get", "comm_get_attr"),
    ("attr_put", "comm_set_attr"),
    ("errhandler_create", "comm_create_errhandler"),
    ("errhandler_get", "comm_get_errhandler"),
    ("errhandler_set", "comm_set_errhandler"),
    ("keyval_create", "comm_create_keyval"),
    ("keyval_free", "comm_free_keyval"),
    ("status_set_elements_x", "status_set_elements"),
    // An access is complete at its origin only with the target's answer.
    ("win_flush_local", "win_flush"),
    ("win_flush_local_all", "win_flush_all"),
];

/// The `x` that implements a function, and an argument that this `x` gets before the others: the
/// mode of a send, or the direction of an access to a file.
fn implementation(function: &str) -> (String, String) {
    if let Some((_, other)) = OTHER_NAMES.iter().find(|(name, _)| *name == function) {
        return ((*other).to_owned(), String::new());
    }
    let modes = [("", "Standard"), ("r", "Standard"), ("s", "Synchronous"), ("b", "Buffered")];
    for (letter, mode) in modes {
        let is_it = |name: &&str| name.replace("send", &format!("{letter}send")) == function;
        if let Some(name) = ["send", "isend", "send_init"].into_iter().find(is_it) {
            return (name.to_owned(), format!("functions::sending::SendMode::{mode}, "));
        }
    }
    for (word, direction) in [("read", "Read"), ("write", "Write")] {
        if ["file_", "file_i"].iter().any(|start| function.starts_with(&format!("{start}{word}"))) {
            // Collective accesses do the same as the others: each process moves its own data.
            let name = function.replace(word, "access");
            let name = name.strip_suffix("_all").unwrap_or(&name).to_owned();
            return (name, format!("file::access::Direction::{direction}, "));
        }
    }
    (function.to_owned(), String::new())
}

fn main() {
    let of = |name: &str| PathBuf::from(env::var(name).expect("cargo sets it"));
    let (here, out) = (of("CARGO_MANIFEST_DIR").join("../mpi"), of("OUT_DIR"));
    println!("cargo:rustc-check-cfg=cfg(abi)");
    let (mut soname, mut table) = ("libmpi.so.12", "constants.txt");
    if is_abi() {
        println!("cargo:rustc-cfg=abi");
        (soname, table) = ("libmpi_abi.so.1", "constants_abi.txt");
    }
    // Not `rustc-cdylib-link-arg`, which cargo would also give to libraries that contain this one.
    println!("cargo:rustc-link-arg=-Wl,-soname,{soname}");
    for read in
        ["build.rs", "prototype.rs", "standard.txt", table, "src/functions", "src/collective"]
    {
        println!("cargo:rerun-if-changed=../mpi/{read}");
    }
    let text = |name: &str| fs::read_to_string(here.join(name)).expect("a table of this crate");
    let functions = fs::read_dir(here.join("src/functions")).expect("src/functions").flatten();
    let written = implemented(functions.map(|file| file.path()));
    let files = COLLECTIVES.map(|name| here.join("src/collective").join(name));
    let collectives = implemented(files.into_iter());
    let entries = entries(&text("standard.txt"), &written, &collectives);
    for (name, rust) in [("constants.rs", constants(&text(table))), ("entries.rs", entries)] {
        fs::write(out.join(name), rust).expect("OUT_DIR can be written");
    }
}

/// True in the package of the standard's ABI.
fn is_abi() -> bool {
    env::var("CARGO_PKG_NAME").as_deref() == Ok("sfm-mpi-abi")
}

/// The functions in these files: name to module.
fn implemented(files: impl Iterator<Item = PathBuf>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for path in files {
        let module = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap_or_default();
        for line in text.lines().filter_map(|line| line.strip_prefix("pub unsafe fn ")) {
            let name = line.split(['(', '<']).next().unwrap_or_default().to_owned();
            if let Some(other) = found.insert(name.clone(), module.clone()) {
                panic!("{name} is written in {other}.rs and in {module}.rs");
            }
        }
    }
    found
}

fn constants(table: &str) -> String {
    let mut rust = String::new();
    for line in table.lines() {
        let [name, kind, value] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("constants.txt: {line}");
        };
        match kind {
            "int" => writeln!(rust, "pub const {name}: c_int = {value};"),
            "pointer" => writeln!(rust, "pub const {name}: isize = {value};"),
            "MPI_File" => writeln!(rust, "pub const {name}: {kind} = {value} as {kind};"),
            "MPI_Offset" => writeln!(rust, "pub const {name}: {kind} = {value};"),
            _ => writeln!(rust, "pub const {name}: {kind} = {value}_u32 as {kind};"),
        }
        .expect("a String can be written to");
    }
    rust
}

fn entries(
    table: &str,
    written: &BTreeMap<String, String>,
    collectives: &BTreeMap<String, String>,
) -> String {
    let mut rust = String::new();
    let mut inner = String::from(
        "mod call {\n    #![allow(unused_variables)] // a collective's info\n    use super::*;\n",
    );
    let mut unused: Vec<&String> = written.keys().collect();
    let all: BTreeMap<String, Prototype> =
        table.lines().map(parse).map(|found| (found.name.clone(), found)).collect();
    for prototype in all.values() {
        let large = all.get(&format!("{}_c", prototype.name));
        let small = prototype.name.strip_suffix("_c").and_then(|name| all.get(name));
        let shared = large.or(small).and_then(|twin| shared(prototype, twin));
        let base = if shared.is_some() { small.unwrap_or(prototype) } else { prototype };
        let (function, first) = implementation(&short(&base.name));
        unused.retain(|name| **name != function);
        let given = first + &shared.unwrap_or_else(|| listed(prototype, false));
        let mut body = match written.get(&function) {
            Some(module) => Some(format!("functions::{module}::{function}({given})")),
            None => collective(&function, &given, collectives),
        };
        if let Some(body) = body.as_mut().filter(|_| small.is_some() && makes_type(prototype)) {
            *body += ".and_then(|()| datatype::made_large(*newtype))";
        }
        inner += &call(prototype, body);
        for exported in [prototype.name.clone(), format!("P{}", prototype.name)] {
            if !exported.starts_with("PMPIR") {
                rust += &entry(prototype, &exported);
            }
        }
    }
    // A warning, not an error: a module may have helpers, but a name that the standard lacks may be
    // a mistake.
    for name in unused {
        println!("cargo:warning=functions/{}.rs: no function MPI_{name} exists", written[name]);
    }
    rust + &inner + "}\n"
}

/// The body of one of a collective's forms; None for any other function.
fn collective(
    function: &str,
    given: &str,
    collectives: &BTreeMap<String, String>,
) -> Option<String> {
    let (name, form) = if let Some(name) = function.strip_suffix("_init") {
        (name, "functions::collectives::prepare(comm, call, request)")
    } else if let Some(name) = function.strip_prefix('i') {
        (name, "functions::collectives::open(comm, call, request)")
    } else {
        (function, "collective::calls::block(comm, &call)")
    };
    let find = |name: &str| collectives.get_key_value(name);
    let (name, module) = find(name).or_else(|| find(name.strip_suffix('v')?))?;
    // the barrier's: comm
    let (arguments, _) = given.split_at(given.find(", comm").map_or(4, |at| at + 6));
    let call = format!("collective::{module}::{name}({arguments})");
    Some(format!("{call}.and_then(|call| {form})"))
}

/// True for a constructor of datatypes; a large-count constructor records in the datatype that it
/// made it.
fn makes_type(prototype: &Prototype) -> bool {
    let last = prototype.parameters.last();
    last.is_some_and(|(name, kind)| name == "newtype" && kind == "*mut MPI_Datatype")
}

/// The arguments of `MPI_X` and its large-count twin `MPI_X_c` for the function that implements
/// both: numbers are converted to the larger type, arrays and results are wrapped with their size.
/// None if the two differ in more than that.
fn shared(this: &Prototype, twin: &Prototype) -> Option<String> {
    if this.parameters.len() != twin.parameters.len() {
        return None;
    }
    let value = |((name, this), (_, twin)): (&(String, String), &(String, String))| {
        let wide = if this == "c_int" || twin == "MPI_Count" { twin } else { this };
        match (this.as_str(), twin.as_str()) {
            (this, twin) if this == twin => Some(name.clone()),
            ("c_int" | "MPI_Aint" | "MPI_Count", "c_int" | "MPI_Aint" | "MPI_Count") => {
                Some(format!("{name} as {wide}"))
            }
            (this, twin) => {
                let (kind, this, _) = (pointed(this)?, pointed(this)?.1, pointed(twin)?);
                let size = if this == "c_int" { "Ints" } else { "Longs" };
                let of = if kind.0 == "*const " { "Numbers" } else { "Results" };
                Some(format!("checks::{of}::{size}({name}.cast())"))
            }
        }
    };
    let values = this.parameters.iter().zip(&twin.parameters).map(value);
    Some(grouped(this, &values.collect::<Option<Vec<_>>>()?))
}

/// Arguments that belong together, as one: a buffer, a buffer of blocks, or the target of an
/// operation on a window. `values`: the value of each argument.
fn grouped(prototype: &Prototype, values: &[String]) -> String {
    let number = |kind: &str| ["c_int", "MPI_Count"].contains(&kind);
    let mut arguments = Vec::new();
    let mut nth = 0;
    while nth < values.len() {
        let kinds: Vec<&str> =
            prototype.parameters[nth..].iter().map(|(_, kind)| kind.as_str()).collect();
        let (name, first) = (&prototype.parameters[nth].0, values[nth].as_str());
        let (made, length) = match kinds[..] {
            ["*const c_void" | "*mut c_void", count, "MPI_Datatype", ..] if number(count) => {
                (format!("data::UserBuffer::new(\"{name}\", "), 3)
            }
            ["*const c_void" | "*mut c_void", counts, displs, "MPI_Datatype", ..]
                if pointed(counts).is_some() && pointed(displs).is_some() =>
            {
                (format!("collective::arguments::UserBlocks::new(\"{name}\", "), 4)
            }
            ["c_int", "MPI_Aint", count, "MPI_Datatype", ..] if number(count) => {
                ("window::target::Named::new(".into(), 4)
            }
            _ => (String::new(), 1),
        };
        arguments.push(match length {
            1 => first.to_owned(),
            _ => made + &values[nth..nth + length].join(", ") + ")",
        });
        nth += length;
    }
    arguments.join(", ")
}

/// A pointer to numbers: its kind, and the type of its target.
fn pointed(kind: &str) -> Option<(&str, &str)> {
    let (how, to) = kind.split_at(kind.find(' ')? + 1);
    ["c_int", "MPI_Aint", "MPI_Count"].contains(&to).then_some((how, to))
}

fn listed(prototype: &Prototype, typed: bool) -> String {
    let text = |(name, kind): &(String, String)| match typed {
        true => format!("{name}: {kind}"),
        false => name.clone(),
    };
    prototype.parameters.iter().map(text).collect::<Vec<_>>().join(", ")
}

fn entry(prototype: &Prototype, exported: &str) -> String {
    let Prototype { name, returns, .. } = prototype;
    format!("entry!({exported}({}) -> {returns}, call::{name});\n", listed(prototype, true))
}

/// The object whose error handler gets a failure.
fn object(prototype: &Prototype) -> String {
    let of = |kind: &str| prototype.parameters.iter().find(|(_, other)| other == kind);
    if let Some((name, _)) = of("MPI_File") {
        return format!("Some(errors::On::File({name} as usize))");
    }
    if prototype.name.starts_with("MPI_File_") {
        return "Some(errors::On::File(MPI_FILE_NULL as usize))".into();
    }
    for kind in ["Win", "Session", "Comm"] {
        if let Some((name, _)) = of(&format!("MPI_{kind}")) {
            return format!("Some(errors::On::{kind}({name}))");
        }
    }
    match of("MPI_Errhandler") {
        Some((name, _)) => format!("Some(errors::On::Handler({name}))"), // that of the new object
        None => "None".into(),
    }
}

/// The body after a check of its pointers to handles, which must not be null. Arrays of handles are
/// checked together with their length.
fn checked(prototype: &Prototype, mut body: String) -> String {
    // A null pointer leaves out a result of MPI_T's descriptions.
    let may_be_null = prototype.parameters.iter().any(|(name, _)| name == "desc");
    for (name, kind) in prototype.parameters.iter().rev().filter(|_| !may_be_null) {
        let to = kind.strip_prefix("*mut MPI_").unwrap_or_default();
        if HANDLES.contains(&to) && !name.starts_with("array_of_") {
            body = format!("checks::not_null(\"{name}\", {name}).and_then(|()| {body})");
        }
    }
    body
}

/// The common body of both twins: check that MPI runs, call, and pass a failure to the error
/// handler.
fn call(prototype: &Prototype, body: Option<String>) -> String {
    let Prototype { early, name, returns, .. } = prototype;
    let on = object(prototype);
    let value = returns != "c_int" || name.ends_with("_toint");
    let body = match body {
        Some(body) => checked(prototype, body),
        // A file's handle is a number that looks like a pointer (src/file/mod.rs).
        None if is_conversion(prototype) => {
            format!("{} as usize as u32 as isize as {returns}", prototype.parameters[0].0)
        }
        None => panic!("no file of src/functions has {name}"),
    };
    let body = match (value, early) {
        (true, _) => body,
        (false, true) if name.starts_with("MPI_T_") => {
            format!("tool::answer(\"{name}\", || {body})")
        }
        (false, true) => format!("raising::answer(\"{name}\", {on}, {body})"),
        (false, false) => format!(
            "match world::must_run(\"{name}\") {{\n            Ok(()) => \
             raising::answer(\"{name}\", {on}, {body}),\n            \
             Err(failure) => raising::raise(failure, \"{name}\", None),\n        }}"
        ),
    };
    let parameters = listed(prototype, true);
    format!(
        "    pub unsafe extern \"C\" fn {name}({parameters}) -> {returns} {{\n        \
         {body}\n    }}\n"
    )
}

/// `MPI_Comm_c2f` and the like: a handle is the same number in Fortran.
fn is_conversion(prototype: &Prototype) -> bool {
    let ends = ["_c2f", "_f2c", "_toint", "_fromint"];
    ends.iter().any(|end| prototype.name.ends_with(end))
        && !prototype.name.starts_with("MPI_Status")
}

/// `MPI_Comm_rank` is written as `comm_rank`.
fn short(name: &str) -> String {
    name.split_once('_').expect("MPI_").1.to_lowercase()
}

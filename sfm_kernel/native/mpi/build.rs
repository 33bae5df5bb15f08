//! Makes the exported functions and the constants from the tables of tools/mpi_standard.py.
//!
//! For each line of standard.txt there is an entry `MPI_X` and its profiling twin `PMPI_X`. Where
//! a file of src/functions has `pub unsafe fn x(…)`, both call it; otherwise they say which
//! function is not there yet. So a function is added by writing it, and nowhere else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

const SONAME: &str = "libmpi.so.12";

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
    for read in ["build.rs", "standard.txt", "constants.txt", "src/functions"] {
        println!("cargo:rerun-if-changed={read}");
    }
    let text = |name: &str| fs::read_to_string(here.join(name)).expect("a table of this crate");
    let written = implemented(&here.join("src/functions"));
    write(&out.join("constants.rs"), &constants(&text("constants.txt")));
    write(&out.join("entries.rs"), &entries(&text("standard.txt"), &written));
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("OUT_DIR can be written");
}

/// The functions that are there: name to module.
fn implemented(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for file in fs::read_dir(folder).expect("src/functions").flatten() {
        let path = file.path();
        let module = path.file_stem().expect("a file").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap_or_default();
        for line in text.lines().filter_map(|line| line.strip_prefix("pub unsafe fn ")) {
            let name = line.split(['(', '<']).next().unwrap_or_default().to_owned();
            if let Some(other) = found.insert(name.clone(), module.clone()) {
                panic!("{name} is written in functions/{other}.rs and functions/{module}.rs");
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

struct Prototype {
    early: bool,
    name: String,
    returns: String,
    /// Name and type in Rust.
    parameters: Vec<(String, String)>,
}

fn entries(table: &str, written: &BTreeMap<String, String>) -> String {
    let mut rust = String::new();
    let mut inner = String::from("mod call {\n    use super::*;\n");
    let mut unused: Vec<&String> = written.keys().collect();
    for line in table.lines() {
        let prototype = parse(line);
        let short = short(&prototype.name);
        unused.retain(|name| **name != short);
        inner += &call(&prototype, written.get(&short), &short);
        for twin in [prototype.name.clone(), format!("P{}", prototype.name)] {
            if !twin.starts_with("PMPIR") {
                rust += &entry(&prototype, &twin);
            }
        }
    }
    // Not an error: a module may have helpers; but a name that the standard lacks is worth a word.
    for name in unused {
        println!("cargo:warning=functions/{}.rs: no function MPI_{name} exists", written[name]);
    }
    rust + &inner + "}\n"
}

/// `MPI_Comm_rank` is written as `comm_rank`.
fn short(name: &str) -> String {
    name.split_once('_').expect("MPI_").1.to_lowercase()
}

fn listed(prototype: &Prototype, typed: bool) -> String {
    let one = |(name, kind): &(String, String)| match typed {
        true => format!("{name}: {kind}"),
        false => name.clone(),
    };
    prototype.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn entry(prototype: &Prototype, exported: &str) -> String {
    let Prototype { name, returns, .. } = prototype;
    format!("entry!({exported}({}) -> {returns}, call::{name});\n", listed(prototype, true))
}

/// What both twins do: look whether MPI runs, call, and hand a failure to the error handler.
fn call(prototype: &Prototype, module: Option<&String>, short: &str) -> String {
    let Prototype { early, name, returns, .. } = prototype;
    let comm = prototype.parameters.iter().find(|(_, kind)| kind == "MPI_Comm");
    let on = comm.map_or("None".into(), |(name, _)| format!("Some({name})"));
    let value = returns != "c_int" || name.ends_with("_toint");
    let body = match module {
        Some(module) => format!("functions::{module}::{short}({})", listed(prototype, false)),
        // A file's handle is a pointer, and there is only the null one.
        None if is_conversion(prototype) => {
            format!("{} as isize as {returns}", prototype.parameters[0].0)
        }
        None if value => panic!("{name} cannot return an error: write it"),
        None => "Err(errors::missing())".into(),
    };
    let body = match (value, early) {
        (true, _) => body,
        (false, true) => format!("errors::answer(\"{name}\", {on}, {body})"),
        (false, false) => format!(
            "match world::must_run(\"{name}\") {{\n            Ok(()) => \
             errors::answer(\"{name}\", {on}, {body}),\n            \
             Err(failure) => failure.raise(\"{name}\", None),\n        }}"
        ),
    };
    let parameters = listed(prototype, true);
    let allow = if module.is_none() && !is_conversion(prototype) {
        "    #[allow(unused_variables)]\n"
    } else {
        ""
    };
    format!(
        "{allow}    pub unsafe extern \"C\" fn {name}({parameters}) -> {returns} {{\n        \
         {body}\n    }}\n"
    )
}

/// `MPI_Comm_c2f` and its like: a handle is the same number in Fortran.
fn is_conversion(prototype: &Prototype) -> bool {
    let ends = ["_c2f", "_f2c", "_toint", "_fromint"];
    ends.iter().any(|end| prototype.name.ends_with(end))
        && !prototype.name.starts_with("MPI_Status")
}

fn parse(line: &str) -> Prototype {
    let (when, prototype) = line.split_once(' ').expect("standard.txt");
    let (head, rest) = prototype.split_once('(').expect("standard.txt");
    let (returns, name) = head.rsplit_once(' ').expect("standard.txt");
    let parameters = rest.trim_end_matches(')').split(", ");
    Prototype {
        early: when == "early",
        name: name.to_owned(),
        returns: rust_type(returns, ""),
        // What follows an ellipsis is not looked at, and the caller removes it again.
        parameters: parameters
            .filter(|one| !["void", "..."].contains(one))
            .map(parameter)
            .collect(),
    }
}

/// `const int counts[]` is `counts: *const c_int`.
fn parameter(text: &str) -> (String, String) {
    let brackets = text.find('[').unwrap_or(text.len());
    let (text, array) = text.split_at(brackets);
    let (kind, name) = text.rsplit_once(' ').expect("a parameter has a type");
    let name = if name == "type" || name == "fn" { format!("{name}_") } else { name.to_owned() };
    (name, rust_type(kind, array))
}

fn rust_type(c: &str, array: &str) -> String {
    let constant = c.starts_with("const ");
    let base = c.trim_start_matches("const ").trim_end_matches('*');
    let stars = c.len() - c.trim_end_matches('*').len() + usize::from(!array.is_empty());
    let rust = match base {
        "int" => "c_int",
        "double" => "f64",
        "char" => "c_char",
        "void" => "c_void",
        other => other,
    };
    if base.ends_with("_function") {
        return rust.to_owned(); // a pointer to it, which may be null
    }
    if array == "[][3]" {
        return format!("*mut [{rust}; 3]");
    }
    let first = if constant { "*const " } else { "*mut " };
    match stars {
        0 => rust.to_owned(),
        one => "*mut ".repeat(one - 1) + first + rust,
    }
}

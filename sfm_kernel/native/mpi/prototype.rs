//! Reads the lines of standard.txt, which are prototypes in C.

/// A function of the standard.
pub struct Prototype {
    /// It may be called before MPI_Init and after MPI_Finalize.
    pub early: bool,
    pub name: String,
    pub returns: String,
    /// Name and type in Rust.
    pub parameters: Vec<(String, String)>,
}

/// A line of standard.txt.
pub fn parse(line: &str) -> Prototype {
    let (when, prototype) = line.split_once(' ').expect("standard.txt");
    let (head, rest) = prototype.split_once('(').expect("standard.txt");
    let (returns, name) = head.rsplit_once(' ').expect("standard.txt");
    let parameters = rest.trim_end_matches(')').split(", ");
    Prototype {
        early: when == "early",
        name: name.to_owned(),
        returns: rust_type(returns, ""),
        // Arguments behind an ellipsis are ignored, and the caller removes them.
        parameters: parameters
            .filter(|text| !["void", "..."].contains(text))
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
    if base.ends_with("_function") || base.ends_with("_function_c") {
        return rust.to_owned(); // a pointer to it, which may be null
    }
    if array == "[][3]" {
        return format!("*mut [{rust}; 3]");
    }
    let first = if constant { "*const " } else { "*mut " };
    match stars {
        0 => rust.to_owned(),
        levels => "*mut ".repeat(levels - 1) + first + rust,
    }
}

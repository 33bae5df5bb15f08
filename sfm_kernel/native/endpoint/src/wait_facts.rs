//! The facts of a waiting call, for observers: Python's notation for values, JSON for the rest. See
//! `sfm_kernel/endpoint/seen.py`, `facts`.

use serde_json::{json, Value};

use crate::name::Name;

/// Characters of a value that are shown.
const LONGEST: usize = 60;

/// A text as Python writes it.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c == quote => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push(quote);
    quoted
}

/// Bytes as Python writes them.
pub fn quoted_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::from("b'");
    for &c in bytes.iter().take(LONGEST) {
        match c {
            b'\\' | b'\'' => quoted.extend(['\\', c as char]),
            b' '..=b'~' => quoted.push(c as char),
            _ => quoted.push_str(&format!("\\x{c:02x}")),
        }
    }
    quoted.push('\'');
    quoted
}

/// A value as it was written, shortened for a table.
pub fn short(text: String) -> String {
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 3).chain("...".chars()).collect()
}

/// One condition of a template as observers see it: its attribute, the value, and whether that is
/// no value but something that only the process itself can judge.
pub type Condition = (String, String, bool);

/// The facts of a wait. `peers`: the processes that can end it, all of them together if `every`;
/// None if any process can. `context_id`: in hexadecimal digits, empty for the user's messages.
pub fn facts(
    kind: &str,
    peers: Option<&[Name]>,
    every: bool,
    template: &[Condition],
    context_id: &str,
    purpose: &str,
) -> Value {
    json!({
        "kind": kind, "peers": peers, "known": 0.0, "all": every, "template": template,
        "context_id": context_id, "purpose": purpose,
    })
}

/// The facts of an unsuccessful poll: its text beside the facts of a wait for the same.
pub fn for_poll(text: &str, facts: &str) -> String {
    let mut facts: Value = serde_json::from_str(facts).unwrap_or_else(|_| json!({}));
    facts["text"] = text.into();
    facts.to_string()
}

/// Why an observer has ended a call: see `sfm_kernel/observe/deadlocks.py`, `judge`.
pub fn judgement_text(judgement: &str) -> String {
    let facts: Value = serde_json::from_str(judgement).unwrap_or_default();
    facts["why"].as_str().unwrap_or("nothing can end this call: see who waits for whom").to_owned()
}

/// The call as observers see it.
pub fn call(function: &str, template: &[Condition]) -> String {
    let shown: Vec<_> =
        template.iter().map(|(name, expected, _)| format!("{name}={expected}")).collect();
    format!("{function}({})", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_python_writes_them() {
        assert_eq!(quoted("it's"), "\"it's\"");
        assert_eq!(quoted("a\n\\\u{1}"), "'a\\n\\\\\\x01'");
        assert_eq!(quoted_bytes(b"a'\0"), "b'a\\'\\x00'");
        assert_eq!(judgement_text(r#"{"cycle": [0, 1], "why": "Deadlock."}"#), "Deadlock.");
        assert!(judgement_text("damaged").contains("nothing can end"));
        assert_eq!(short("x".repeat(100)).len(), 60);
        let template =
            [("tag".to_owned(), quoted("x"), false), ("n".to_owned(), "1".into(), false)];
        assert_eq!(call("recv", &template), "recv(tag='x', n=1)");
    }
}

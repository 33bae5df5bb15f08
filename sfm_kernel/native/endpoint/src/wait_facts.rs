//! What observers are told of a call, in their notation: Python's for values, JSON for the rest.
//! See `sfm_kernel/endpoint/seen.py`, `facts`.

use serde_json::{json, Value};

use crate::name::Name;

/// Characters of a value that are shown.
const LONGEST: usize = 60;

/// A text as Python writes it.
pub fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut quoted = String::from(quote);
    for one in text.chars() {
        match one {
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            one if one == quote => quoted.extend(['\\', one]),
            one if one.is_control() => quoted.push_str(&format!("\\x{:02x}", one as u32)),
            one => quoted.push(one),
        }
    }
    quoted.push(quote);
    quoted
}

/// Bytes as Python writes them.
pub fn quoted_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::from("b'");
    for &one in bytes.iter().take(LONGEST) {
        match one {
            b'\\' | b'\'' => quoted.extend(['\\', one as char]),
            b' '..=b'~' => quoted.push(one as char),
            _ => quoted.push_str(&format!("\\x{one:02x}")),
        }
    }
    quoted.push('\'');
    quoted
}

/// A value as it was written, short enough for a table.
pub fn short(text: String) -> String {
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 3).chain("...".chars()).collect()
}

/// One condition of a template as observers are told it: its attribute, the value that is wanted,
/// and whether that is no value but something that only the process itself can judge.
pub type Condition = (String, String, bool);

/// What a receive waits for. `peers`: who can end the wait; None where anybody can.
pub fn of_receive(peers: Option<&[Name]>, template: &[Condition], purpose: &str) -> String {
    of_wait("recv", peers, false, template, purpose)
}

/// What a wait for others to join waits for.
pub fn of_joining(missing: &[Name], purpose: &str) -> String {
    of_wait("join", Some(missing), true, &[], purpose)
}

fn of_wait(
    kind: &str,
    peers: Option<&[Name]>,
    every: bool,
    template: &[Condition],
    purpose: &str,
) -> String {
    let facts = json!({
        "kind": kind, "peers": peers, "known": 0.0, "all": every, "template": template,
        "context_id": "", "purpose": purpose,
    });
    facts.to_string()
}

/// What a call has asked for in vain: its text beside what a wait for it would tell.
pub fn of_poll(text: &str, facts: &str) -> String {
    let mut told: Value = serde_json::from_str(facts).unwrap_or_else(|_| json!({}));
    told["text"] = text.into();
    told.to_string()
}

/// Why an observer has ended a call: see `sfm_kernel/observe/watch.py`, `judge`.
pub fn of_judgement(judgement: &str) -> String {
    let told: Value = serde_json::from_str(judgement).unwrap_or_default();
    told["why"].as_str().unwrap_or("nothing can end this call: see who waits for whom").to_owned()
}

/// The call as it is shown.
pub fn call(function: &str, template: &[Condition]) -> String {
    let shown: Vec<_> =
        template.iter().map(|(name, wanted, _)| format!("{name}={wanted}")).collect();
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
        assert_eq!(of_judgement(r#"{"cycle": [0, 1], "why": "Deadlock."}"#), "Deadlock.");
        assert!(of_judgement("damaged").contains("nothing can end"));
        assert_eq!(short("x".repeat(100)).len(), 60);
        let template =
            [("tag".to_owned(), quoted("x"), false), ("n".to_owned(), "1".into(), false)];
        assert_eq!(call("recv", &template), "recv(tag='x', n=1)");
    }
}

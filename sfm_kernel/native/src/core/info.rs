//! What observers are told of a process: what its program says of itself, and its network thread of
//! lines to other sites. One JSON object in its segment.

use std::sync::{Mutex, PoisonError};

use super::Core;

/// What the segment has room for (`Shared::info`).
const ROOM: usize = 4096;

#[derive(Default)]
pub(super) struct Info(Mutex<(String, String)>);

impl Core {
    /// What the program says: a JSON object.
    pub fn publish_info(&self, info: &str) {
        let mut members = self.info.0.lock().unwrap_or_else(PoisonError::into_inner);
        members.0 = info.to_owned();
        self.shared().info.write(&joined(&members.0, &members.1));
    }

    /// What the network thread says: members of that object, `"lines":[…]`. Written if it is new.
    pub fn publish_connections(&self, lines: &str) {
        let mut members = self.info.0.lock().unwrap_or_else(PoisonError::into_inner);
        if members.1 != lines {
            members.1 = lines.to_owned();
            self.shared().info.write(&joined(&members.0, &members.1));
        }
    }
}

/// Without the lines where there is no room for both.
fn joined(info: &str, lines: &str) -> String {
    match info.strip_suffix('}') {
        Some(open) if !lines.is_empty() && info.len() + lines.len() < ROOM => {
            let comma = if open.trim_end().ends_with('{') { "" } else { "," };
            format!("{open}{comma}{lines}}}")
        }
        _ => info.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_a_member_of_what_is_told() {
        assert_eq!(joined(r#"{"name":"A"}"#, r#""lines":[]"#), r#"{"name":"A","lines":[]}"#);
        assert_eq!(joined("{}", r#""lines":[]"#), r#"{"lines":[]}"#);
        assert_eq!(joined(r#"{"name":"A"}"#, ""), r#"{"name":"A"}"#);
        let long = format!("{{\"name\":\"{}\"}}", "x".repeat(ROOM - 20));
        assert_eq!(joined(&long, r#""lines":[]"#), long);
    }
}

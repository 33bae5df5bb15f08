//! A process's description of itself: its program's description, and its network thread's
//! connections to other sites. One JSON object in its segment.

use std::sync::Mutex;

use super::Core;
use crate::sync::lock;

/// Bytes that the segment has room for (`Shared::info`).
const ROOM: usize = 4096;

#[derive(Default)]
pub(super) struct Info(Mutex<(String, String)>);

impl Core {
    /// Publish the program's description: a JSON object.
    pub fn publish_info(&self, info: &str) {
        let mut members = lock(&self.info.0);
        members.0 = info.to_owned();
        self.shared().info.write(&joined(&members.0, &members.1));
    }

    /// Publish the network thread's members of that object, `"lines":[…]`. Written only if they
    /// have changed.
    pub fn publish_connections(&self, connections: &str) {
        let mut members = lock(&self.info.0);
        if members.1 != connections {
            members.1 = connections.to_owned();
            self.shared().info.write(&joined(&members.0, &members.1));
        }
    }
}

/// Without the connections if there is no room for both.
fn joined(info: &str, connections: &str) -> String {
    match info.strip_suffix('}') {
        Some(open) if !connections.is_empty() && info.len() + connections.len() < ROOM => {
            let comma = if open.trim_end().ends_with('{') { "" } else { "," };
            format!("{open}{comma}{connections}}}")
        }
        _ => info.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_a_member_of_the_info() {
        assert_eq!(
            joined(r#"{"name":"A"}"#, r#""connections":[]"#),
            r#"{"name":"A","connections":[]}"#
        );
        assert_eq!(joined("{}", r#""connections":[]"#), r#"{"connections":[]}"#);
        assert_eq!(joined(r#"{"name":"A"}"#, ""), r#"{"name":"A"}"#);
        let long = format!("{{\"name\":\"{}\"}}", "x".repeat(ROOM - 20));
        assert_eq!(joined(&long, r#""connections":[]"#), long);
    }
}

//! JSON, written value by value.

use std::fmt::Write;

#[derive(Default)]
pub struct Json(pub String);

impl Json {
    fn comma(&mut self) {
        if !self.0.is_empty() && !self.0.ends_with(['{', '[', ':']) {
            self.0.push(',');
        }
    }

    fn name(&mut self, name: &str) {
        self.text(name);
        self.0.push(':');
    }

    pub fn text(&mut self, text: &str) {
        self.comma();
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                c if (c as u32) < 0x20 => write!(self.0, "\\u{:04x}", c as u32).expect("memory"),
                c => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    /// Write `value` without quotes: a number, true, null.
    pub fn raw(&mut self, name: &str, value: impl std::fmt::Display) {
        self.name(name);
        write!(self.0, "{value}").expect("memory");
    }

    pub fn string(&mut self, name: &str, value: &str) {
        self.name(name);
        self.text(value);
    }

    pub fn maybe(&mut self, name: &str, value: Option<impl std::fmt::Display>) {
        match value {
            Some(value) => self.raw(name, value),
            None => self.raw(name, "null"),
        }
    }

    /// Write two brackets, and between them what `fill` writes.
    pub fn within(
        &mut self,
        name: Option<&str>,
        brackets: [char; 2],
        fill: impl FnOnce(&mut Json),
    ) {
        match name {
            Some(name) => self.name(name),
            None => self.comma(),
        }
        self.0.push(brackets[0]);
        fill(self);
        self.0.push(brackets[1]);
    }

    pub fn object(&mut self, name: Option<&str>, fill: impl FnOnce(&mut Json)) {
        self.within(name, ['{', '}'], fill);
    }

    pub fn list(&mut self, name: &str, fill: impl FnOnce(&mut Json)) {
        self.within(Some(name), ['[', ']'], fill);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_json() {
        let mut out = Json::default();
        out.object(None, |out| {
            out.string("a \"name\"", "line\n\\");
            out.list("empty", |_| {});
            out.list("two", |out| {
                out.object(None, |out| out.raw("x", 1));
                out.object(None, |out| out.maybe("y", None::<u8>));
            });
        });
        let expected = r#"{"a \"name\"":"line\u000a\\","empty":[],"two":[{"x":1},{"y":null}]}"#;
        assert_eq!(out.0, expected);
    }
}

//! A crash report for `sfm_kernel/mpi/launch/reports.py`, made without the heap.

use std::fmt::{self, Write};

use super::{About, CELL, ROOM};
use crate::modules;

pub struct Report {
    pub bytes: [u8; ROOM],
    pub used: usize,
}

/// Bytes that stay free: for a character, and a report's end.
const END: usize = 8;

impl Report {
    pub fn write(&mut self, about: &About, frames: &[usize]) -> fmt::Result {
        let status = 128 + about.signal;
        let kind = if about.signal == libc::SIGINT { "interrupted" } else { "crashed" };
        write!(self, "[\"{kind}\", {status}, \"")?;
        let _ = self.write_text(about, frames);
        self.put(b"\"]")
    }

    fn write_text(&mut self, about: &About, frames: &[usize]) -> fmt::Result {
        let About { signal, code, address, .. } = about;
        let (full, check) = (i32::from(about.is_stack_full), about.check.map_or(-1, i32::from));
        writeln!(Text(self), "{signal} {code} {address} {full} {check}")?;
        Text(self).write_str(CELL.get().map_or("", String::as_str))?;
        Text(self).write_str("\n")?;
        for frame in frames {
            let written = modules::find(*frame, |module| {
                let mut line = Text(self);
                write!(line, "{} @{} ", frame - module.base, module.build_id())?;
                match module.name.is_empty() {
                    true => line.write_program(),
                    false => line.write_bytes(module.name.to_bytes()),
                }?;
                line.write_str("\n")
            });
            written.unwrap_or(Ok(()))?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> fmt::Result {
        let room = self.bytes.get_mut(self.used..).ok_or(fmt::Error)?;
        room.get_mut(..bytes.len()).ok_or(fmt::Error)?.copy_from_slice(bytes);
        self.used += bytes.len();
        Ok(())
    }
}

impl Write for Report {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.put(text.as_bytes())
    }
}

/// Text inside a string of JSON.
struct Text<'a>(&'a mut Report);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_bytes(text.as_bytes())
    }
}

impl Text<'_> {
    /// Write escaped; invalid bytes become question marks.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        for chunk in bytes.utf8_chunks() {
            let invalid = if chunk.invalid().is_empty() { "" } else { "?" };
            for c in chunk.valid().chars().chain(invalid.chars()) {
                if self.0.used + END > ROOM {
                    return Err(fmt::Error);
                }
                match c {
                    '"' | '\\' => write!(self.0, "\\{c}")?,
                    c if c < ' ' => write!(self.0, "\\u{:04x}", c as u32)?,
                    c => write!(self.0, "{c}")?,
                }
            }
        }
        Ok(())
    }

    /// Write the path of the program itself.
    fn write_program(&mut self) -> fmt::Result {
        let mut path = [0u8; 4096];
        let link = c"/proc/self/exe".as_ptr();
        // SAFETY: the buffer is as long as said.
        let length = unsafe { libc::readlink(link, path.as_mut_ptr().cast(), path.len()) };
        self.write_bytes(&path[..usize::try_from(length).unwrap_or(0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_json_whatever_is_in_it() {
        let address = a_report_is_json_whatever_is_in_it as fn() as usize;
        let about = About { signal: 11, code: 1, address: 16, ..About::NOTHING };
        let mut report = Report { bytes: [0; ROOM], used: 0 };
        report.write(&about, &[address, 17, address]).unwrap();
        let text = std::str::from_utf8(&report.bytes[..report.used]).unwrap();
        assert!(text.starts_with("[\"crashed\", 139, \"11 1 16 0 -1\\u000a"), "{text}");
        assert_eq!(text.matches(" @").count(), 2, "{text}");
        let mut report = Report { bytes: [0; ROOM], used: 0 };
        Text(&mut report).write_bytes(b"a\"b\\c\t\xff\xc3\xa4").unwrap();
        let text = std::str::from_utf8(&report.bytes[..report.used]).unwrap();
        assert_eq!(text, "a\\\"b\\\\c\\u0009?ä");
    }

    #[test]
    fn a_report_that_is_too_long_ends_well() {
        let address = a_report_that_is_too_long_ends_well as fn() as usize;
        let mut report = Report { bytes: [0; ROOM], used: 0 };
        report.write(&About::NOTHING, &[address; 10_000]).unwrap();
        assert!(report.bytes[..report.used].ends_with(b"\"]"));
    }
}

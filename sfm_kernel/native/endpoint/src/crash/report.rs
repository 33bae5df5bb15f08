//! What is told of a crash: one report of `sfm_kernel/mpi/launch/reports.py`, made without memory of
//! the heap.

use std::fmt::{self, Write};

use super::{About, CELL, ROOM};
use crate::modules;

pub struct Report {
    pub bytes: [u8; ROOM],
    pub used: usize,
}

/// Bytes that are kept free: for a character, and a report's end.
const END: usize = 8;

impl Report {
    pub fn write(&mut self, about: &About, frames: &[usize]) -> fmt::Result {
        let status = 128 + about.signal;
        write!(self, "[\"crashed\", {status}, \"")?;
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

/// Inside a text of JSON.
struct Text<'a>(&'a mut Report);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.write_bytes(text.as_bytes())
    }
}

impl Text<'_> {
    /// Escaped; bytes that are no text become question marks.
    fn write_bytes(&mut self, bytes: &[u8]) -> fmt::Result {
        for chunk in bytes.utf8_chunks() {
            let invalid = if chunk.invalid().is_empty() { "" } else { "?" };
            for one in chunk.valid().chars().chain(invalid.chars()) {
                if self.0.used + END > ROOM {
                    return Err(fmt::Error);
                }
                match one {
                    '"' | '\\' => write!(self.0, "\\{one}")?,
                    one if one < ' ' => write!(self.0, "\\u{:04x}", one as u32)?,
                    one => write!(self.0, "{one}")?,
                }
            }
        }
        Ok(())
    }

    /// The path of the program itself.
    fn write_program(&mut self) -> fmt::Result {
        let mut path = [0u8; 4096];
        let link = c"/proc/self/exe".as_ptr();
        // SAFETY: room for so many bytes.
        let length = unsafe { libc::readlink(link, path.as_mut_ptr().cast(), path.len()) };
        self.write_bytes(&path[..usize::try_from(length).unwrap_or(0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_json_whatever_is_in_it() {
        let here = a_report_is_json_whatever_is_in_it as fn() as usize;
        let about = About { signal: 11, code: 1, address: 16, ..About::NOTHING };
        let mut report = Report { bytes: [0; ROOM], used: 0 };
        report.write(&about, &[here, 17, here]).unwrap();
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
        let here = a_report_that_is_too_long_ends_well as fn() as usize;
        let mut report = Report { bytes: [0; ROOM], used: 0 };
        report.write(&About::NOTHING, &[here; 10_000]).unwrap();
        assert!(report.bytes[..report.used].ends_with(b"\"]"));
    }
}

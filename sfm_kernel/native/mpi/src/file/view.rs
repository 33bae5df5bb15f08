//! Views: the bytes of a file that are its data, and their order.
//!
//! Filetypes follow each other from the displacement on, one extent apart. The filetype's layout
//! stays a tree (datatype/layout.rs), so a view of a million runs takes no more memory than its
//! description. An offset in the data is in bytes, without the gaps.

use std::ops::Range;
use std::sync::Arc;

use super::representation::Representation;
use crate::datatype::layout::{Layout, Visitor};
use crate::datatype::{self, Held};
use crate::errors::{fail, Answer};
use crate::handles::*;

pub struct View {
    pub displacement: MPI_Offset,
    /// As the program gave them.
    pub etype: Held,
    pub filetype: Held,
    pub representation: Representation,
    /// Bytes of an etype's data in the file.
    pub unit: usize,
    /// One filetype in the file: its layout, the bytes of its data, and its extent.
    tile: Arc<Layout>,
    tile_bytes: usize,
    extent: isize,
}

impl View {
    /// The initial view: the file's bytes.
    pub fn bytes() -> View {
        let byte = || datatype::get(MPI_BYTE).expect("predefined");
        View::new(0, byte(), byte(), Representation::Native, true).expect("bytes are bytes")
    }

    /// The view that MPI_File_set_view describes; with `is_written` it must not contain a byte
    /// twice.
    pub fn new(
        displacement: MPI_Offset,
        etype: Held,
        filetype: Held,
        representation: Representation,
        is_written: bool,
    ) -> Answer<View> {
        let (element, tile) = (representation.in_file(&etype)?, representation.in_file(&filetype)?);
        if element.size == 0 {
            let text = format!("the etype ({}) has no data; positions count etypes", etype.label());
            return Err(fail(MPI_ERR_ARG, text));
        }
        if tile.size % element.size != 0 {
            let text = format!(
                "the filetype ({}) has {} bytes, which is not a multiple of the etype's ({}) {}; \
                build it from items of the etype",
                filetype.label(),
                tile.size,
                etype.label(),
                element.size
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
        for (name, datatype) in [("etype", &element), ("filetype", &tile)] {
            in_order(name, &datatype.layout, is_written)?;
        }
        Ok(View {
            displacement,
            etype,
            filetype,
            representation,
            unit: element.size,
            tile: tile.layout.clone(),
            tile_bytes: tile.size,
            extent: tile.extent,
        })
    }

    /// The bytes of this many etypes.
    pub fn bytes_to(&self, etypes: MPI_Offset) -> Answer<usize> {
        usize::try_from(etypes).ok().and_then(|at| at.checked_mul(self.unit)).ok_or_else(|| {
            let text = format!("argument offset is {etypes}; it is in etypes, from 0 on");
            fail(MPI_ERR_ARG, text)
        })
    }

    /// True if the data has no gaps.
    pub fn is_dense(&self) -> bool {
        self.tile.as_run().is_some_and(|(_, bytes)| bytes as isize == self.extent)
    }

    /// Visit the runs of the file that hold this range of the data, in order.
    pub fn visit(&self, range: Range<usize>, visitor: &mut impl Visitor) {
        if range.is_empty() || self.tile_bytes == 0 {
            return;
        }
        let first = range.start / self.tile_bytes;
        let base = self.displacement as isize + first as isize * self.extent;
        let (start, end) =
            (range.start - first * self.tile_bytes, range.end - first * self.tile_bytes);
        let tiles = end.div_ceil(self.tile_bytes);
        Layout::repeated(&self.tile, 0, tiles, self.extent).visit(base, start..end, visitor);
    }

    /// Refuse a range of the data whose end exceeds the range of offsets.
    pub fn check_reach(&self, start: usize, bytes: usize) -> Answer {
        let high = self.tile.bounds().map_or(0, |(_, high)| high);
        let tiles = start.checked_add(bytes).map(|end| end / self.tile_bytes.max(1));
        let far = tiles.and_then(|tiles| {
            let far = isize::try_from(tiles).ok()?.checked_mul(self.extent)?;
            far.checked_add(high)?.checked_add(self.displacement as isize)
        });
        let beyond = || fail(MPI_ERR_ARG, "the access ends beyond 2^63 bytes; give a lower offset");
        far.map(|_| ()).ok_or_else(beyond)
    }

    /// The position in the file of this byte of the data.
    pub fn position_of(&self, at: usize) -> MPI_Offset {
        struct First(MPI_Offset);
        impl Visitor for First {
            fn run(&mut self, at: isize, _: usize) {
                self.0 = at as MPI_Offset;
            }
        }
        let mut first = First(self.displacement);
        self.visit(at..at + 1, &mut first);
        first.0
    }

    /// The bytes of data before this position in the file.
    pub fn data_before(&self, end: MPI_Offset) -> usize {
        struct Before {
            end: isize,
            bytes: usize,
        }
        impl Visitor for Before {
            fn run(&mut self, at: isize, bytes: usize) {
                self.bytes += bytes.min((self.end - at).max(0) as usize);
            }
        }
        let rest = (end - self.displacement) as isize;
        let Some((_, high)) = self.tile.bounds() else { return 0 };
        let tiles = match self.extent {
            1.. if rest >= high => (rest - high) / self.extent + 1,
            _ => 0,
        };
        let mut before = Before { end: rest - tiles * self.extent, bytes: 0 };
        self.tile.visit(0, 0..self.tile_bytes, &mut before);
        tiles as usize * self.tile_bytes + before.bytes
    }
}

/// Checks the order of a type's runs.
struct Order {
    last: isize,
    end: isize,
    goes_back: bool,
    overlaps: bool,
}

impl Visitor for Order {
    fn run(&mut self, at: isize, bytes: usize) {
        self.goes_back |= at < self.last;
        self.overlaps |= at < self.end;
        (self.last, self.end) = (at, at + bytes as isize);
    }

    fn runs(&mut self, at: isize, bytes: usize, stride: isize, count: usize) {
        // The others relate to each other as the first two do.
        for nth in 0..count.min(2) as isize {
            self.run(at + nth * stride, bytes);
        }
        if count > 2 {
            self.run(at + (count as isize - 1) * stride, bytes);
        }
    }
}

/// Refuse types that the standard excludes from views: negative displacements, decreasing
/// displacements, and, in a file that is written, overlapping bytes.
fn in_order(name: &str, layout: &Layout, is_written: bool) -> Answer {
    let mut order = Order { last: isize::MIN, end: isize::MIN, goes_back: false, overlaps: false };
    layout.visit(0, 0..layout.bytes(), &mut order);
    let wrong = if layout.bounds().is_some_and(|(low, _)| low < 0) {
        "has data before its own beginning (a negative displacement)"
    } else if order.goes_back {
        "goes backwards: the displacements of its data must not decrease"
    } else if order.overlaps && is_written {
        "has overlapping data, which a file opened for writing does not allow"
    } else {
        return Ok(());
    };
    Err(fail(MPI_ERR_IO, format!("the {name} {wrong}; build it from blocks in the file's order")))
}

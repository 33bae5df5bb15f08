//! Views: which bytes of a file are its data, and in which order.
//!
//! The filetype is laid out again and again from the displacement on, each time its extent further.
//! Its layout stays the tree that it is (datatype/layout.rs), so a view of a million pieces takes
//! no more memory than its description. A place in the data is a number of bytes, without the gaps.

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
    /// One filetype in the file: where its data lies, how much it is, and how far the next one is.
    tile: Arc<Layout>,
    tile_bytes: usize,
    extent: isize,
}

impl View {
    /// What a file has first: its bytes.
    pub fn bytes() -> View {
        let byte = || datatype::get(MPI_BYTE).expect("predefined");
        View::new(0, byte(), byte(), Representation::Native, true).expect("bytes are bytes")
    }

    /// The view that MPI_File_set_view describes; `is_written`: it may not touch a byte twice.
    pub fn new(
        displacement: MPI_Offset,
        etype: Held,
        filetype: Held,
        representation: Representation,
        is_written: bool,
    ) -> Answer<View> {
        let (element, tile) = (representation.in_file(&etype)?, representation.in_file(&filetype)?);
        if element.size == 0 {
            let text = format!("the etype ({}) has no data; positions count etypes", etype.told());
            return Err(fail(MPI_ERR_ARG, text));
        }
        if tile.size % element.size != 0 {
            let text = format!(
                "the filetype ({}) has {} bytes, no multiple of the etype's ({}) {}; make it of \
                 items of the etype",
                filetype.told(),
                tile.size,
                etype.told(),
                element.size
            );
            return Err(fail(MPI_ERR_ARG, text));
        }
        for (name, one) in [("etype", &element), ("filetype", &tile)] {
            in_order(name, &one.layout, is_written)?;
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

    /// How many bytes of the data so many etypes are.
    pub fn bytes_to(&self, etypes: MPI_Offset) -> Answer<usize> {
        usize::try_from(etypes).ok().and_then(|at| at.checked_mul(self.unit)).ok_or_else(|| {
            let text = format!("argument offset is {etypes}; it counts etypes, from 0 on");
            fail(MPI_ERR_ARG, text)
        })
    }

    /// Whether the data lies in a row.
    pub fn is_dense(&self) -> bool {
        self.tile.as_run().is_some_and(|(_, bytes)| bytes as isize == self.extent)
    }

    /// Visit the pieces of the file that hold this range of the data, in order.
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

    /// Refuse a range of the data that ends beyond what can be addressed.
    pub fn check_reach(&self, start: usize, bytes: usize) -> Answer {
        let high = self.tile.bounds().map_or(0, |(_, high)| high);
        let tiles = start.checked_add(bytes).map(|end| end / self.tile_bytes.max(1));
        let far = tiles.and_then(|tiles| {
            let far = isize::try_from(tiles).ok()?.checked_mul(self.extent)?;
            far.checked_add(high)?.checked_add(self.displacement as isize)
        });
        match far {
            Some(_) => Ok(()),
            None => {
                Err(fail(MPI_ERR_ARG, "the access ends beyond 2^63 bytes; take a lower offset"))
            }
        }
    }

    /// Where in the file this byte of the data is.
    pub fn place(&self, at: usize) -> MPI_Offset {
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

    /// How much data lies before this byte of the file.
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
        let whole = match self.extent {
            1.. if rest >= high => (rest - high) / self.extent + 1,
            _ => 0,
        };
        let mut before = Before { end: rest - whole * self.extent, bytes: 0 };
        self.tile.visit(0, 0..self.tile_bytes, &mut before);
        whole as usize * self.tile_bytes + before.bytes
    }
}

/// Looks whether the pieces of a type follow each other.
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
        // The rest are to each other as the first two are.
        for one in 0..count.min(2) as isize {
            self.run(at + one * stride, bytes);
        }
        if count > 2 {
            self.run(at + (count as isize - 1) * stride, bytes);
        }
    }
}

/// Refuse what the standard does of types in views: places before the beginning, places that go
/// backwards, and if it is written, bytes that come twice.
fn in_order(name: &str, layout: &Layout, is_written: bool) -> Answer {
    let mut order = Order { last: isize::MIN, end: isize::MIN, goes_back: false, overlaps: false };
    layout.visit(0, 0..layout.bytes(), &mut order);
    let wrong = if layout.bounds().is_some_and(|(low, _)| low < 0) {
        "has data before its own beginning (a negative displacement)"
    } else if order.goes_back {
        "goes backwards: the displacements of its data have to rise"
    } else if order.overlaps && is_written {
        "has bytes that come twice, which a file that is written to must not have"
    } else {
        return Ok(());
    };
    Err(fail(MPI_ERR_IO, format!("the {name} {wrong}; make it of pieces in the file's order")))
}

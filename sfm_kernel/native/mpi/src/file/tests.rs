//! Views and transfers through them, against a plain list of displacements.

use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::representation::Representation;
use super::transfer;
use super::view::View;
use crate::datatype::layout::Visitor;
use crate::datatype::tests::{random, Chance, TypeMap};
use crate::datatype::{self, arrays, making, Held};
use crate::errors::Answer;
use crate::handles::*;

fn view(displacement: i64, filetype: Held) -> Option<View> {
    let etype = datatype::get(MPI_BYTE).unwrap();
    View::new(displacement, etype, filetype, Representation::Native, true).ok()
}

/// A view that is valid for writing, and the displacements of its first bytes.
struct Case {
    view: View,
    displacements: TypeMap,
    /// True if each filetype begins after the end of the previous one.
    follow: bool,
}

impl Case {
    fn random(chance: &mut Chance) -> Option<Case> {
        let depth = 1 + chance.below(3);
        let (filetype, map) = random(chance, depth);
        let rises = map.windows(2).all(|two| two[0] < two[1]) && map.first() >= Some(&0);
        let displacement = chance.below(40) as i64;
        let (extent, follow) = (filetype.extent, filetype.extent >= filetype.true_extent);
        let view = view(displacement, filetype);
        assert_eq!(view.is_some(), rises || map.is_empty());
        let tiles = (0..4).map(|tile| displacement as isize + tile * extent);
        let displacements: TypeMap = tiles
            .flat_map(|base| map.iter().map(move |displacement| base + displacement))
            .collect();
        // A file has no bytes below 0, and overlapping bytes can only be read.
        let mut once = displacements.clone();
        once.sort_unstable();
        once.dedup();
        let is_usable = once.len() == displacements.len() && once.first() >= Some(&0);
        view.filter(|_| is_usable).map(|view| Case { view, displacements, follow })
    }

    fn range(&self, chance: &mut Chance) -> std::ops::Range<usize> {
        let (a, b) = (
            chance.below(self.displacements.len() + 1),
            chance.below(self.displacements.len() + 1),
        );
        a.min(b)..a.max(b)
    }
}

#[test]
fn a_view_visits_its_filetypes_one_after_the_other() {
    struct Listing(TypeMap);
    impl Visitor for Listing {
        fn run(&mut self, at: isize, bytes: usize) {
            self.0.extend(at..at + bytes as isize);
        }
    }
    let mut chance = Chance(3);
    let mut usable = 0;
    for _ in 0..3000 {
        let Some(case) = Case::random(&mut chance) else { continue };
        usable += 1;
        let range = case.range(&mut chance);
        let mut listing = Listing(Vec::new());
        case.view.visit(range.clone(), &mut listing);
        assert_eq!(listing.0, case.displacements[range.clone()]);
        if let Some(displacement) = case.displacements.get(range.start) {
            assert_eq!(case.view.position_of(range.start), *displacement as i64);
        }
        let (Some(last), true) = (case.displacements.last(), case.follow) else { continue };
        let end = chance.below(*last as usize + 1) as isize;
        let before = case.displacements.iter().filter(|displacement| **displacement < end).count();
        assert_eq!(case.view.data_before(end as i64), before);
    }
    assert!(usable > 500, "only {usable} random filetypes were usable");
}

/// A file without a name.
fn file() -> std::fs::File {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("sfm-file-{}-{number}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    file
}

/// Write through the view, check the file, and read some of it back.
fn round_trip(chance: &mut Chance, case: &Case) {
    let Some(last) = case.displacements.iter().max() else { return };
    let (file, size) = (file(), *last as usize + 1);
    let mut expected: Vec<u8> = (0..size).map(|_| chance.below(256) as u8).collect();
    file.write_all_at(&expected, 0).unwrap();

    let range = case.range(chance);
    let row: Vec<u8> = range.clone().map(|_| chance.below(256) as u8).collect();
    assert_eq!(transfer::write(&file, &case.view, range.start, &row).unwrap(), row.len());
    for (displacement, byte) in case.displacements[range].iter().zip(&row) {
        expected[*displacement as usize] = *byte;
    }
    let mut found = vec![0; size];
    file.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, expected);
    assert_eq!(file.metadata().unwrap().len(), size as u64);

    let range = case.range(chance);
    let end = if case.follow { chance.below(size + 1) } else { size };
    file.set_len(end as u64).unwrap();
    let displacements = &case.displacements[range.clone()];
    let there =
        displacements.iter().take_while(|displacement| **displacement < end as isize).count();
    let mut row = vec![0; range.len()];
    let got = transfer::read(&file, &case.view, range.start, &mut row).unwrap();
    assert_eq!(got, there);
    for (displacement, byte) in displacements[..there].iter().zip(&row) {
        assert_eq!(*byte, expected[*displacement as usize]);
    }
}

#[test]
fn data_written_through_a_view_is_at_its_displacements_and_reads_back_to_the_end_of_file() {
    let mut chance = Chance(17);
    for _ in 0..1000 {
        if let Some(case) = Case::random(&mut chance) {
            round_trip(&mut chance, &case);
        }
    }
}

#[test]
fn runs_of_all_sizes_and_distances_are_read() {
    let mut chance = Chance(29);
    // Blocks that are read singly, read together, and separated by gaps too wide for that.
    for (length, stride) in [(5000, 6000), (7, 9), (100, 5000), (3000, 70_000), (1, 2)] {
        let byte = datatype::get(MPI_BYTE).unwrap();
        let count = 300_000 / stride;
        let filetype = making::vector(count, length, stride as MPI_Count, byte).unwrap();
        let displacements = (0..count as isize)
            .flat_map(|block| (0..length as isize).map(move |byte| block * stride as isize + byte))
            .collect();
        let case = Case { view: view(0, filetype).unwrap(), displacements, follow: true };
        for _ in 0..20 {
            round_trip(&mut chance, &case);
        }
    }
}

#[test]
fn elements_of_other_sizes_in_the_file_shift_the_following_ones() {
    let long = || datatype::get(MPI_LONG).unwrap();
    let external = Representation::External32;
    let in_file = |made: Answer<Held>| external.in_file(&made.unwrap()).unwrap();
    let vector = in_file(making::vector(3, 2, 4, long()));
    assert_eq!((vector.size, vector.extent), (24, 40));
    let block = in_file(arrays::subarray(&[4, 5], &[2, 3], &[1, 2], MPI_ORDER_C, long()));
    assert_eq!((block.size, block.extent, block.true_lb), (24, 80, 28));
    let bytes = in_file(making::hindexed(&[1, 1], &[0, 8], long()));
    assert_eq!((bytes.size, bytes.extent), (8, 12));
    let int = datatype::get(MPI_INT).unwrap();
    assert_eq!(external.in_file(&int).unwrap().handle, Some(MPI_INT));
}

//! Layouts against a plain list of bytes, the standard's type map.

use super::*;

/// A type map: the displacement of each byte in packed order.
pub type TypeMap = Vec<isize>;

fn type_map(layout: &Layout, range: Range<usize>) -> TypeMap {
    struct Listing(TypeMap);
    impl layout::Visitor for Listing {
        fn run(&mut self, at: isize, bytes: usize) {
            self.0.extend((0..bytes as isize).map(|byte| at + byte));
        }
    }
    let mut listing = Listing(Vec::new());
    layout.visit(0, range, &mut listing);
    listing.0
}

pub struct Chance(pub u64);

impl Chance {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % limit
    }
}

/// A random datatype and its type map.
pub fn random(chance: &mut Chance, depth: usize) -> (Held, TypeMap) {
    let basic = [MPI_CHAR, MPI_SHORT, MPI_INT, MPI_DOUBLE, MPI_DOUBLE_INT, MPI_SHORT_INT];
    if depth == 0 {
        let held = get(basic[chance.below(basic.len())]).unwrap();
        let map = type_map(&held.layout, 0..held.size);
        return (held, map);
    }
    let (old, map) = random(chance, depth - 1);
    let extent = old.extent;
    let shifted = |map: &TypeMap, by: isize| {
        map.iter().map(|displacement| displacement + by).collect::<TypeMap>()
    };
    let items = |map: &TypeMap, by: isize, count: usize, extent: isize| {
        (0..count as isize).flat_map(|item| shifted(map, by + item * extent)).collect::<TypeMap>()
    };
    let blocks: Vec<(usize, MPI_Count)> =
        (0..chance.below(4)).map(|_| (chance.below(3), chance.below(9) as MPI_Count - 2)).collect();
    let (lengths, displacements): (Vec<usize>, Vec<MPI_Count>) = blocks.iter().copied().unzip();
    let bytes: Vec<MPI_Count> = displacements.iter().map(|displacement| displacement * 5).collect();
    let (made, map) = match chance.below(8) {
        0 => {
            let count = chance.below(4);
            (making::contiguous(count, old), items(&map, 0, count, extent))
        }
        1 => {
            let (count, length) = (chance.below(5), chance.below(3));
            let stride = chance.below(7) as MPI_Count - 2;
            let map = (0..count as isize)
                .flat_map(|block| items(&map, block * stride as isize * extent, length, extent));
            (making::vector(count, length, stride, old), map.collect())
        }
        2 => {
            let (count, length) = (chance.below(5), chance.below(3));
            let stride = chance.below(50) as MPI_Count - 9;
            let map = (0..count as isize)
                .flat_map(|block| items(&map, block * stride as isize, length, extent));
            (making::hvector(count, length, stride, old), map.collect())
        }
        3 => {
            let map = blocks
                .iter()
                .flat_map(|(length, by)| items(&map, *by as isize * extent, *length, extent));
            let map = map.collect();
            (making::indexed(&lengths, &displacements, old), map)
        }
        4 => {
            let map = blocks
                .iter()
                .zip(&bytes)
                .flat_map(|((length, _), by)| items(&map, *by as isize, *length, extent));
            let map = map.collect();
            (making::hindexed(&lengths, &bytes, old), map)
        }
        5 => {
            let map =
                displacements.iter().flat_map(|by| items(&map, *by as isize * extent, 2, extent));
            let map = map.collect();
            (making::indexed_block(2, &displacements, old), map)
        }
        6 => {
            let (other, second) = random(chance, depth - 1);
            let mut all = items(&map, 3, 2, extent);
            all.extend(items(&second, 70, 1, other.extent));
            (making::structure(&[2, 1], &[3, 70], vec![old, other]), all)
        }
        _ => (making::resized(old, -4, extent + 12), map),
    };
    (made.unwrap(), map)
}

#[test]
fn every_layout_visits_the_bytes_of_its_type_map_in_order() {
    let mut chance = Chance(11);
    for _ in 0..3000 {
        let depth = 1 + chance.below(4);
        let (datatype, map) = random(&mut chance, depth);
        assert_eq!(datatype.size, map.len());
        assert_eq!(datatype.signature.bytes(), map.len());
        let count = chance.below(4);
        let all: TypeMap = (0..count as isize)
            .flat_map(|item| map.iter().map(move |displacement| (item, *displacement)))
            .map(|(item, displacement)| displacement + item * datatype.extent)
            .collect();
        let layout = datatype.layout_of(count);
        assert_eq!(type_map(&layout, 0..all.len()), all);
        if let (Some(low), Some(high)) = (map.iter().min(), map.iter().max()) {
            let reach = (datatype.true_lb, datatype.true_lb + datatype.true_extent);
            assert_eq!(reach, (*low, high + 1));
        }
        // Any range of it, because messages in fragments need it.
        for _ in 0..4 {
            let (a, b) = (chance.below(all.len() + 1), chance.below(all.len() + 1));
            let range = a.min(b)..a.max(b);
            assert_eq!(type_map(&layout, range.clone()), all[range]);
        }
    }
}

#[test]
fn data_packed_in_fragments_unpacks_to_the_same_displacements() {
    let mut chance = Chance(5);
    let memory: Vec<u8> = (0..200_000).map(|index| (index * 7 % 251) as u8).collect();
    for _ in 0..300 {
        let (datatype, map) = random(&mut chance, 2);
        let total = map.len() * 3;
        let (mut packed, mut back) = (vec![0_u8; total], vec![0_u8; memory.len()]);
        let middle = 100_000;
        let mut start = 0;
        while start < total {
            let to = (start + 1 + chance.below(total)).min(total);
            // SAFETY: all types of this depth reach less far than half of the memory.
            unsafe {
                let (from, into) = (memory.as_ptr().add(middle), back.as_mut_ptr().add(middle));
                datatype.pack(from.cast(), 3, start..to, packed.as_mut_ptr().add(start));
                datatype.unpack(into.cast(), 3, start..to, packed.as_ptr().add(start));
            }
            start = to;
        }
        for (number, displacement) in
            type_map(&datatype.layout_of(3), 0..total).into_iter().enumerate()
        {
            let displacement = (middle as isize + displacement) as usize;
            assert_eq!(
                (packed[number], back[displacement]),
                (memory[displacement], memory[displacement])
            );
        }
    }
}

#[test]
fn a_regular_type_is_one_node_however_large() {
    let column = making::vector(1_000_000, 1, 1000, get(MPI_DOUBLE).unwrap()).unwrap();
    assert!(matches!(&*column.layout, Layout::Repeat { count: 1_000_000, .. }));
    let row = making::contiguous(10, get(MPI_INT).unwrap()).unwrap();
    let rows = making::contiguous(1_000_000, row).unwrap();
    assert_eq!(rows.as_run(2), Some((0, 80_000_000)));
    let every_other: Vec<MPI_Count> = (0..1000).map(|nth| 2 * nth).collect();
    let blocks = making::indexed_block(1, &every_other, get(MPI_INT).unwrap()).unwrap();
    assert!(matches!(&*blocks.layout, Layout::Repeat { count: 1000, .. }));
}

#[test]
fn a_struct_is_padded_as_c_pads_it() {
    let (int, double) = (get(MPI_INT).unwrap(), get(MPI_DOUBLE).unwrap());
    let made = making::structure(&[1, 1], &[0, 8], vec![double, int]).unwrap();
    assert_eq!((made.size, made.lb, made.extent, made.true_extent), (12, 0, 16, 12));
    let old = [MPI_LB, MPI_INT, MPI_UB].map(|handle| get(handle).unwrap());
    let made = making::structure(&[1, 1, 1], &[-8, 0, 20], old.to_vec()).unwrap();
    assert_eq!((made.size, made.lb, made.extent, made.true_lb), (4, -8, 28, 0));
}

#[test]
fn a_subarray_lies_where_its_order_says() {
    let of = |order, old| arrays::subarray(&[4, 5], &[2, 3], &[1, 2], order, old).unwrap();
    let byte = || get(MPI_BYTE).unwrap();
    let c = of(MPI_ORDER_C, byte());
    assert_eq!(type_map(&c.layout, 0..6), [7, 8, 9, 12, 13, 14]);
    assert_eq!((c.lb, c.extent), (0, 20));
    let fortran = of(MPI_ORDER_FORTRAN, byte());
    assert_eq!(type_map(&fortran.layout, 0..6), [9, 10, 13, 14, 17, 18]);
    let failure = arrays::subarray(&[4], &[3], &[2], MPI_ORDER_C, byte()).err().unwrap();
    assert_eq!(failure.code, MPI_ERR_ARG);
}

/// The indices of `0..size` that the standard gives to the process with this coordinate.
fn indices_of_process(
    kind: c_int,
    size: usize,
    argument: c_int,
    coordinate: usize,
    processes: usize,
) -> Vec<usize> {
    let length = match (kind, argument) {
        (MPI_DISTRIBUTE_NONE, _) => size,
        (MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_DFLT_DARG) => size.div_ceil(processes),
        (_, MPI_DISTRIBUTE_DFLT_DARG) => 1,
        (_, length) => length as usize,
    };
    (0..size).filter(|index| index / length % processes == coordinate).collect()
}

#[test]
fn every_element_of_a_distributed_array_belongs_to_one_process() {
    let kinds = [MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_NONE];
    let mut chance = Chance(3);
    for round in 0..500 {
        let kinds = [kinds[chance.below(3)], kinds[chance.below(3)]];
        let sizes = [1 + chance.below(11), 1 + chance.below(11)];
        let mut grid = [1 + chance.below(3), 1 + chance.below(3)];
        let mut arguments = [MPI_DISTRIBUTE_DFLT_DARG; 2];
        for nth in 0..2 {
            match kinds[nth] {
                MPI_DISTRIBUTE_NONE => grid[nth] = 1,
                _ if chance.below(2) == 0 => {}
                MPI_DISTRIBUTE_BLOCK => {
                    arguments[nth] = (sizes[nth].div_ceil(grid[nth]) + chance.below(3)) as c_int
                }
                _ => arguments[nth] = 1 + chance.below(4) as c_int,
            }
        }
        let order = [MPI_ORDER_C, MPI_ORDER_FORTRAN][round % 2];
        let mut seen = Vec::new();
        for rank in 0..grid[0] * grid[1] {
            let of = arrays::Distribution {
                size: (grid[0] * grid[1]) as c_int,
                rank: rank as c_int,
                sizes: &sizes.map(|size| size as MPI_Count),
                kinds: &kinds,
                arguments: &arguments,
                grid: &grid.map(|size| size as c_int),
                order,
            };
            let made = arrays::darray(&of, get(MPI_SHORT).unwrap()).unwrap();
            let array_bytes = (sizes[0] * sizes[1] * 2) as isize;
            assert_eq!((made.lb, made.extent), (0, array_bytes));
            let coordinates = [rank / grid[1], rank % grid[1]];
            let [rows, columns] = [0, 1].map(|nth| {
                indices_of_process(
                    kinds[nth],
                    sizes[nth],
                    arguments[nth],
                    coordinates[nth],
                    grid[nth],
                )
            });
            let mut expected = TypeMap::new();
            let mut add = |row: usize, column: usize| {
                let index = match order {
                    MPI_ORDER_C => row * sizes[1] + column,
                    _ => column * sizes[0] + row,
                };
                expected.extend([2 * index as isize, 2 * index as isize + 1]);
            };
            match order {
                MPI_ORDER_C => rows.iter().for_each(|r| columns.iter().for_each(|c| add(*r, *c))),
                _ => columns.iter().for_each(|c| rows.iter().for_each(|r| add(*r, *c))),
            }
            assert_eq!(type_map(&made.layout, 0..made.size), expected);
            seen.extend(expected);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..(sizes[0] * sizes[1] * 2) as isize).collect::<TypeMap>());
    }
}

#[test]
fn a_datatype_larger_than_any_memory_is_refused() {
    let (int, most) = (|| get(MPI_INT).unwrap(), MPI_Count::MAX);
    let made = making::contiguous(1 << 60, int()).unwrap();
    assert_eq!(made.bytes(1).unwrap(), 1 << 62);
    let overlapping = making::resized(int(), 0, 0).unwrap();
    assert_eq!(overlapping.bytes(1 << 60).unwrap(), 1 << 62);
    let far = making::resized(int(), 0, 1 << 50).unwrap();
    let is_refused =
        |answer: Answer<Held>| answer.err().is_some_and(|failure| failure.code == MPI_ERR_COUNT);
    assert!(made.bytes(2).is_err() && overlapping.bytes(1 << 61).is_err());
    assert!(far.bytes(1 << 13).is_err() && far.bytes(1 << 12).is_ok());
    assert!(is_refused(making::contiguous(1 << 61, int())));
    assert!(is_refused(making::vector(2, 1, most, int())));
    assert!(is_refused(making::hvector(1 << 40, 1, 1 << 40, int())));
    assert!(is_refused(making::indexed(&[1], &[most], int())));
    assert!(is_refused(making::hindexed(&[1], &[most], int())));
    assert!(is_refused(making::structure(&[1, 1], &[0, 8], vec![made.clone(), made])));
    assert!(is_refused(making::resized(int(), 8, most as MPI_Aint)));
    let subarray = |size| arrays::subarray(&[size, size], &[1, 1], &[0, 0], MPI_ORDER_C, int());
    assert!(is_refused(subarray(1 << 40)) && subarray(1 << 29).is_ok());
}

#[test]
fn elements_are_counted_within_an_item() {
    let (int, double) = (get(MPI_INT).unwrap(), get(MPI_DOUBLE).unwrap());
    let made = making::structure(&[3, 2], &[0, 16], vec![int, double]).unwrap();
    let made = making::contiguous(2, made).unwrap();
    assert_eq!(made.signature.elements(), 10);
    for (bytes, expected) in [(0, (0, 0)), (8, (2, 0)), (12, (3, 0)), (15, (3, 3)), (28, (5, 0))] {
        assert_eq!(made.signature.within(bytes), expected);
        assert_eq!(made.signature.bytes_of(expected.0), bytes - expected.1);
    }
    assert_eq!(made.signature.within(28 + 16), (8, 4));
    assert_eq!(made.signature.bytes_of(10), 56);
}

#[test]
fn every_predefined_datatype_has_the_size_in_its_handle() {
    let handles = [MPI_CHAR, MPI_LONG_DOUBLE, MPI_2INT, MPI_COMPLEX32, MPI_COUNT, MPI_LOGICAL16];
    for handle in (0x4c00_0000..0x4c01_0000).filter(|handle| named::get(*handle).is_some()) {
        let datatype = get(handle).unwrap();
        assert_eq!(datatype.size, (handle >> 8 & 0xff) as usize, "{}", datatype.label());
        assert!(datatype.is_committed() && datatype.handle == Some(handle));
    }
    assert!(handles.iter().all(|handle| named::get(*handle).is_some()));
    assert_eq!(get(MPI_LONG_DOUBLE_INT).unwrap().extent, 32);
    assert_eq!(get(MPI_DATATYPE_NULL).err().unwrap().code, MPI_ERR_TYPE);
    assert!(release(MPI_INT).is_err());
}

//! Random damage, for tests: the same each time, unless SFM_LONG is set; then much more of it.

use crate::splitmix::SplitMix;

pub struct Random(SplitMix);

impl Random {
    /// A generator, and the number of rounds to try. The seed is printed, and can be given as
    /// SFM_SEED.
    pub fn new(rounds: usize, long: usize) -> (Random, usize) {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let is_long = set("SFM_LONG").is_some();
        let seed = set("SFM_SEED").map(|seed| seed.parse().expect("SFM_SEED is a number"));
        let seed = seed.unwrap_or_else(|| if is_long { crate::clock::now() } else { 7 });
        println!("SFM_SEED={seed}");
        (Random(SplitMix::new(seed)), if is_long { long } else { rounds })
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit)
    }

    /// Change some of the first `end` bytes: bits, bytes with a meaning, words.
    pub fn damage(&mut self, bytes: &mut [u8], end: usize, max: usize) {
        for _ in 0..self.below(max) + 1 {
            let position = self.below(end);
            match self.below(4) {
                0 => bytes[position] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                1 => {
                    let word = [0, 1, u64::MAX, 1 << 31, 1 << 32, 1 << 63, end as u64];
                    let word = word[self.below(7)].to_le_bytes();
                    let length = [2, 4, 8][self.below(3)].min(bytes.len() - position);
                    bytes[position..position + length].copy_from_slice(&word[..length]);
                }
                _ => bytes[position] ^= 1 << self.below(8),
            }
        }
    }
}

//! A histogram of delays, in a kilobyte: each power of two of nanoseconds has eight classes.

const EIGHTHS: usize = 8;
const CLASSES: usize = EIGHTHS * 40; // up to 18 minutes; the last class also has longer ones

#[derive(Clone)]
pub struct Late {
    count: u64,
    sum: u64,
    largest: u64,
    classes: [u32; CLASSES],
}

impl Default for Late {
    fn default() -> Late {
        Late { count: 0, sum: 0, largest: 0, classes: [0; CLASSES] }
    }
}

impl Late {
    pub fn add(&mut self, ns: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(ns);
        self.largest = self.largest.max(ns);
        let class = &mut self.classes[class(ns)];
        *class = class.saturating_add(1);
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Nanoseconds; 0 if there are none.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// Nanoseconds.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Nanoseconds that a `share` of the delays did not exceed; at most an eighth too large.
    pub fn quantile(&self, share: f64) -> u64 {
        let target = (self.count as f64 * share).ceil() as u64;
        let mut below = 0;
        for (class, &count) in self.classes.iter().enumerate() {
            below += u64::from(count);
            if below >= target && below > 0 {
                return upper_end(class).min(self.largest);
            }
        }
        self.largest
    }
}

fn class(ns: u64) -> usize {
    if ns < EIGHTHS as u64 {
        return ns as usize;
    }
    let power = ns.ilog2() as usize; // from 3 on
    let eighth = (ns >> (power - 3)) as usize - EIGHTHS;
    ((power - 2) * EIGHTHS + eighth).min(CLASSES - 1)
}

/// The largest number of a class.
fn upper_end(class: usize) -> u64 {
    if class < EIGHTHS {
        return class as u64;
    }
    let (power, eighth) = (class / EIGHTHS + 2, class % EIGHTHS);
    (((EIGHTHS + eighth + 1) as u64) << (power - 3)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_one_another_without_gaps() {
        let mut before = 0;
        for ns in 0..100_000 {
            let class = class(ns);
            assert!(class == before || class == before + 1, "{ns}");
            assert!(ns <= upper_end(class) && (class == 0 || ns > upper_end(class - 1)), "{ns}");
            before = class;
        }
        assert_eq!(class(u64::MAX), CLASSES - 1);
    }

    #[test]
    fn quantiles_are_an_eighth_too_large_at_most() {
        let mut late = Late::default();
        assert_eq!((late.count(), late.quantile(0.99), late.mean()), (0, 0, 0.0));
        (1..=1000).for_each(|micros| late.add(micros * 1000));
        assert_eq!((late.count(), late.largest(), late.mean()), (1000, 1_000_000, 500_500.0));
        for share in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let exact = share * 1e6;
            let found = late.quantile(share) as f64;
            assert!((exact..=exact * 1.13).contains(&found), "{share}: {found}");
        }
    }
}

//! What failed attempts to connect prove about whoever should listen at an address.

/// Refusals that prove a process's death, since it listens as long as it lives; and the nanoseconds
/// over which they must extend. (A few may be a mistake: a firewall that was just restarted answers
/// for other machines.)
const REFUSALS: u32 = 3;
const REFUSED_FOR: u64 = 300_000_000;
/// Connections, one after the other, that must be ended without a word to prove that who listens at
/// that address is another process; and the nanoseconds over which they must extend. (Some may be
/// chance: a crowded peer evicts strangers, see admission.rs; a firewall that was restarted resets
/// those that a stopped peer has not answered yet.)
const HANG_UPS: u32 = 8;
const UNWELCOME_FOR: u64 = 1_500_000_000;
/// Nanoseconds after which a hang-up does not count: whoever does not have the key ends a connection
/// at once, and the peer ends one if it had no time for this process's key, or has not heard of it.
const PATIENCE: u64 = 750_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// Nobody listens there any longer.
    Death,
    /// Whoever listens there does not have the key that is expected.
    OtherKey,
}

/// Times are nanoseconds of the monotonic clock.
#[derive(Default)]
pub struct Failures {
    refusals: u32,
    first_refusal: u64,
    hangups: u32,
    first_hangup: u64,
}

impl Failures {
    /// The peer's kernel refuses a connection.
    pub fn refused(&mut self, now: u64) {
        if self.refusals == 0 {
            self.first_refusal = now;
        }
        self.refusals += 1;
    }

    /// The peer has ended a connection without a word; whether that counts, for its `begun`.
    pub fn hung_up(&mut self, begun: u64, now: u64) -> bool {
        self.refusals = 0;
        if now.saturating_sub(begun) > PATIENCE {
            self.hangups = 0;
            return false;
        }
        if self.hangups == 0 {
            self.first_hangup = now;
        }
        self.hangups += 1;
        true
    }

    /// Only who is not there, or does not have the key, fails again and again.
    pub fn proof(&self, now: u64) -> Option<Proof> {
        let since = |first: u64| now.saturating_sub(first);
        if self.refusals >= REFUSALS && since(self.first_refusal) > REFUSED_FOR {
            return Some(Proof::Death);
        }
        let is_other = self.hangups >= HANG_UPS && since(self.first_hangup) > UNWELCOME_FOR;
        is_other.then_some(Proof::OtherKey)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: u64 = 100_000_000;

    #[test]
    fn refusals_over_some_time_prove_a_death() {
        let mut failures = Failures::default();
        for nth in 0..3 {
            failures.refused(nth * TICK);
        }
        assert_eq!(failures.proof(2 * TICK), None);
        assert_eq!(failures.proof(4 * TICK), Some(Proof::Death));
        failures.hung_up(4 * TICK, 4 * TICK); // somebody listens there
        assert_eq!(failures.proof(9 * TICK), None);
    }

    #[test]
    fn who_hangs_up_at_once_again_and_again_has_another_key() {
        let mut failures = Failures::default();
        for nth in 0..8 {
            assert!(failures.hung_up(nth * TICK, nth * TICK + 1));
        }
        assert_eq!(failures.proof(10 * TICK), None);
        assert_eq!(failures.proof(16 * TICK), Some(Proof::OtherKey));
    }

    #[test]
    fn who_hangs_up_after_a_while_had_no_time() {
        let mut failures = Failures::default();
        for nth in 0..20 {
            assert!(!failures.hung_up(nth * TICK, (nth + 8) * TICK));
        }
        assert_eq!(failures.proof(100 * TICK), None);
    }
}

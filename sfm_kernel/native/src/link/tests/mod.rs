//! Links over the carrier in memory: each message comes once and in order, or its sender is told,
//! whatever a network does that loses, delays, breaks and repeats as a seed says.

mod network;
mod processes;

use self::network::{Fault, Network};
use crate::random::Random;

/// Processes send each other messages while there are these faults; then everything comes.
fn run(seed: u64, faults: &[Fault]) {
    let mut network = Network::new(seed, faults);
    for _ in 0..300 {
        network.step();
    }
    network.settle();
    network.check();
}

/// SFM_LINK_SEED repeats the one run whose seed a failure has printed.
fn run_all(rounds: usize, faults: &[Fault]) {
    let (mut chance, rounds) = Random::new(rounds, 20 * rounds);
    for _ in 0..rounds {
        let seed = chance.below(usize::MAX) as u64;
        let seed = std::env::var("SFM_LINK_SEED").map_or(seed, |seed| seed.parse().unwrap());
        if let Err(panic) = std::panic::catch_unwind(|| run(seed, faults)) {
            println!("SFM_LINK_SEED={seed} fails with {faults:?}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn connections_that_break_lose_nothing() {
    run_all(400, &[Fault::Break]);
}

#[test]
fn gateways_that_lose_frames_lose_no_messages() {
    run_all(400, &[Fault::Gateway, Fault::Lose]);
}

/// Of a connection's beginning, which anybody may have recorded.
#[test]
fn what_is_sent_again_changes_nothing() {
    run_all(200, &[Fault::Repeat, Fault::Break]);
    run_all(200, &[Fault::Repeat, Fault::Gateway, Fault::Lose]);
}

/// The other process hears it, as soon as it sends something.
#[test]
fn whoever_is_given_up_is_told() {
    run_all(200, &[Fault::GiveUp, Fault::Break]);
    run_all(200, &[Fault::GiveUp, Fault::Gateway, Fault::Lose]);
}

#[test]
fn links_change_between_gateways_and_direct_connections() {
    run_all(400, &[Fault::Gateway, Fault::Lose, Fault::Break]);
}

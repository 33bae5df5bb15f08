//! Measures what two gateways cost on a short path, against the same frames over a direct
//! connection: `cargo test --release gateway::tests::cost -- --ignored --nocapture
//! --test-threads=1`.

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Instant;

use super::*;

const TRIPS: usize = 10_000;
const BODY: usize = 60 << 10;
const FRAMES: usize = 4000;
/// Frames: 4 MB.
const WINDOW: usize = 64;
/// Bytes per second: 1 Gbit/s.
const RATE: u64 = 125_000_000;

/// Two processes of two sites: connected by gateways, or directly.
fn ends(through: Option<&(Gateway, Gateway)>, rate: Option<u64>) -> (Client, Client) {
    if let Some((a, b)) = through {
        return (Client::process(a, "A", 1), Client::process(b, "B", 2));
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = |stream: TcpStream, site, uid| {
        stream.set_nodelay(true).unwrap();
        Client { stream, codec: ControlCodec::of_process(KEY, uid, site_number(site)), counter: 0 }
    };
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    super::super::sockets::prepare_wide(&near, "bbr");
    if let Some(rate) = rate {
        super::super::sockets::pace(&near, rate);
    }
    (client(near, "A", 1), client(listener.accept().unwrap().0, "B", 2))
}

/// Seconds of each round trip of a small frame, sorted.
fn round_trips((mut near, mut far): (Client, Client)) -> Vec<f64> {
    let both = [&near, &far].map(|client| client.stream.try_clone().unwrap());
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; HEADER + 24 + 16 + 64];
        while far.stream.read_exact(&mut bytes).is_ok() {
            let answer = far.sealed(1, "A", Class::Message, &[0; 64]);
            far.stream.write_all(&answer).unwrap();
        }
    });
    let mut seconds: Vec<f64> = (0..TRIPS)
        .map(|_| {
            let frame = near.sealed(2, "B", Class::Message, &[0; 64]);
            let start = Instant::now();
            near.stream.write_all(&frame).unwrap();
            let mut bytes = vec![0; frame.len()];
            near.stream.read_exact(&mut bytes).unwrap();
            start.elapsed().as_secs_f64()
        })
        .collect();
    for stream in both {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
    echo.join().unwrap();
    seconds.sort_by(f64::total_cmp);
    seconds
}

/// Bytes per second of large frames. A window bounds the frames under way, as between processes;
/// otherwise the gateway drops frames when the receiver is too slow.
fn rate((mut near, mut far): (Client, Client)) -> f64 {
    let received = Arc::new(AtomicUsize::new(0));
    let acknowledged = received.clone();
    let frame = near.sealed(2, "B", Class::Bulk, &[0; BODY]);
    let size = frame.len();
    let start = Instant::now();
    let sender = std::thread::spawn(move || {
        for sent in 0..FRAMES {
            while sent - acknowledged.load(Ordering::Relaxed) > WINDOW {
                std::thread::sleep(Duration::from_micros(50));
            }
            near.stream.write_all(&frame).unwrap();
        }
        near
    });
    let mut bytes = vec![0; size];
    for _ in 0..FRAMES {
        far.stream.read_exact(&mut bytes).unwrap();
        received.fetch_add(1, Ordering::Relaxed);
    }
    let rate = (size * FRAMES) as f64 / start.elapsed().as_secs_f64();
    drop(sender.join());
    rate
}

#[test]
#[ignore = "a measurement"]
fn cost_of_two_gateways() {
    for pacing in [None, Some(RATE)] {
        let through = connected_pair(Options { pacing, ..options("A") });
        for _ in 0..2 {
            let (direct, gateways) =
                (round_trips(ends(None, pacing)), round_trips(ends(Some(&through), pacing)));
            let micros = |all: &[f64], share: usize| all[all.len() * share / 100] * 1e6;
            for share in [50, 90, 99] {
                let (direct, gateways) = (micros(&direct, share), micros(&gateways, share));
                let more = gateways - direct;
                println!("round trip p{share}: {direct:.1} -> {gateways:.1} us, +{more:.1}");
            }
            let mbits = |through| rate(ends(through, pacing)) * 8e-6;
            let (direct, gateways) = (mbits(None), mbits(Some(&through)));
            let share = gateways / direct;
            println!("rate: {direct:.0} -> {gateways:.0} Mbit/s, {share:.2}");
        }
        let kernel = through.0.status();
        println!("{}", &kernel[kernel.find("\"delay\"").unwrap()..][..140]);
    }
}

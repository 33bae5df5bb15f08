//! Admission, and forwarding.

use super::*;
use crate::random::Random;

#[test]
fn frames_pass_two_gateways_in_both_directions() {
    let (a, b) = connected_pair(options("A"));
    let mut near = Client::process(&a, "A", 1);
    let mut far = Client::process(&b, "B", 2);
    for length in [0, 1, 1000, 61_440] {
        let body = vec![7; length];
        near.send(2, "B", &body);
        let received = Received::Frame { sender: 1, hops: HOPS - 2, body: body.clone() };
        assert_eq!(far.receive(), received);
        far.send(1, "A", &body);
        assert_eq!(near.receive(), Received::Frame { sender: 2, hops: HOPS - 2, body });
    }
    for gateway in [&a, &b] {
        let status = gateway.status();
        assert!(status.contains("\"forwarded\":{\"frames\":8,"), "{status}");
    }
}

#[test]
fn frames_within_a_site_pass_one() {
    let a = gateway("A");
    let (mut client, mut other) = (Client::process(&a, "A", 1), Client::process(&a, "A", 2));
    client.send(2, "A", b"near");
    assert_eq!(
        other.receive(),
        Received::Frame { sender: 1, hops: HOPS - 1, body: b"near".to_vec() }
    );
}

#[test]
fn a_message_may_come_with_the_hello() {
    let a = gateway("A");
    let mut other = Client::process(&a, "A", 2);
    let mut client = Client::raw(&a, "A", 1, KEY);
    let mut first = client.codec.hello(Role::Process, a.uid, 0, 5).bytes;
    first.extend(client.sealed(2, "A", Class::Bulk, &[3; 50_000]));
    client.stream.write_all(&first).unwrap();
    assert_eq!(client.receive(), Received::Control(FrameKind::Welcome, 5));
    assert_eq!(other.frame(), (1, vec![3; 50_000]));
}

#[test]
fn connections_without_the_key_are_ended() {
    let a = gateway("A");
    let mut foreign = Client::raw(&a, "A", 1, b"the key of another world");
    let hello = foreign.codec.hello(Role::Process, a.uid, 0, 1);
    foreign.stream.write_all(&hello.bytes).unwrap();
    assert_eq!(foreign.receive(), Received::End);
    assert_eq!(number(&a, "foreign key"), 1);
    assert!(a.status().contains("SFM_GATEWAY_KEY"), "nobody is told");
    for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 5000], &[0xff; 64]] {
        let mut stranger = Client::raw(&a, "A", 1, KEY);
        let _ = stranger.stream.write_all(nonsense);
        // If a frame is too short, the gateway waits for the rest, but not for long.
        assert_eq!(stranger.receive(), Received::End);
    }
    let mut large = Client::raw(&a, "A", 1, KEY);
    let frame = large.codec.seal(FrameKind::Hello, a.uid, 0, 1, &[b'P'; 600]);
    let _ = large.stream.write_all(&frame.bytes);
    assert_eq!(large.receive(), Received::End);
}

#[test]
fn who_speaks_another_version_is_told() {
    let a = gateway("A");
    let mut foreign = Client::raw(&a, "A", 1, KEY);
    let mut hello = foreign.codec.hello(Role::Process, a.uid, 0, 1).bytes;
    hello[7] = VERSION + 1;
    foreign.stream.write_all(&hello).unwrap();
    let mut answer = vec![0; HEADER + INNER];
    foreign.stream.read_exact(&mut answer).unwrap();
    let header = Header::read(&answer).expect("it is of our version");
    assert_eq!((header.sender, header.receiver), (a.uid, 1));
    assert_eq!(foreign.receive(), Received::End);
}

#[test]
fn a_recorded_hello_is_refused() {
    let a = gateway("A");
    let mut client = Client::raw(&a, "A", 1, KEY);
    let hello = client.codec.hello(Role::Process, a.uid, 0, 1);
    client.stream.write_all(&hello.bytes).unwrap();
    assert_eq!(client.receive(), Received::Control(FrameKind::Welcome, 1));
    let mut thief = Client::raw(&a, "A", 1, KEY);
    thief.stream.write_all(&hello.bytes).unwrap();
    assert_eq!(thief.receive(), Received::End);
    assert_eq!(number(&a, "replayed"), 1);
    let mut sender = Client::process(&a, "A", 2);
    sender.send(1, "A", b"still the first");
    assert_eq!(client.frame(), (2, b"still the first".to_vec()));
}

#[test]
fn who_has_the_gateway_key_takes_no_process_s_place() {
    let a = gateway("A");
    let mut client = Client::process(&a, "A", 1);
    let mut thief = Client::raw(&a, "A", 1, KEY);
    thief.codec = ControlCodec::of_gateway(&gateway_key(KEY), 1, site_number("A"));
    let hello = thief.codec.hello(Role::Process, a.uid, 0, 1);
    thief.stream.write_all(&hello.bytes).unwrap();
    assert_eq!(thief.receive(), Received::End);
    assert_eq!(number(&a, "foreign key"), 1);
    // Nor does it keep the process out, as a gateway of the same uid that has come first.
    let _gateway = Client::member(&a, "B", 2, Role::Gateway(0));
    let mut other = Client::process(&a, "A", 2);
    other.send(1, "A", b"from a process");
    assert_eq!(client.frame(), (2, b"from a process".to_vec()));
    client.send(3, "A", b"nobody");
    assert_eq!(client.drop_reason(), Reason::Unknown);
    other.send(3, "A", b"nobody");
    assert_eq!(other.drop_reason(), Reason::Unknown);
}

#[test]
fn a_hello_again_is_a_question_and_a_later_connection_takes_over() {
    let a = gateway("A");
    let mut client = Client::process(&a, "A", 1);
    let again = client.codec.hello(Role::Process, a.uid, 0, 9);
    client.stream.write_all(&again.bytes).unwrap();
    assert_eq!(client.receive(), Received::Control(FrameKind::Welcome, 9));
    let mut later = Client::process(&a, "A", 1);
    assert_eq!(client.receive(), Received::End);
    let mut sender = Client::process(&a, "A", 2);
    sender.send(1, "A", b"to the later one");
    assert_eq!(later.frame(), (2, b"to the later one".to_vec()));
}

#[test]
fn a_process_of_another_site_is_refused() {
    let a = gateway("A");
    let mut client = Client::raw(&a, "B", 1, KEY);
    let hello = client.codec.hello(Role::Process, a.uid, 0, 1);
    client.stream.write_all(&hello.bytes).unwrap();
    assert_eq!(client.receive(), Received::Control(FrameKind::Broken, 0));
    assert_eq!(client.receive(), Received::End);
}

#[test]
fn nobody_sends_in_the_name_of_another() {
    let (a, b) = connected_pair(options("A"));
    let mut liar = Client::process(&a, "A", 1);
    let mut far = Client::process(&b, "B", 2);
    let mut other = Client::raw(&a, "A", 3, KEY);
    let mut elsewhere = Client::raw(&a, "C", 1, KEY);
    let of_another = other.sealed(2, "B", Class::Message, b"I am 3");
    let of_another_site = elsewhere.sealed(2, "B", Class::Message, b"I am of C");
    liar.stream.write_all(&[of_another, of_another_site].concat()).unwrap();
    liar.send(2, "B", b"I am 1");
    assert_eq!(far.frame(), (1, b"I am 1".to_vec()));
    assert_eq!(number(&a, "spoofed sender"), 2);
}

#[test]
fn strangers_are_bounded_and_members_come_in_nevertheless() {
    let a = gateway("A");
    let limit = super::super::strangers::limit();
    let crowd: Vec<_> = (0..limit + 40).map(|_| TcpStream::connect(a.address)).collect();
    assert!(crowd.iter().all(Result::is_ok));
    wait_until(|| number(&a, "now") <= limit as u64 && number(&a, "too many") > 0);
    let mut client = Client::process(&a, "A", 1);
    let mut other = Client::process(&a, "A", 2);
    client.send(2, "A", b"hello");
    assert_eq!(other.frame(), (1, b"hello".to_vec()));
    wait_until(|| number(&a, "now") == 0); // they have sent nothing
}

#[test]
fn damaged_bytes_end_their_connection_and_nothing_else() {
    let (a, b) = connected_pair(options("A"));
    let _unread = Client::process(&b, "B", 2);
    let (mut chance, rounds) = Random::new(200, 20_000);
    for _ in 0..rounds {
        let mut client = Client::raw(&a, "A", 1, KEY);
        let mut bytes = client.codec.hello(Role::Process, a.uid, 0, 1).bytes;
        let hello = bytes.len();
        for length in [0, 100, 20_000] {
            bytes.extend(client.sealed(2, "B", Class::Bulk, &vec![0; length]));
        }
        let from = if chance.below(2) == 0 { 0 } else { hello };
        let end = [64, bytes.len() - from][chance.below(2)];
        chance.damage(&mut bytes[from..], end, 3);
        let length = 1 + chance.below(bytes.len());
        let _ = client.stream.write_all(&bytes[..length]); // the gateway may have hung up
    }
    let mut near = Client::process(&a, "A", 3);
    let mut far = Client::process(&b, "B", 4);
    near.send(4, "B", b"still here");
    assert_eq!(far.frame(), (3, b"still here".to_vec()));
}

#[test]
fn impossible_options_are_refused_in_a_sentence() {
    let with = |change: fn(&mut Options)| {
        let mut options = options("A");
        change(&mut options);
        Gateway::start(options).err().unwrap().to_string()
    };
    let unknown = with(|options| options.algorithm = Some("no such".into()));
    assert!(unknown.contains("\"no such\"") && unknown.contains("reno"), "{unknown}");
    let nowhere = with(|options| options.address = "192.0.2.1:0".parse().unwrap());
    assert!(nowhere.contains("no gateway at 192.0.2.1"), "{nowhere}");
}

//! Several gateways of one site, one of which lacks a connection; and which connections a process
//! may end.

use super::*;

/// Two gateways of a site, the first as if it were cut off from the wide area, and one of another
/// site.
fn cut_off() -> (Gateway, Gateway, Gateway) {
    let (a, sibling, b) = (gateway("A"), gateway("A"), gateway("B"));
    introduce_to(&a, &[(&sibling, "A")]);
    introduce_to(&sibling, &[(&a, "A"), (&b, "B")]);
    introduce_to(&b, &[(&sibling, "A")]);
    wait_until(|| {
        connections_up(&a) == 1 && connections_up(&sibling) == 2 && connections_up(&b) == 1
    });
    (a, sibling, b)
}

#[test]
fn frames_without_a_route_go_through_the_sibling() {
    let (a, _sibling, b) = cut_off();
    let mut near = Client::process(&a, "A", 1);
    let mut far = Client::process(&b, "B", 2);
    near.send(2, "B", b"there");
    let received = Received::Frame { sender: 1, hops: HOPS - 3, body: b"there".to_vec() };
    assert_eq!(far.receive(), received);
    // The receiver is connected to one gateway only, and the frame comes to the other one.
    far.send(1, "A", b"and back");
    assert_eq!(near.frame(), (2, b"and back".to_vec()));
}

#[test]
fn a_sender_is_notified_if_no_gateway_of_its_site_has_a_route() {
    let (a, sibling) = (gateway("A"), gateway("A"));
    introduce(&[(&a, "A"), (&sibling, "A")]);
    wait_until(|| connections_up(&a) == 1 && connections_up(&sibling) == 1);
    let mut near = Client::process(&a, "A", 1);
    for (site, why) in [("B", Reason::NoRoute), ("A", Reason::Unknown)] {
        near.send(if site == "B" { 2 } else { 3 }, site, b"to nobody");
        assert_eq!(near.drop_reason(), why);
        assert_eq!(number(&sibling, why.name()), 1);
        assert_eq!(number(&a, why.name()), 0, "it has come back");
    }
}

#[test]
fn pacing_is_shared_by_all_connections_whoever_made_them() {
    let reserved = Options { pacing: Some(1_000_000), ..options("A") };
    let (a, b) = (
        Gateway::start(reserved).unwrap(),
        Gateway::start(Options { connections: Some(4), ..options("B") }).unwrap(),
    );
    introduce(&[(&a, "A"), (&b, "B")]);
    wait_until(|| connections_up(&a) == 4);
    wait_until(|| a.status().matches("\"pacing\":250000,").count() == 4);
}

#[test]
fn a_process_ends_nothing_but_its_own_connection() {
    let (a, b) = connected_pair(options("A"));
    let mut near = Client::process(&a, "A", 1);
    let mut far = Client::process(&b, "B", 2);
    let bye = near.codec.seal(FrameKind::Bye, b.uid, far.codec.site, 0, b"");
    near.stream.write_all(&bye.bytes).unwrap();
    near.send(2, "B", b"after it");
    assert_eq!(far.frame(), (1, b"after it".to_vec()));
    let bye = near.codec.seal(FrameKind::Bye, a.uid, near.codec.site, 0, b"");
    near.stream.write_all(&bye.bytes).unwrap();
    while near.receive() != Received::End {}
}

/// It asks since it had no answer: perhaps what the sibling gets leads nowhere.
#[test]
fn whoever_asks_again_gets_the_route_of_now() {
    let (a, sibling, b) = cut_off();
    let (mut near, mut far) = (Client::process(&a, "A", 1), Client::process(&b, "B", 2));
    let mut hops = |near: &mut Client, class: Class| {
        let frame = near.sealed(2, "B", class, b"");
        near.stream.write_all(&frame).unwrap();
        match far.receive() {
            Received::Frame { hops, .. } => HOPS - hops,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(hops(&mut near, Class::Message), 3);
    introduce_to(&a, &[(&sibling, "A"), (&b, "B")]);
    introduce_to(&b, &[(&a, "A"), (&sibling, "A")]);
    wait_until(|| connections_up(&a) == 2);
    assert_eq!(hops(&mut near, Class::Resume), 2);
}

//! Several gateways of one site, one of which lacks something; and who may end what.

use super::*;

/// Tell `one` of these.
fn tell(one: &Gateway, others: &[(&Gateway, &str)]) {
    let listed = others.iter().map(|(other, site)| Listed {
        uid: other.uid,
        site: (*site).into(),
        address: other.address,
    });
    one.peers(listed.collect());
}

#[test]
fn what_a_gateway_has_no_way_for_goes_through_its_sibling() {
    let (a, sibling, b) = (gateway("A"), gateway("A"), gateway("B"));
    // As if the first one were cut off from the wide area.
    tell(&a, &[(&sibling, "A")]);
    tell(&sibling, &[(&a, "A"), (&b, "B")]);
    tell(&b, &[(&sibling, "A")]);
    until(|| up(&a) == 1 && up(&sibling) == 2 && up(&b) == 1);
    let mut here = Client::process(&a, "A", 1);
    let mut there = Client::process(&b, "B", 2);
    here.send(2, "B", b"there");
    let came = Came::Frame { sender: 1, hops: HOPS - 3, body: b"there".to_vec() };
    assert_eq!(there.receive(), came);
    // The receiver is connected to one of them only, and it comes to the other one.
    there.send(1, "A", b"and back");
    assert_eq!(here.frame(), (2, b"and back".to_vec()));
}

#[test]
fn what_no_gateway_of_the_site_has_a_way_for_is_told() {
    let (a, sibling) = (gateway("A"), gateway("A"));
    introduce(&[(&a, "A"), (&sibling, "A")]);
    until(|| up(&a) == 1 && up(&sibling) == 1);
    let mut here = Client::process(&a, "A", 1);
    for (site, why) in [("B", Reason::NoRoute), ("A", Reason::Unknown)] {
        here.send(if site == "B" { 2 } else { 3 }, site, b"to nobody");
        assert_eq!(here.why(), why);
        assert_eq!(number(&sibling, why.name()), 1);
        assert_eq!(number(&a, why.name()), 0, "it has come back");
    }
}

#[test]
fn what_is_reserved_is_shared_by_all_connections_also_those_that_others_made() {
    let reserved = Options { pacing: Some(1_000_000), ..options("A") };
    let (a, b) = (
        Gateway::start(reserved).unwrap(),
        Gateway::start(Options { connections: Some(4), ..options("B") }).unwrap(),
    );
    introduce(&[(&a, "A"), (&b, "B")]);
    until(|| up(&a) == 4);
    until(|| a.status().matches("\"pacing\":250000,").count() == 4);
}

#[test]
fn a_process_ends_nothing_but_its_own_connection() {
    let (a, b) = two(options("A"));
    let mut here = Client::process(&a, "A", 1);
    let mut there = Client::process(&b, "B", 2);
    let bye = here.voice.say(Kind::Bye, b.uid, there.voice.site, 0, b"");
    here.stream.write_all(&bye.bytes).unwrap();
    here.send(2, "B", b"after it");
    assert_eq!(there.frame(), (1, b"after it".to_vec()));
    let bye = here.voice.say(Kind::Bye, a.uid, here.voice.site, 0, b"");
    here.stream.write_all(&bye.bytes).unwrap();
    while here.receive() != Came::End {}
}

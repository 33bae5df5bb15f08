//! Routes that are missing, break, come back, and replace each other.

use super::*;

#[test]
fn a_sender_is_notified_of_an_unknown_receiver_and_of_its_arrival() {
    let (a, b) = connected_pair(options("A"));
    let mut near = Client::process(&a, "A", 1);
    near.send(2, "B", b"too early");
    let pair = Pair { sender: 1, receiver: 2 };
    assert_eq!(near.receive(), Received::Dropped(pair, Reason::Unknown));
    let mut far = Client::process(&b, "B", 2);
    assert_eq!(near.receive(), Received::Dropped(pair, Reason::PathBroke));
    near.resume(2, "B", b"now");
    assert_eq!(far.frame(), (1, b"now".to_vec()));
    drop(far);
    assert_eq!(near.receive(), Received::Dropped(pair, Reason::Unknown));
}

#[test]
fn a_sender_is_notified_of_a_site_without_a_gateway() {
    let (a, b) = (gateway("A"), gateway("B"));
    let mut near = Client::process(&a, "A", 1);
    let mut far = Client::process(&b, "B", 2);
    near.send(2, "B", b"too early");
    assert_eq!(near.drop_reason(), Reason::NoRoute);
    introduce(&[(&a, "A"), (&b, "B")]);
    assert_eq!(near.drop_reason(), Reason::PathBroke);
    near.resume(2, "B", b"now");
    assert_eq!(far.frame(), (1, b"now".to_vec()));
}

#[test]
fn a_frame_does_not_go_round_for_ever() {
    let (a, b) = connected_pair(options("A"));
    let mut near = Client::process(&a, "A", 1);
    let _there = Client::process(&b, "B", 2);
    let mut frame = near.sealed(2, "B", Class::Message, b"one hop");
    frame[5] = 1;
    near.stream.write_all(&frame).unwrap();
    assert_eq!(near.drop_reason(), Reason::Loop);
    assert_eq!((number(&a, "loop"), number(&b, "loop")), (0, 1));
}

#[test]
fn another_gateway_of_the_site_takes_over() {
    let (a, b, c) = (gateway("A"), gateway("B"), gateway("B"));
    introduce(&[(&a, "A"), (&b, "B"), (&c, "B")]);
    wait_until(|| connections_up(&a) == 2 && connections_up(&b) == 2);
    let mut near = Client::process(&a, "A", 1);
    let mut over_b = Client::process(&b, "B", 2);
    let mut over_c = Client::process(&c, "B", 2);
    near.send(2, "B", b"first");
    wait_until(|| number(&b, "frames") + number(&c, "frames") == 1);
    let (first, second, mut other) = if number(&b, "frames") == 1 {
        assert_eq!(over_b.frame(), (1, b"first".to_vec()));
        (b, c, over_c)
    } else {
        assert_eq!(over_c.frame(), (1, b"first".to_vec()));
        (c, b, over_b)
    };
    first.close();
    assert_eq!(near.drop_reason(), Reason::PathBroke);
    near.resume(2, "B", b"second");
    assert_eq!(other.frame(), (1, b"second".to_vec()));
    second.close();
    assert_eq!(near.drop_reason(), Reason::NoRoute);
}

#[test]
fn flows_spread_over_gateways_and_connections() {
    let (a, b, c) = (
        Gateway::start(Options { connections: Some(3), ..options("A") }).unwrap(),
        gateway("B"),
        gateway("B"),
    );
    introduce(&[(&a, "A"), (&b, "B"), (&c, "B")]);
    wait_until(|| connections_up(&a) == 6);
    let mut near = Client::process(&a, "A", 1);
    for receiver in 100..200 {
        near.send(receiver, "B", b"to whomever");
    }
    wait_until(|| number(&b, "unknown receiver") + number(&c, "unknown receiver") == 100);
    for gateway in [&b, &c] {
        assert!(number(gateway, "unknown receiver") > 20);
    }
    let status = a.status();
    let sent = status.split("\"sent\":{\"frames\":").skip(2); // the first is the process's
    let used = sent.filter(|part| !part.starts_with("0,")).count();
    assert_eq!(used, 6, "{status}");
}

#[test]
fn each_flow_keeps_its_order_over_many_connections() {
    let (a, b) =
        (Gateway::start(Options { connections: Some(4), ..options("A") }).unwrap(), gateway("B"));
    introduce(&[(&a, "A"), (&b, "B")]);
    wait_until(|| connections_up(&a) == 4 && connections_up(&b) == 4);
    let mut far = Client::process(&b, "B", 99);
    let senders: Vec<_> = (0..4)
        .map(|sender| {
            let mut client = Client::process(&a, "A", sender);
            std::thread::spawn(move || {
                for number in 0..200u32 {
                    let mut body = vec![0; 1 + number as usize * 97 % 20_000];
                    body.extend(number.to_le_bytes());
                    client.send(99, "B", &body);
                }
                client
            })
        })
        .collect();
    let mut next = [0u32; 4];
    for _ in 0..800 {
        let (sender, body) = far.frame();
        let number = u32::from_le_bytes(body[body.len() - 4..].try_into().unwrap());
        assert_eq!(number, next[sender as usize]);
        next[sender as usize] += 1;
    }
    assert_eq!(next, [200; 4]);
    senders.into_iter().for_each(|sender| drop(sender.join()));
}

#[test]
fn a_gateway_that_falls_silent_is_not_used() {
    let a = gateway("A");
    let mut near = Client::process(&a, "A", 1);
    let mut mute = Client::member(&a, "B", 50, Role::Gateway(0));
    near.send(2, "B", b"to be passed on");
    assert_eq!(mute.frame(), (1, b"to be passed on".to_vec()));
    assert_eq!(near.drop_reason(), Reason::NoRoute); // after some seconds without a beat
    let beat = mute.codec.seal(FrameKind::Beat, a.uid, 0, 0, b"");
    mute.stream.write_all(&beat.bytes).unwrap();
    assert_eq!(near.drop_reason(), Reason::PathBroke);
    near.resume(2, "B", b"once more");
    assert_eq!(mute.frame(), (1, b"once more".to_vec()));
}

#[test]
fn a_new_connection_replaces_the_old_one_and_losses_are_reported() {
    let a = gateway("A");
    let mut near = Client::process(&a, "A", 1);
    let mut old = Client::member(&a, "B", 50, Role::Gateway(0));
    near.send(2, "B", b"over the old one");
    assert_eq!(old.frame(), (1, b"over the old one".to_vec()));
    let mut new = Client::member(&a, "B", 50, Role::Gateway(0));
    assert_eq!(near.drop_reason(), Reason::PathBroke);
    near.resume(2, "B", b"over the new one");
    assert_eq!(new.frame(), (1, b"over the new one".to_vec()));
    while old.receive() != Received::End {}
    drop(new);
    assert_eq!(near.drop_reason(), Reason::NoRoute);
}

#[test]
fn beats_come_while_nothing_else_does() {
    let a = gateway("A");
    let mut other = Client::member(&a, "B", 50, Role::Gateway(0));
    for _ in 0..3 {
        assert_eq!(other.receive(), Received::Control(FrameKind::Beat, 0));
    }
}

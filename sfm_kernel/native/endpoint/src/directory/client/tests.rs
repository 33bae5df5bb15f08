//! The client with a server by hand. (Python's tests have the real one.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{json, Map, Value};

use super::keys::{library, Secret};
use super::{hexadecimal, Client, ANSWER};
use crate::error::{Error, Kind, Result};
use sfm_native::wire::zmq::{self, Authenticator, Context, Number, Pair, Socket};

const KEY: [u8; 32] = [7; 32];

/// A server that admits everybody and keeps the world "w".
struct Server {
    url: String,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// None if this machine has no libzmq. Only CI must have it.
    fn new() -> Option<Server> {
        let library = match library(&[]) {
            Ok(library) => library,
            Err(error) if std::env::var_os("SFM_CI").is_some() => panic!("{error}"),
            Err(error) => {
                eprintln!("skipped: {error}");
                return None;
            }
        };
        let context = Context::new(library).unwrap();
        let mut gate = Authenticator::new(&context).unwrap();
        let mut router = Socket::new(&context, zmq::SocketKind::Router).unwrap();
        router.set(Number::HandshakeInterval, 3000).unwrap();
        let pair = Pair::new(library).unwrap();
        pair.serve(&mut router).unwrap();
        let place = router.bind("tcp://127.0.0.1:*").unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&is_over);
        let serve = move || {
            while !end.load(Ordering::SeqCst) {
                gate.answer(|key| Some(hexadecimal(key))).unwrap();
                while let Some(message) = router.receive_all().unwrap() {
                    let frames: Vec<&[u8]> = message.iter().map(|frame| frame.bytes()).collect();
                    answer(&mut router, frames[0], &frames[1..]);
                }
                thread::sleep(Duration::from_millis(1));
            }
        };
        let url = format!("{place}/{}", hexadecimal(&pair.public));
        Some(Server { url, is_over, thread: Some(thread::spawn(serve)) })
    }

    fn client(&self, world: &str) -> Result<Client> {
        let secret = Secret::World(&KEY);
        Client::open(library(&[]).unwrap(), world, &self.url, secret, ANSWER, &|| Ok(()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn answer(router: &mut Socket, route: &[u8], frames: &[&[u8]]) {
    let end = frames.iter().position(|frame| frame.is_empty()).unwrap_or(frames.len());
    let (request, body) = (frames[..end].concat(), frames[end..].concat());
    let request: Value = serde_json::from_slice(&request).unwrap();
    let mut send = |text: Value, bodies: &[&[u8]]| {
        let text = text.to_string();
        let frames = [&[route, text.as_bytes()], bodies].concat();
        let mut frames = router.copies(&frames).unwrap();
        router.send(&mut frames).unwrap();
    };
    let number = &request["number"];
    match request["ask"].as_str().unwrap() {
        "hello" => send(json!({"number": number, "world": "w"}), &[]),
        "silence" => {}
        "refuse" => {
            send(json!({"number": number, "error": "NameInUse", "message": "it is B's"}), &[]);
        }
        "publish" => {
            send(json!({"number": null, "version": request["version"]}), &[]);
            send(json!({"number": number}), &[]);
        }
        "echo" => send(json!({"number": number, "details": request["details"]}), &[&body, b"2nd"]),
        kind => panic!("{kind}"),
    }
}

fn ask(client: &Client, kind: &str, details: Value) -> Result<(Value, Vec<Vec<u8>>)> {
    let Value::Object(details) = details else { panic!("{details}") };
    let (answer, bodies) = client.exchange(kind, details, b"", ANSWER, &|| Ok(()))?;
    Ok((Value::Object(answer), bodies))
}

#[test]
fn a_request_gets_its_answer_or_the_servers_error() {
    let Some(server) = Server::new() else { return };
    let client = server.client("w").unwrap();
    assert_eq!((client.world(), client.key()), ("w", &KEY[..]));
    let (long, body) = ("é".repeat(100_000), vec![3; 100_000]);
    let details = Map::from_iter([("details".to_owned(), long.clone().into())]);
    let (found, bodies) = client.exchange("echo", details, &body, ANSWER, &|| Ok(())).unwrap();
    assert_eq!((&found["details"], bodies), (&long.into(), vec![body, b"2nd".to_vec()]));
    let refused = ask(&client, "refuse", json!({})).unwrap_err();
    assert_eq!((refused.kind, refused.text.as_str()), (Kind::NameInUse, "it is B's"));
    client.close();
    client.close();
    assert_eq!(ask(&client, "echo", json!({})).unwrap_err().kind, Kind::Closed);
}

#[test]
fn another_world_is_named() {
    let Some(server) = Server::new() else { return };
    let other = server.client("v").err().unwrap();
    assert_eq!(other.kind, Kind::WorldGone);
    assert!(other.text.ends_with(" keeps world 'w', not 'v'"), "{other}");
}

#[test]
fn a_call_without_answer_ends_at_a_signal_or_its_limit() {
    let Some(server) = Server::new() else { return };
    let client = server.client("w").unwrap();
    let silence = |limit, signals: super::Signals| {
        client.exchange("silence", Map::new(), b"", limit, signals).unwrap_err()
    };
    let interrupt = || Err(Error::new(Kind::Interrupted, "stop"));
    for subscribed in [false, true] {
        if subscribed {
            client.subscribe(|_| ()).unwrap();
        }
        assert_eq!(silence(Duration::MAX, &interrupt).kind, Kind::Interrupted);
        let late = silence(Duration::from_millis(1), &|| Ok(()));
        assert_eq!(late.kind, Kind::WorldGone);
        assert!(late.text.contains("does not answer at tcp://127.0.0.1:"), "{late}");
        assert_eq!(ask(&client, "echo", json!({"details": 7})).unwrap().0["details"], 7);
    }
}

#[test]
fn threads_ask_at_once_and_a_subscriber_hears_all() {
    let Some(server) = Server::new() else { return };
    let client = server.client("w").unwrap();
    // A subscriber hears at once that there is no connection yet.
    ask(&client, "echo", json!({})).unwrap();
    let (heard, hears) = channel();
    thread::scope(|threads| {
        for thread in 0..4 {
            let client = &client;
            threads.spawn(move || {
                for nth in 0..100 {
                    let own = json!([thread, nth]);
                    let answer = ask(client, "echo", json!({"details": own})).unwrap().0;
                    assert_eq!(answer["details"], own);
                }
            });
        }
        let on_update = move |state: Option<&[u8]>| heard.send(state.map(<[u8]>::to_vec)).unwrap();
        client.subscribe(on_update).unwrap();
        for nth in 0..50 {
            ask(&client, "publish", json!({"version": nth})).unwrap();
        }
    });
    for nth in 0..50 {
        let state: Value = serde_json::from_slice(&hears.recv().unwrap().unwrap()).unwrap();
        assert_eq!(state["version"], nth);
    }
    assert!(client.subscribe(|_| ()).is_err());
    drop(server);
    assert_eq!(hears.recv().unwrap(), None, "it is silent");
    let gone = ask(&client, "echo", json!({})).unwrap_err();
    assert_eq!(gone.kind, Kind::WorldGone);
}

#[test]
fn a_client_is_closed_at_any_moment() {
    let Some(server) = Server::new() else { return };
    for nth in 0..30 {
        let client = server.client("w").unwrap();
        thread::scope(|threads| {
            let asking = threads.spawn(|| ask(&client, "silence", json!({})).unwrap_err().kind);
            if nth % 2 == 0 {
                client.subscribe(|_| ()).unwrap();
            }
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_micros(300 * nth) {
                thread::yield_now();
            }
            client.close();
            assert_eq!(asking.join().unwrap(), Kind::Closed);
        });
    }
}

//! The facts of a waiting MPI call: "MPI_Recv(source=1, tag=7)", and whom it waits for.
//!
//! In the same form as those of Python's calls (`sfm_kernel/endpoint/seen.py`), so that one graph
//! of waits is made of both. Made only when a call is seen to wait, or polls without success.

use serde_json::{json, Value};

use crate::name::Name;
use crate::wait_facts;

/// A call as the program has written it.
pub struct Call {
    pub name: String,
    /// The arguments that distinguish it from others, by the names that the standard gives them.
    pub arguments: Vec<(&'static str, String)>,
    pub waits: Waits,
    pub details: Details,
}

/// What an explanation can also name. Observers get as much of it as there is room for.
#[derive(Default)]
pub struct Details {
    /// The communicator of a collective call: a key that is the same at all its processes, and its
    /// name.
    pub group: Option<(String, String)>,
    /// The number of the collective call there.
    pub turn: Option<u64>,
    /// The processes of the communicator, if they are few.
    pub members: Vec<Name>,
    /// The key of the communicator of any other call.
    pub on: Option<String>,
    /// The latest collective calls of this process on the communicator, by their numbers.
    pub made: Vec<(u64, EarlierCall)>,
    /// The operations that a call waits for, if they were begun before, and their number.
    pub open: Vec<Begun>,
    pub count: usize,
    /// The names of contexts that messages in the inbox have, by the contexts' numbers.
    pub contexts: Vec<(u64, String)>,
}

/// A call that the program has made before.
#[derive(Clone, PartialEq, Eq)]
pub struct EarlierCall {
    pub text: String,
    /// As in `sites::Site`.
    pub code: String,
    pub line: u32,
}

/// An operation that was begun and has not ended.
pub struct Begun {
    pub call: EarlierCall,
    /// For a receive: its source and tag (None: any), and its context.
    pub receive: Option<(Option<i64>, Option<i64>, u64)>,
}

/// The goal of a waiting call.
pub enum Waits {
    /// A message with this source and tag (None: any), in the communicator's context; from one of
    /// these peers (None: from any).
    Message { peers: Option<Vec<Name>>, source: Option<i64>, tag: Option<i64>, context_id: u64 },
    /// The same collective call of one of these members.
    Members(Vec<Name>),
    /// An action of one of these processes (None: of any): a send's receiver, a request's partner.
    Others(Option<Vec<Name>>),
}

/// Arguments in one line.
pub fn shown(arguments: &[(&'static str, String)]) -> String {
    let shown = arguments.iter().map(|(name, value)| format!("{name}={value}"));
    shown.collect::<Vec<_>>().join(", ")
}

impl Call {
    /// The call in one line.
    pub fn text(&self) -> String {
        format!("{}({})", self.name, shown(&self.arguments))
    }

    /// As JSON: see `sfm_kernel/observe/schema.json`, "wait".
    pub fn facts(&self) -> String {
        self.as_json().to_string()
    }

    /// The facts of a call that has polled without success.
    pub fn asked(&self) -> String {
        wait_facts::for_poll(&self.text(), &self.facts())
    }

    fn as_json(&self) -> Value {
        let mut facts = self.as_wait();
        self.details.add_to(&mut facts);
        facts
    }

    fn as_wait(&self) -> Value {
        let facts = |kind, peers, template: &[_], context_id: &str| {
            wait_facts::facts(kind, peers, false, template, context_id, &self.text())
        };
        match &self.waits {
            Waits::Message { peers, source, tag, context_id } => {
                let template = template_of(*source, *tag);
                facts("recv", peers.as_deref(), &template, &format!("{context_id:x}"))
            }
            // As Python's collectives do: a receive without a template.
            Waits::Members(peers) => facts("recv", Some(peers), &[], ""),
            Waits::Others(peers) => facts("other", peers.as_deref(), &[], ""),
        }
    }
}

fn template_of(source: Option<i64>, tag: Option<i64>) -> Vec<wait_facts::Condition> {
    let shown = |(name, value): (&str, Option<i64>)| {
        value.map(|value| (name.to_owned(), value.to_string(), false))
    };
    [("src", source), ("tag", tag)].into_iter().filter_map(shown).collect()
}

/// Bytes of facts that a segment has room for, with some to spare (core: segment.rs).
const ROOM: usize = 1950;

/// Facts with details, as many as there is room for.
struct Facts<'a> {
    facts: &'a mut Value,
    used: usize,
    codes: Vec<String>,
}

impl Facts<'_> {
    /// Add one item to a list, or leave it out.
    fn push(&mut self, list: &str, item: Value) {
        let length = item.to_string().len() + 1;
        if self.used + length <= ROOM {
            self.used += length;
            match &mut self.facts[list] {
                Value::Array(items) => items.push(item),
                empty => {
                    self.used += list.len() + 6;
                    *empty = json!([item]);
                }
            }
        }
    }

    /// The index of a code's text, which stands in the facts once.
    fn code(&mut self, code: &str) -> usize {
        self.codes.iter().position(|known| known == code).unwrap_or_else(|| {
            self.push("codes", code.into());
            self.codes.push(code.to_owned());
            self.codes.len() - 1
        })
    }
}

impl Details {
    fn add_to(&self, facts: &mut Value) {
        if let Some((key, title)) = &self.group {
            facts["group"] = json!([key, wait_facts::short(title.clone())]);
        }
        if let Some(key) = &self.on {
            facts["on"] = key.as_str().into();
        }
        if !self.members.is_empty() {
            facts["members"] = json!(self.members);
        }
        if let Some(turn) = self.turn {
            facts["turn"] = turn.into();
        }
        if self.count > 0 {
            facts["count"] = self.count.into();
        }
        let used = facts.to_string().len();
        let mut facts = Facts { facts, used, codes: Vec::new() };
        for Begun { call, receive } in &self.open {
            let code = facts.code(&call.code);
            let (template, context_id) = match receive {
                Some((source, tag, context)) => {
                    (Some(template_of(*source, *tag)), format!("{context:x}"))
                }
                None => (None, String::new()),
            };
            facts.push("open", json!([call.text, code, call.line, context_id, template]));
        }
        for (number, call) in &self.made {
            let code = facts.code(&call.code);
            facts.push("made", json!([number, call.text, code, call.line]));
        }
        for (context, name) in &self.contexts {
            facts.push("contexts", json!([format!("{context:x}"), name]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(waits: Waits) -> Value {
        let details = Details::default();
        Call { name: "MPI_X".into(), arguments: vec![], waits, details }.as_json()
    }

    #[test]
    fn details_are_left_out_where_there_is_no_room() {
        let earlier =
            |line| EarlierCall { text: "MPI_Bcast(root=0)".into(), code: "x".repeat(90), line };
        let made = (0..99).map(|nth| (nth, earlier(nth as u32))).collect();
        let details = Details { made, ..Details::default() };
        let (name, waits) = ("MPI_Bcast".into(), Waits::Members(vec![]));
        let call = Call { name, arguments: vec![], waits, details };
        let (facts, length) = (call.as_json(), call.facts().len());
        let made = facts["made"].as_array().expect("a list");
        assert!(length < 2048 && (20..99).contains(&made.len()), "{length} {}", made.len());
        assert_eq!(
            (&made[7], facts["codes"].as_array().map(Vec::len)),
            (&json!([7, "MPI_Bcast(root=0)", 0, 7]), Some(1))
        );
    }

    #[test]
    fn a_receive_names_its_peers_and_its_template() {
        let peers = Some(vec![Name::Rank(5)]);
        let waits = Waits::Message { peers, source: Some(1), tag: Some(7), context_id: 0xab };
        let arguments = vec![("source", "1".into()), ("tag", "7".into())];
        let details = Details::default();
        let call = Call { name: "MPI_Recv".into(), arguments, waits, details };
        assert_eq!(call.text(), "MPI_Recv(source=1, tag=7)");
        let facts = call.as_json();
        assert_eq!(facts["template"], json!([["src", "1", false], ["tag", "7", false]]));
        assert_eq!((&facts["peers"], &facts["context_id"]), (&json!([5]), &json!("ab")));
        assert_eq!(facts["purpose"], "MPI_Recv(source=1, tag=7)");
    }

    #[test]
    fn a_receive_from_any_source_names_no_peers() {
        let facts = facts(Waits::Message { peers: None, source: None, tag: None, context_id: 1 });
        assert_eq!((&facts["peers"], &facts["template"]), (&Value::Null, &json!([])));
    }

    #[test]
    fn a_collective_call_and_a_send_wait_for_some() {
        let some = || vec![Name::Rank(0), Name::Rank(2)];
        assert_eq!(facts(Waits::Members(some()))["kind"], "recv");
        let facts = facts(Waits::Others(Some(some())));
        assert_eq!((&facts["peers"], &facts["kind"]), (&json!([0, 2]), &json!("other")));
    }
}

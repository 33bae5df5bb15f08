//! What observers are told of a call of MPI that waits: "MPI_Recv(source=1, tag=7)", and for whom.
//!
//! The same as Python's calls tell (`sfm_kernel/mpi/engine/progress.py`), so that one graph of who
//! waits for whom is made of both. Made only when a call is seen to wait, or asks in vain.

use serde_json::{json, Value};

use crate::name::Name;
use crate::wait_facts;

/// A call, as the program has written it.
pub struct Call {
    pub name: String,
    /// Those of its arguments that tell it from others, by the names that the standard gives them.
    pub arguments: Vec<(&'static str, String)>,
    pub waits: Waits,
}

/// What a call waits for.
pub enum Waits {
    /// A message with this source and tag (None: any), in the space of messages that the
    /// communicator's are in; from one of these (None: from anybody).
    Message { peers: Option<Vec<Name>>, source: Option<i64>, tag: Option<i64>, context_id: u64 },
    /// The part that one of these has in the same collective call.
    Members(Vec<Name>),
    /// That one of these does something (None: anybody): a send's receiver, a request's partner.
    Others(Option<Vec<Name>>),
}

/// Arguments in a line.
pub fn shown(arguments: &[(&'static str, String)]) -> String {
    let shown = arguments.iter().map(|(name, value)| format!("{name}={value}"));
    shown.collect::<Vec<_>>().join(", ")
}

impl Call {
    /// In a line.
    pub fn text(&self) -> String {
        format!("{}({})", self.name, shown(&self.arguments))
    }

    /// As JSON: see `sfm_kernel/observe/schema.json`, "wait".
    pub fn facts(&self) -> String {
        self.told().to_string()
    }

    /// The same of a call that has asked in vain.
    pub fn asked(&self) -> String {
        wait_facts::of_poll(&self.text(), &self.facts())
    }

    fn told(&self) -> Value {
        let text = self.text();
        let told = |kind: &str, peers: Option<&[Name]>| {
            json!({
                "kind": kind, "peers": peers, "known": 0.0, "all": false, "template": [],
                "context_id": "", "purpose": text,
            })
        };
        match &self.waits {
            Waits::Message { peers, source, tag, context_id } => {
                let mut told = told("recv", peers.as_deref());
                let conditions = [("src", source), ("tag", tag)].into_iter();
                let shown = |(name, value): (_, &Option<i64>)| {
                    value.map(|value| (name, value.to_string(), false))
                };
                told["template"] = json!(conditions.filter_map(shown).collect::<Vec<_>>());
                told["context_id"] = format!("{context_id:x}").into();
                told
            }
            // As Python's collectives do: a receive of which nobody is to know what it is for.
            Waits::Members(peers) => told("recv", Some(peers)),
            Waits::Others(peers) => told("other", peers.as_deref()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(waits: Waits) -> Value {
        Call { name: "MPI_X".into(), arguments: vec![], waits }.told()
    }

    #[test]
    fn a_receive_tells_of_whom_and_what_it_wants() {
        let peers = Some(vec![Name::Rank(5)]);
        let waits = Waits::Message { peers, source: Some(1), tag: Some(7), context_id: 0xab };
        let arguments = vec![("source", "1".into()), ("tag", "7".into())];
        let call = Call { name: "MPI_Recv".into(), arguments, waits };
        assert_eq!(call.text(), "MPI_Recv(source=1, tag=7)");
        let told = call.told();
        assert_eq!(told["template"], json!([["src", "1", false], ["tag", "7", false]]));
        assert_eq!((&told["peers"], &told["context_id"]), (&json!([5]), &json!("ab")));
        assert_eq!(told["purpose"], "MPI_Recv(source=1, tag=7)");
    }

    #[test]
    fn whoever_waits_for_anybody_names_nobody() {
        let told = told(Waits::Message { peers: None, source: None, tag: None, context_id: 1 });
        assert_eq!((&told["peers"], &told["template"]), (&Value::Null, &json!([])));
    }

    #[test]
    fn a_collective_call_and_a_send_wait_for_some() {
        let some = || vec![Name::Rank(0), Name::Rank(2)];
        assert_eq!(told(Waits::Members(some()))["kind"], "recv");
        let told = told(Waits::Others(Some(some())));
        assert_eq!((&told["peers"], &told["kind"]), (&json!([0, 2]), &json!("other")));
    }
}

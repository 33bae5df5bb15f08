//! The facts of a waiting MPI call: "MPI_Recv(source=1, tag=7)", and whom it waits for.
//!
//! In the same form as those of Python's calls (`sfm_kernel/endpoint/seen.py`), so that one graph
//! of waits is made of both. Made only when a call is seen to wait, or polls without success.

use serde_json::Value;

use crate::name::Name;
use crate::wait_facts;

/// A call as the program has written it.
pub struct Call {
    pub name: String,
    /// The arguments that distinguish it from others, by the names that the standard gives them.
    pub arguments: Vec<(&'static str, String)>,
    pub waits: Waits,
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
        let facts = |kind, peers, template: &[_], context_id: &str| {
            wait_facts::facts(kind, peers, false, template, context_id, &self.text())
        };
        match &self.waits {
            Waits::Message { peers, source, tag, context_id } => {
                let conditions = [("src", source), ("tag", tag)].into_iter();
                let shown = |(name, value): (&str, &Option<i64>)| {
                    value.map(|value| (name.to_owned(), value.to_string(), false))
                };
                let template: Vec<_> = conditions.filter_map(shown).collect();
                facts("recv", peers.as_deref(), &template, &format!("{context_id:x}"))
            }
            // As Python's collectives do: a receive without a template.
            Waits::Members(peers) => facts("recv", Some(peers), &[], ""),
            Waits::Others(peers) => facts("other", peers.as_deref(), &[], ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn facts(waits: Waits) -> Value {
        Call { name: "MPI_X".into(), arguments: vec![], waits }.as_json()
    }

    #[test]
    fn a_receive_names_its_peers_and_its_template() {
        let peers = Some(vec![Name::Rank(5)]);
        let waits = Waits::Message { peers, source: Some(1), tag: Some(7), context_id: 0xab };
        let arguments = vec![("source", "1".into()), ("tag", "7".into())];
        let call = Call { name: "MPI_Recv".into(), arguments, waits };
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

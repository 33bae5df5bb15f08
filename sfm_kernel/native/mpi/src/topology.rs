//! Topologies: where the processes of a communicator stand.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cart(crate::cart::Cart),
}

"""SpeedesComm's values: simulation times, destinations, net types, the input file."""

from __future__ import annotations

import inspect
import itertools
import pickle
import random
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfm_kernel import speedes
from sfm_kernel.speedes import NET_DOUBLE, NET_INT, Destination, SimTime, net_array, net_struct
from sfm_kernel.speedes.contents import Contents
from sfm_kernel.speedes.machines import by_machine, tree
from sfm_kernel.speedes.startup import _read

NAN = float("nan")

# --- all calls ---------------------------------------------------------------------------------


def calls() -> list[tuple[str, str]]:
    """(name here, original) of the table in the package's docstring."""
    found = re.findall(r"^(\w+) +((?:\w+ )+\*?SpComm_.*\))$", speedes.__doc__ or "", re.MULTILINE)
    return [(name, original) for name, original in found]


def test_all_calls_of_the_paper_are_there() -> None:
    """It counts 25, and lists 24: of 11 for messages ("6 send and 4 receive"), 10."""
    assert len({original for _, original in calls()}) == len(calls())
    state, messages = ("get_num", "get_node"), ("send", "multicast", "broadcast", "receive")
    listed = {"start": 0, "state": 0, "messages": 0, "synchronisation": 0}
    for name, _ in calls():
        if name == "start_up":
            listed["start"] += 1
        elif name.startswith(state):
            listed["state"] += 1
        elif name.removeprefix("coordinated_") in messages or name == "get_pending_message":
            listed["messages"] += 1
        else:
            listed["synchronisation"] += 1
    assert listed == {"start": 1, "state": 2, "messages": 10, "synchronisation": 11}
    # The sum of SimTimes is none of them.
    assert ("global_min", "SpSimTime SpComm_GlobalMin(SpSimTime simTime)") in calls()
    assert ("global_sum", "SpSimTime SpComm_GlobalSum(SpSimTime simTime)") not in calls()


@pytest.mark.parametrize(("name", "original"), calls(), ids=[original for _, original in calls()])
def test_each_call_names_its_original(name: str, original: str) -> None:
    call = speedes.start_up if name == "start_up" else getattr(speedes.SpeedesComm, name)
    assert call.__name__ == name
    function = re.search(r"SpComm_\w+", original)
    assert function is not None and re.search(rf"{function[0]}\(", inspect.getdoc(call) or "")


def test_every_public_call_is_in_the_table() -> None:
    public = {name for name, _ in inspect.getmembers(speedes.SpeedesComm, inspect.isfunction)}
    public = {name for name in public if not name.startswith("_")}
    assert public - {"close"} == {name for name, _ in calls()} - {"start_up"}


# --- SimTime -----------------------------------------------------------------------------------


def test_simtime_is_ordered_as_its_parts() -> None:
    rng = random.Random(1)
    parts = [(rng.choice([-1.0, 0.0, 2.5]), *rng.choices([-1, 0, 1], k=4)) for _ in range(60)]
    for p, q in itertools.product(parts, repeat=2):
        a, b = SimTime(*p), SimTime(*q)
        assert (a < b, a <= b, a == b, a != b, a >= b, a > b) == (
            p < q, p <= q, p == q, p != q, p >= q, p > q,
        )  # fmt: skip
        assert a != b or hash(a) == hash(b)
    assert [(t.time, *t.priorities) for t in sorted(SimTime(*p) for p in parts)] == sorted(parts)


def test_simtime_and_numbers() -> None:
    assert SimTime(2.5).priorities == (0, 0, 0, 0) and float(SimTime(2.5, 1)) == 2.5
    assert SimTime(2.0) == 2 and hash(SimTime(2.0)) == hash(2)
    assert SimTime(2.0, 1) > 2 > SimTime(2.0, -1) and SimTime(2) > 1.5
    assert SimTime(1.5, 1, 2, 3, 4) + SimTime(1, 1, 1, 1, 1) == SimTime(2.5, 2, 3, 4, 5)
    assert sum([SimTime(1.0), SimTime(2.0, 5)]) == SimTime(3.0, 5)
    assert SimTime(np.float32(0.5), np.int8(3)) == SimTime(0.5, 3)
    assert SimTime(float("inf")) > SimTime(1e308, 5)
    assert SimTime(1) != "1" and SimTime(1) != NAN
    assert pickle.loads(pickle.dumps(SimTime(1.5, 2))) == SimTime(1.5, 2)
    assert repr(SimTime(1.5)) == "SimTime(1.5)" and eval(repr(SimTime(1, 2))) == SimTime(1, 2)


def test_simtime_refuses_what_has_no_order() -> None:
    with pytest.raises(ValueError, match="NaN, which is neither before nor after"):
        SimTime(NAN)
    for huge in (10**400, -(10**400), Fraction(10**400)):
        with pytest.raises(ValueError, match=r"larger than any: use a coarser unit, or float"):
            SimTime(huge)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="larger than any"):
        SimTime(1.0) + 10**400
    with pytest.raises(ValueError, match="cannot be NaN"):
        SimTime(np.inf) + SimTime(-np.inf)
    assert SimTime(1e308) < 10**400 and SimTime(1.0) != 10**400
    with pytest.raises(TypeError, match="time is a number, not '1'"):
        SimTime("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"priority2 is an integer, not 0\.5"):
        SimTime(1.0, 0, 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        SimTime(1.0) < NAN  # noqa: B015
    with pytest.raises(TypeError):
        SimTime(1.0) < "2"  # noqa: B015
    with pytest.raises(AttributeError):
        SimTime(1.0).time = 2.0  # type: ignore[misc]


# --- Destination -------------------------------------------------------------------------------


def test_destination_has_the_methods_of_the_paper() -> None:
    dest = Destination()
    assert dest.get_first_node() is None and dest.get_next_node() is None
    for node in (5, 0, 130, 5):
        dest.set(node)
    assert [dest.get_first_node()] + [dest.get_next_node() for _ in range(4)] == [
        0, 5, 130, None, None,
    ]  # fmt: skip
    assert dest.get_first_node() == 0
    dest.reset(5)
    dest.set(7)
    assert dest.get_next_node() == 7
    dest.reset(99)
    assert list(dest) == [0, 7, 130] and len(dest) == 3 and 7 in dest and 5 not in dest
    assert Destination(range(3)) == Destination([2, 1, 0, 0]) != Destination([1])
    assert repr(Destination([2, 1])) == "Destination([1, 2])"


def test_destination_refuses_what_is_no_node() -> None:
    with pytest.raises(ValueError, match="no node -1"):
        Destination([-1])
    with pytest.raises(TypeError, match="a node is an integer, not 'A'"):
        Destination().set("A")  # type: ignore[arg-type]


# --- net types ---------------------------------------------------------------------------------


def test_net_types_are_the_same_bytes_on_every_machine() -> None:
    assert net_array([1, -2], NET_INT).tobytes().hex() == "01000000feffffff"
    assert net_array([1.0]).tobytes().hex() == "000000000000f03f"
    # An array on a machine of the other byte order, and the bytes that it would send.
    swapped = np.array([1, -2], ">i4")
    assert net_array(swapped, NET_INT).tobytes().hex() == "01000000feffffff"
    assert net_array(swapped.tobytes(), ">i4").tolist() == [1, -2]


def test_a_structure_is_sent_as_bytes_and_read_anywhere() -> None:
    missile = net_struct(id=NET_INT, position=(NET_DOUBLE, 3), speed=np.double)
    assert missile.itemsize == 36
    sent = net_array([(7, (1.0, 2.0, 3.0), 0.5)], missile)
    received = bytearray(sent.tobytes())
    there = net_array(received, missile)
    assert there["id"] == 7 and there["position"].sum() == 6.0
    there["id"] += 1  # a view, which converts as it is read and written
    assert received[:4] == (8).to_bytes(4, "little")
    # The same structure as a machine with the other order would lay it out has the same values.
    other = sent.astype(missile.newbyteorder(">"))
    assert other.tobytes() != sent.tobytes()
    assert net_array(other.astype(missile), missile).tobytes() == sent.tobytes()


def test_net_types_refuse_what_they_cannot_hold() -> None:
    with pytest.raises(ValueError, match="6 bytes are no whole number of int32 with 4 each"):
        net_array(b"123456", NET_INT)
    with pytest.raises(TypeError, match="'x' holds Python objects"):
        net_struct(x=object)
    assert net_array(np.array([1.5]), np.dtype("f8")).dtype.str == "<f8"


# --- what a message carries --------------------------------------------------------------------


@pytest.mark.parametrize("nbytes", [0, 1, 10_000])
def test_all_that_has_bytes_is_taken(nbytes: int) -> None:
    data = bytes(i % 251 for i in range(nbytes))
    for given in (data, bytearray(data), memoryview(data), memoryview(data * 2)[:nbytes]):
        contents = Contents(given)
        assert contents.nbytes == nbytes and contents.bytes.tobytes() == data
        assert contents.copied() == data and isinstance(contents.copied(), bytearray)
    strided = Contents(memoryview(data)[::2])
    assert strided.copied() == data[::2] and strided.nbytes == len(data[::2])


def test_a_memoryview_in_any_order_is_sent_by_its_rows() -> None:
    numbers = np.arange(2000.0).reshape(40, 50)  # large enough to go as an array
    for array in (numbers, np.asfortranarray(numbers), numbers[:, ::2], numbers[::-1]):
        assert Contents(memoryview(array)).bytes.tobytes() == array.tobytes()


def test_contents_without_bytes_are_refused() -> None:
    for given in ("text", 5, [1, 2], None):
        with pytest.raises(TypeError, match="data are bytes or a NumPy array"):
            Contents(given)
    with pytest.raises(TypeError, match="Python objects"):
        Contents(np.array([{}, None]))
    with pytest.raises(TypeError, match="masked"):
        Contents(np.ma.masked_array([1, 2], [True, False]))


# --- the tree ----------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", range(1, 20))
@pytest.mark.parametrize("machines", [1, 2, 3, 7])
def test_the_tree_reaches_every_node_once(nodes: int, machines: int) -> None:
    firsts = [min(node % machines, nodes - 1) for node in range(nodes)]
    groups = by_machine(firsts)
    assert sorted(itertools.chain(*groups)) == list(range(nodes))
    places = [tree(groups, node) for node in range(nodes)]
    assert places[0].parent is None
    for node, place in enumerate(places):
        for child in place.children:
            assert places[child].parent == node
        if place.parent is not None:
            assert node in places[place.parent].children
            same = firsts[node] == firsts[place.parent]
            assert same or node == firsts[node]  # only local nodes 0 talk to other machines
        depth, up = 0, place.parent
        while up is not None:
            depth, up = depth + 1, places[up].parent
        largest = max(map(len, groups))
        assert depth <= (largest - 1).bit_length() + (len(groups) - 1).bit_length()


def test_table_1_of_the_paper() -> None:
    """Box 0 has nodes 0, 1 and 3, box 1 has 2 and 4."""
    assert by_machine([0, 0, 2, 0, 2]) == [[0, 1, 3], [2, 4]]
    assert tree([[0, 1, 3], [2, 4]], 0).children == (1, 3, 2)
    assert tree([[0, 1, 3], [2, 4]], 4).parent == 2


# --- the input file ----------------------------------------------------------------------------


def test_the_input_file(tmp_path: Path) -> None:
    file = tmp_path / "speedes.toml"
    file.write_text("local_nodes = 3  # on this machine\ngroup_id = 7\n")
    assert _read(file) == {"local_nodes": 3, "total_nodes": 0, "group_id": 7}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("local_nodes 4", "is no TOML"),
        ("\x00", "is no TOML"),
        ("localNodes = 4", "has 'localNodes', which is none of local_nodes, total_nodes, group_id"),
        ("total_nodes = -1", "total_nodes is 0 or more, not -1"),
        ("total_nodes = '4'", "total_nodes is an integer, not '4'"),
        ("total_nodes = 4.5", "total_nodes is an integer"),
        ("[total_nodes]", "total_nodes is an integer"),
    ],
)
def test_a_broken_input_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"broken\.toml") as error:
        _read(file)
    assert says in str(error.value)


def test_an_input_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no input file .*none\.toml"):
        _read(tmp_path / "none.toml")

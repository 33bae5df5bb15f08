"""Sentences about many processes: equal ones stand once, and the cause of a hang stands first."""

from __future__ import annotations

from typing import Any

import pytest

from sfm_kernel.observe.explain.together import merged, ranges
from tests.observe.pictures import idle, judge, process, recv


def failed(name: object, error: str = "NameError", line: int = 3, cell: int | None = 2) -> Any:
    where = {"file": "a.py", "line": line, "function": None, "cell": cell, "cell_id": None}
    return idle(name, failed={"error": error, "where": where})


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([0, 1, 2, 3], ["0", "1", "2", "3"]),
        (range(50), ["0–49"]),
        ([0, 2, 3, 4, 5, 6, "A", "home"], ["0", "2–6", "A", "home"]),
        ([], []),
    ],
)
def test_consecutive_ranks_are_a_range(names: Any, shown: list[str]) -> None:
    assert ranges(names) == shown


def test_what_is_said_of_one_alone_is_not_said_of_several() -> None:
    own = "waits for recv(). Its message lies in 3's inbox, unreceived."
    said = merged([(0, "0 waits for recv()."), (1, f"1 {own}"), (2, f"2 {own}")])
    assert said == [([0], "waits for recv()."), ([], f"1 {own}"), ([], f"2 {own}")]


def test_verbs_and_pronouns_are_plural() -> None:
    text = "is in send: it waits for room in C's inbox, and waits."
    (found,) = merged((name, f"{name} {text}") for name in ("B", "A"))
    assert found == (["A", "B"], "are in send: they wait for room in C's inbox, and wait.")


def test_fifty_in_one_call_are_one_sentence() -> None:
    found = judge(*(recv(rank) for rank in range(50)))
    assert found["title"] == "Deadlock: 0–49 wait for a message that nobody will send"
    assert found["sentences"][0] == "0–49 wait for the text. No process is left that could send."


def test_the_cause_stands_first_and_who_waits_for_it_below() -> None:
    found = judge(failed(0), recv(1, 0), recv(2, 1, text="m"), home(1, 2))
    title = "Deadlock: 0 ended cell 2 with NameError in line 3; 1 and 2 wait for it"
    assert found["title"] == title
    assert found["sentences"] == ["1 waits for the text.", "2 waits for m."]
    assert {one["name"]: one["text"] for one in found["processes"]}[0] == (
        "0 ended cell 2 with NameError in line 3."
    )


def test_several_causes() -> None:
    found = judge(failed(0), failed(1), failed(2, "OSError", 7), recv(3, 0, 2), home(3))
    assert found["title"] == (
        "Deadlock: 0 ended cell 2 with NameError in line 3; 2 ended cell 2 with OSError in line 7; "
        "3 waits for them"
    )
    assert "1 ended cell 2 with NameError in line 3." in found["sentences"]


def test_an_error_beside_a_ring_is_not_its_cause() -> None:
    found = judge(failed("C", cell=None), recv("A", "B"), recv("B", "A"), home("A", "B"))
    assert found["title"] == "Deadlock: A → B → A"
    assert "C ended its cell with NameError in a.py, line 3." in found["sentences"]


def home(*awaited: object) -> Any:
    """A notebook that waits for a cell on these engines."""
    wait = {"kind": "cell", "text": "the cell", "template": [], "peers": list(awaited), "all": True}
    wait |= {"until": None, "context_id": "", "purpose": ""}
    return process("home", kind="notebook", state="blocked in cell", wait=wait, settled=True)

"""Snapshots, diagnoses and timelines of real worlds are valid by the schema, whatever is in them;
and all code that makes, checks or extends one of its shapes knows the fields that the schema has.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfm_kernel import _native
from sfm_kernel.observe import explain, snapshot
from sfm_kernel.observe.snapshot import segments, states
from sfm_kernel.observe.states import (
    FIELDS,
    SCHEMA,
    are_sound,
    damaged,
    made_of,
    parse,
    parse_others,
)
from sfm_kernel.observe.states import check as check_state
from sfm_kernel.observe.timeline import Recorder
from tests.observe.harness import Run, running
from tests.observe.pictures import Dict, check
from tests.observe.states import HTML, STATES, nasty, occupied
from tests.unit.states import state
from tests.waiting import wait_until


def told(run: Run) -> tuple[Dict, Dict, Dict]:
    """Snapshot, diagnosis and timeline: valid, and JSON as it is."""
    picture, diagnosis = snapshot(run.folder), explain(run.folder)
    timeline = Recorder(run.folder).update()
    for what, one in (("snapshot", picture), ("diagnosis", diagnosis), ("timeline", timeline)):
        check(what, one)
        assert json.loads(json.dumps(one, allow_nan=False)) == one
        json.dumps(one, ensure_ascii=False).encode()  # no lone surrogates
    return picture, diagnosis, timeline


def see(run: Run, states: dict[Any, str]) -> None:
    """Wait until the processes are in these states; all snapshots until then are valid."""
    wait_until(
        lambda: (
            {process["name"]: process["state"] for process in told(run)[0]["processes"]} == states
        )
    )


def test_hostile_messages_and_templates() -> None:
    name = f"{HTML}ß" + "→" * 30
    with running(nasty, 2, names=["A", name]) as run:
        see(run, {"A": "blocked in recv", name: "blocked in recv"})
        wait_until(lambda: explain(run.folder)["verdict"] == "deadlock")
        picture, diagnosis, timeline = told(run)
        assert diagnosis["stuck"] == ["A", name]
        receiver = next(process for process in picture["processes"] if process["name"] == name)
        assert receiver["depth"] == 60 and len(receiver["messages"]) == 50
        shown = dict(receiver["messages"][0]["attributes"])
        assert shown["html"] == f"'{HTML}'" and shown["control"] == "'a b c [31m  '"
        assert shown["array"] == "<array: 30x40 of f8>"
        assert max(len(text) for pair in shown.items() for text in pair) < 60
        assert len(timeline["flights"]) == 60


GUEST = """
import sys, sfm_kernel
with sfm_kernel.join(sys.argv[1], "guest", guest=True) as sfm: sfm.recv(src="receives")
"""


def test_all_processes_are_in_the_picture_whatever_they_do() -> None:
    """Valid also while processes hold their GIL, are stopped, or are dead."""
    with running(occupied, 5, names=list(STATES)) as run:
        command = [sys.executable, "-c", GUEST, Path(run.folder).name]
        with subprocess.Popen(command) as guest:
            see(run, STATES | {"guest": "blocked in recv"})
            for name in STATES:
                run.signal(name, signal.SIGSTOP)
            see(run, STATES | {"guest": "blocked in recv"})
            receives = run.process("receives")
            assert receives["messages"][0]["src"] == "sends"
            *shown, rest = receives["others"]
            assert shown[0]["name"].startswith("0 <img") and shown[0]["kind"] == "thread"
            assert rest["kind"] == "more" and len(shown) + int(rest["name"]) == 21
            check_segments(run)
            guest.kill()
        see(run, STATES | {"guest": "ended"})
        assert "guest has ended." in explain(run.folder)["sentences"]


def test_a_summary_that_is_older_than_the_count_shows_no_message(tmp_path: Path) -> None:
    """A process that does not run cannot publish its inbox anew; the count it writes at once."""
    summary = f"0\t8\tn{_native.SUMMARY_UNIT}1\n"
    for depth in (1, 0):
        late = state(summary=summary, depth=depth)
        (shown,) = snapshot(tmp_path, [late])["processes"]
        assert len(shown["messages"]) == depth


# ---- one source --------------------------------------------------------------------------------


def same_fields(place: str, there: Any, schema: str) -> None:
    """Fail, and name the definition in which a field is missing."""
    ours, wanted = set(there), set(SCHEMA["$defs"][schema]["properties"])
    assert not ours - wanted, f'schema.json, "{schema}", lacks what {place} has: {ours - wanted}'
    assert not wanted - ours, f'{place} lacks what schema.json, "{schema}", has: {wanted - ours}'


def test_the_schema_names_what_the_core_names() -> None:
    fields = SCHEMA["$defs"]["segment"]["properties"]
    assert set(fields["state"]["enum"]) == {*_native.STATES, "damaged"}
    assert set(fields["main"]["prefixItems"][0]["enum"]) == set(_native.MAIN_THREAD_STATES)


def test_the_core_gives_the_fields_of_the_schema() -> None:
    with running(nasty, 2) as run:
        wait_until(lambda: explain(run.folder)["verdict"] == "deadlock")
        paths = list(segments(run.folder).values())
        for segment in _native.Observer().segments(paths):
            assert segment is not None
            same_fields("native/python/src/observer.rs", segment, "segment")
        check_segments(run)
        (shown, *_) = snapshot(run.folder)["processes"]
        same_fields("_Process.shown in observe/snapshot.py", shown, "process")


def check_segments(run: Run) -> None:
    """The segments' states, and the JSON in their texts, are valid by jsonschema."""
    fields = SCHEMA["$defs"]["segment"]["properties"]
    for segment in states(run.folder):
        as_sent = json.loads(json.dumps(segment))
        check_state(as_sent)
        check("segment", as_sent)
        facts, info = parse(segment["facts"]), parse(segment["info"])
        others = parse_others(segment["others"])
        contents = [(SCHEMA["$defs"]["info"], info), (fields["others"], others)]
        contents += [(SCHEMA["$defs"]["facts"], facts)] if facts else []
        for schema, content in contents:
            definition = {**SCHEMA, **schema["contentSchema"]}
            jsonschema.Draft202012Validator(definition).validate(content)


def test_states_that_are_made_here_have_the_fields_of_the_schema() -> None:
    segment = damaged("a" * 32, alive=True)
    same_fields("unknown in observe/states.py", segment, "segment")
    as_sent = json.loads(json.dumps(segment))
    check_state(as_sent)
    check("segment", as_sent)
    assert set(SCHEMA["$defs"]["segment"]["required"]) == set(FIELDS)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9) | st.sampled_from(["a" * 16, "a" * 32, "recv", "computes", "{}", "\t\t"]),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.property
@given(st.sampled_from(sorted(FIELDS)), JSON | st.dictionaries(st.text(max_size=5), JSON))
def test_the_checks_refuse_what_the_schema_refuses(field: str, value: Any) -> None:
    """They are stricter than JSON Schema requires: they take 1.0 for no integer."""
    changed = {**state(), field: value}
    schema = {**SCHEMA, "$ref": "#/$defs/segment"}
    if not jsonschema.Draft202012Validator(schema).is_valid(changed):
        with pytest.raises(ValueError, match=field):
            check_state(changed)
    are_sound({**state(), field: value})


def test_a_keyword_that_would_be_passed_over_is_an_error() -> None:
    with pytest.raises(ValueError, match="uniqueItems"):
        made_of({"type": "array", "uniqueItems": True})
    with pytest.raises(ValueError, match="minimum"):
        made_of({"$ref": "#/$defs/text", "minimum": 0})

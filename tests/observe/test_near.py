"""Messages that nearly fit, and the sentences about their differences."""

from __future__ import annotations

from typing import Any

import pytest

from sfm_kernel.endpoint.calls import short
from sfm_kernel.observe.explain import diagnose
from sfm_kernel.observe.explain.graph import Graph
from sfm_kernel.observe.explain.near import fits, near_misses
from sfm_kernel.observe.literals import literal
from tests.observe.pictures import Dict, idle, judge, message, picture, recv


def near(template: Dict, *messages: Dict) -> list[tuple[Any, list[tuple[str, Any, str]]]]:
    """For each near miss its sender; and name, the message's value, the template's value."""
    found = near_misses(recv("A", template=template, messages=list(messages)))
    return [
        (
            near_miss["message"]["src"],
            [(miss["name"], miss["has"], miss["wants"]) for miss in near_miss["misses"]],
        )
        for near_miss in found
    ]


def test_another_value() -> None:
    assert near({"tag": 2}, message("B", tag=3)) == [("B", [("tag", "3", "2")])]


def test_a_missing_attribute() -> None:
    template = {"src": "'B'", "tag": 2}
    assert near(template, message("B", tagg=2)) == [("B", [("tag", None, "2")])]


def test_nothing_in_common_is_not_near() -> None:
    assert near({"tag": 2}, message("B", n=2)) == []
    assert near({}, message("B", n=2)) == []


def test_the_best_come_first_and_the_worse_are_left_out() -> None:
    template = {"a": 1, "b": 1, "c": 1}
    messages = [message("B", a=1), message("C", a=1, b=1), message("D", a=1, c=1, b=2)]
    assert near(template, *messages) == [("C", [("c", None, "1")]), ("D", [("b", "2", "1")])]


def test_at_most_three_the_oldest() -> None:
    messages = [message(name, tag=3) for name in "BCDEF"]
    assert [src for src, _ in near({"tag": 2}, *messages)] == ["B", "C", "D"]


def test_messages_of_another_context_are_not_near() -> None:
    assert near({"tag": 2}, message("B", "1f", tag=3)) == []
    process = recv("A", context_id="1f", template={"tag": 2}, messages=[message("B", "1f", tag=3)])
    assert len(near_misses(process)) == 1


LONG = "x" * 100


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (2, "2"),
        (2, "2.0"),
        (1, "True"),
        (0.5, "0.5"),
        (1e22, "1e22"),
        (None, "None"),
        ("it's", '"it\'s"'),
        ("a\\b", "'a\\b'"),
        ("päth → €", "'päth → €'"),
    ],
)
def test_equal_values(wanted: Any, shown: str) -> None:
    template = [{"name": "tag", "value": short(wanted), "predicate": False}]
    assert (
        near_misses(recv("A", template={"tag": short(wanted)}, messages=[message("B", tag=shown)]))
        == []
    )
    assert fits(template, message("B", tag=shown))


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        ([1, 2], "<object: 30 bytes>"),
        (b"abc", "<bytes: 3>"),
        (1 << 70, "<int of 9 bytes>"),
        (LONG, f"'{LONG[:40]}…'"),
        ("x" * 41, f"'{LONG[:40]}…'"),
        ("a\tb", "'a b'"),
        ({"key": LONG}, "<object: 130 bytes>"),
    ],
)
def test_values_that_are_not_fully_shown_prove_nothing(wanted: Any, shown: str) -> None:
    """Of values that cannot be compared nothing is said, unless the receive has compared them and
    nothing else differs."""
    template = {"data": short(wanted), "tag": 2}
    about = [("tag", "3", "2")]
    assert near(template, message("B", data=shown, tag=3)) == [("B", about)]
    inbox = [message("B", data=shown)]
    only = {"data": short(wanted)}
    assert near_misses(recv("A", template=only, messages=inbox, settled=False)) == []
    assert near(only, *inbox) == [("B", [("data", shown, short(wanted))])]
    assert near({"tag": "<f>", **only}, message("B", data=shown, tag=2)) == [], "which of them?"
    assert not fits(
        [{"name": "data", "value": short(wanted), "predicate": False}], message("B", data=shown)
    )


@pytest.mark.parametrize(
    ("wanted", "shown"),
    [
        (2, "3"),
        (2, "'2'"),
        ("2", "2"),
        (None, "0"),
        ("", "23"),
        ("tag", "'tagg'"),
        ("tag", "'Tag'"),
        ((1 << 53) + 1, str(1 << 53)),
        ("short", f"'{LONG[:40]}…'"),
        ("y" * 41, f"'{LONG[:40]}…'"),
    ],
)
def test_different_values(wanted: Any, shown: str) -> None:
    assert near({"tag": short(wanted)}, message("B", tag=shown)) == [
        ("B", [("tag", shown, short(wanted))])
    ]


def test_a_predicate_is_only_blamed_where_nothing_else_is() -> None:
    """The predicate may never have been called."""
    template = {"tag": 2, "n": "<is_large>"}
    assert near(template, message("B", tag=2, n=1)) == [("B", [("n", "1", "<is_large>")])]
    assert near(template, message("B", tag=3, n=1)) == [("B", [("tag", "3", "2")])]
    assert near(template, message("B", tag=2)) == [("B", [("n", None, "<is_large>")])]
    assert (
        near({"data": "[1, 2]", "n": "<is_large>"}, message("B", data="<object: 9 bytes>", n=1))
        == []
    )
    # One of two predicates has refused.
    assert near({"m": "<f>", "n": "<g>"}, message("B", m=1, n=1)) == []


def told(template: Dict, *messages: Dict, depth: int | None = None) -> str:
    """The sentences about a receive."""
    about = {"messages": list(messages), "depth": len(messages) if depth is None else depth}
    stuck = recv("A", "B", "C", template=template, **about)
    found = diagnose(Graph(picture(stuck, idle("B", kind="process"), idle("C", kind="process"))))
    text: str = found["sentences"][0]
    assert text.startswith("A waits for the text.")
    ended = "B and C have come to their end and send nothing."
    return text.removeprefix("A waits for the text.").strip().removeprefix(ended).strip()


def test_the_sentences_about_near_misses() -> None:
    assert told({"tag": 2}) == ""
    single = "A's inbox holds 1 message that nearly fits: tag is 3, not 2."
    assert told({"tag": 2}, message("B", tag=3)) == single
    two = "A's inbox holds 2 messages that nearly fit: tag is 3, not 2; it has no n."
    template = {"tag": 2, "n": 1}
    assert told(template, message("B", tag=3, n=1), message("B", tag=2)) == two
    both = "A's inbox holds 1 message that nearly fits: tag is 3, not 2, and n is 2, not 1."
    assert told(template, message("B", tag=3, n=2)) == both
    asked = "n is 2, which <is_large> does not accept."
    assert told({"n": "<is_large>"}, message("B", n=2)).endswith(asked)
    assert told({"tag": 2}, message("B", n=1)) == "A's inbox holds 1 message, which does not fit."
    none = "A's inbox holds 2 messages, and none fits."
    assert told({"tag": 2}, message("B", n=1), message("B", n=2)) == none
    many = "A's inbox holds 5 messages that nearly fit: tag is 3, not 2."
    assert told({"tag": 2}, *[message("B", tag=3)] * 5) == many


def test_names_that_may_be_meant() -> None:
    def said(has: str) -> str:
        return told({"color": "'red'"}, message("B", **{has: "'red'"}))

    assert said("colour").endswith("1 message that nearly fits: it has colour, not color.")
    assert said("Color").endswith("it has Color, not color.")
    for other in ("n", "cost", "colleagues"):
        assert said(other) == "A's inbox holds 1 message, which does not fit."
    # A name in the template is no typo of another one; nor are "src" and "dest".
    both = told({"tag": 1, "tags": 2}, message("B", tag=1))
    assert both.endswith("that nearly fits: it has no tags.")
    assert told({"srcs": 1}, message("B")).endswith("which does not fit.")


def test_short_lists_are_told_whole() -> None:
    five = "tag is 3, not 2; tag is 4, not 2; tag is 5, not 2; tag is 6, not 2; tag is 7, not 2."
    assert told({"tag": 2}, *[message("B", tag=3 + nth) for nth in range(5)]).endswith(five)
    more = "tag is 6, not 2; and 4 more."
    assert told({"tag": 2}, *[message("B", tag=3 + nth) for nth in range(8)]).endswith(more)


def test_the_sentences_if_not_all_messages_are_known() -> None:
    far, front = [message("B", n=1)] * 50, "A's inbox holds 70 messages, and"
    assert told({"tag": 2}, *far, depth=70) == f"{front} none fits."
    at_least = f"{front} at least 1 nearly fits: tag is 3, not 2."
    assert told({"tag": 2}, *far[1:], message("B", tag=3), depth=70) == at_least


def test_messages_of_libraries_are_not_counted() -> None:
    library = [message("B", "1f", failed="'barrier'")] * 3
    assert told({"tag": 2}, *library) == ""
    single = "A's inbox holds 1 message, which does not fit."
    assert told({"tag": 2}, *library, message("B", n=1)) == single
    near = "A's inbox holds 1 message that nearly fits: tag is 3, not 2."
    assert told({"tag": 2}, *library, message("B", tag=3), message("B", "1f", tag=3)) == near


def test_messages_that_lie_in_another_context() -> None:
    def said(template: Dict, *contexts: str, own: str = "") -> str:
        here = [message("B", context, tag=2) for context in contexts]
        about = {"messages": here, "depth": len(here), "context_id": own}
        return str(judge(recv("A", "B", template=template, **about), idle("B"))["sentences"][0])

    apart = "A's inbox holds 1 message that would fit, but lies in"
    assert said({"tag": 2}, "1f lib").endswith(f"{apart} context 'lib'.")
    assert said({"tag": 2}, "", own="1f").endswith(f"{apart} no context.")
    two = "2 messages that would fit, but lie in context 'lib' or context 'log'."
    assert said({}, "1f lib", "2f log").endswith(two)
    # A library's context; a message that does not fit; a receive without a template.
    assert "inbox" not in said({"tag": 2}, "1f") + said({"tag": 3}, "1f lib") + said(
        {}, "", own="1f"
    )


def test_before_a_receive_has_looked_nothing_is_said_of_what_does_not_fit() -> None:
    young = recv("A", template={"tag": 2}, messages=[message("B", tag=2)], depth=1, settled=False)
    found = diagnose(Graph(picture(young, idle("B", kind="process"))))
    assert "inbox" not in found["sentences"][0]


def test_a_message_that_went_to_somebody_else() -> None:
    def said(template: Dict, context_id: str = "") -> list[str]:
        stuck = recv("A", template=template)
        other = idle(
            "B",
            kind="process",
            messages=[message("C", context_id, tag=2, data="<object: 9 bytes>")],
        )
        found = diagnose(Graph(picture(stuck, other, idle("C", kind="process"))))
        return [text for text in found["sentences"] if "lies in" in text]

    text = "A message that would fit A's receive lies in B's inbox: C sent it there."
    assert said({"tag": 2}) == said({"src": "'C'", "tag": 2}) == [text]
    for template in (
        {"tag": 3},
        {"n": 1},
        {"n": "<f>"},
        {"tag": 2, "data": "[1]"},
        {"src": "'D'", "tag": 2},
    ):
        assert said(template) == []
    assert said({"tag": 2}, context_id="1f") == []


@pytest.mark.parametrize(
    "text", ["[" * 5000, "(" * 900, "{[]}", "{[]: 1}", "'x", "", "9" * 990_000]
)
def test_a_text_that_shows_no_value_costs_nothing(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        literal(text)


def test_messages_that_came_before_their_callback_was_registered() -> None:
    callbacks = [[{"name": "tag", "value": "1", "predicate": False}]]
    inbox = [message("B", tag=1), message("B", tag=1)]
    waits = recv("A", "B", template={"tag": 2}, callbacks=callbacks, messages=inbox, depth=2)
    text = judge(waits, idle("B"))["sentences"][0]
    early = "2 messages that fit callback regcb(tag=1), but came before it was registered."
    assert text.endswith(early)
    waits["settled"] = False  # the callback is perhaps about to get them
    assert early not in judge(waits, idle("B"))["sentences"][0]

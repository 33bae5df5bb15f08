"""Sentences about deadlocks that only a thread, a callback, a lock or a newcomer could resolve.

Nobody knows what these may do, so no call is ended because of them, and no process is called
stuck. But a user whose process waits for ever beside an idle thread must learn that the thread is
what cannot be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sfm_kernel.observe.code_locations import words
from sfm_kernel.observe.explain.alone import computes, newcomer, others, waits_for_lock
from sfm_kernel.observe.explain.together import ranges

if TYPE_CHECKING:
    from sfm_kernel.observe.explain.graph import Graph

LASTING = 2.0
"""Seconds that it must have lasted: threads that have a purpose act sooner, as a rule."""

Other = Mapping[str, Any]
"""See ``schema.json``, "other"."""


def but_for(graph: Graph, lasting: float = LASTING) -> tuple[dict[str, Any], Graph] | None:
    """The "proviso" of ``schema.json``, and the graph without what nobody can judge.

    None if the world has no such deadlock, or one that has not lasted for ``lasting`` seconds.
    """
    closed = graph.is_closed()
    doubts = {uid: others(node.process, closed) for uid, node in graph.nodes.items()}
    for uid, node in graph.nodes.items():
        if node.newcomer:
            doubts[uid].append(newcomer(node.process, node.absent))
    if graph.stuck or not any(doubts.values()):
        return None
    without = graph.without_others()
    since = max((node.process["since"] for node in without.blocked()), default=graph.time)
    if graph.time - since < lasting:
        return None
    stuck = [node.process for uid, node in graph.nodes.items() if uid in without.stuck]
    if any(computes(one) for one in stuck if one["others"] or waits_for_lock(one)):
        return None
    about = {
        "cycle": [node.name for node in without.cycle()],
        "stuck": [node.name for node in without.blocked()],
        "since": since,
        "others": [
            {"process": process["name"], "other": other}
            for process in stuck
            for other in doubts[process["uid"]]
        ],
    }
    return about, without


def title(about: Mapping[str, Any], deadlock: str) -> str:
    """The diagnosis in one line; ``deadlock``: the title of the deadlock that it would be."""
    ring = deadlock.removeprefix("Deadlock: ")
    return f"It would be a deadlock but for {_all(_owned(about['others']))}: {ring}"


def summary(about: Mapping[str, Any]) -> str:
    """The last sentence: what follows if none of that happens."""
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for entry in about["others"]:
        kind = entry["other"]["kind"]
        kinds.setdefault(kind if kind in _STILL else "", []).append(entry)
    ifs = []
    if acting := kinds.get(""):
        verb = "does" if len(acting) == 1 else "do"
        ifs.append(f"{_all(_owned(acting))} {verb} nothing")
    if polling := kinds.get("polls"):
        verb = "does" if len(polling) == 1 else "do"
        ifs.append(f"{_all(entry['process'] for entry in polling)} {verb} nothing but poll")
    if locks := kinds.get("lock"):
        ifs.append(f"nobody releases {_all(_owned(locks))}")
    if newcomers := kinds.get("newcomer"):
        verb = "joins" if len(newcomers) == 1 else "join"
        ifs.append(f"{_all(_owned(newcomers))} never {verb}")
    never = "can never go on" if len(about["stuck"]) > 1 else "never goes on"
    return f"If {_all(ifs)}, {_all(about['stuck'])} {never}."


_STILL = ("polls", "lock", "newcomer")
"""Kinds of "other" that are no thread and no function."""


def _owned(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(_of(entry["process"], entry["other"]) for entry in entries))


def _of(process: object, other: Other) -> str:
    if other["kind"] == "newcomer":
        return _short(other)
    if other["kind"] == "lock":
        owner = f"{process}'s {_title_of_thread(other['name'])}" if other["name"] else process
        return f"{_short(other)} that {owner} waits for"
    if other["kind"] == "more":
        return f"{_short(other)} of {process}"
    return f"{process}'s {_short(other)}"


def doubt(others: Sequence[Other]) -> str:
    """Say why a process that has these threads and callbacks may go on."""
    acting = [_described(other) for other in others if other["kind"] != "lock"]
    locks = [_lock(other) for other in others if other["kind"] == "lock"]
    texts = [f"{_all(acting)} could go on"] if acting else []
    return ", or ".join([*texts, *[f"{_all(locks)} could be released"][: len(locks)]])


def _lock(other: Other) -> str:
    """The lock that a thread waits for, and the line in which it does."""
    text = f"the lock that its {_title_of_thread(other['name'])} waits for"
    return f"{text} in {words(other['where'])}" if other["where"] else text


def running(others: Sequence[Other]) -> str:
    """The callback that runs, with the line that it is in; if there are several, one of them."""
    callbacks = [other for other in others if other["kind"] == "callback"]
    return _described(callbacks[0]) if len(callbacks) == 1 else "a callback"


def left(process: Mapping[str, Any]) -> str:
    """A process whose program has come to its end, but has left a thread or a callback."""
    name, others = process["name"], process["others"]
    ended = (
        f"{name}'s cell has ended" if process["kind"] == "engine" else f"{name} has come to its end"
    )
    return f"{ended}, but {doubt(others)}"


def nobody_runs(processes: Iterable[Mapping[str, Any]]) -> str:
    """The title if all programs have come to their ends, but some have left a thread."""
    others = [_of(process["name"], other) for process in processes for other in process["others"]]
    return f"Nobody runs, but {_all(others)} could go on"


def _described(other: Other) -> str:
    """A thread or callback with the line it is in, and the earlier cell that started it."""
    about = []
    if other["where"] is not None:
        about.append(f"in {words(other['where'])}")
    if other["cell"] is not None:
        about.append(f"started in cell {other['cell']}")
    return f"{_short(other)} ({', '.join(about)})" if about else _short(other)


def _short(other: Other) -> str:
    name = other["name"]
    return {
        "thread": _title_of_thread(name),
        "callback": f"callback {name}",
        "signal": f"handler of {name}",
        "timer": f"timer ({name})",
        "hook": f"function {name}, which is called while it waits",
        "task": f"asyncio task {name!r}",
        "polls": f"calls of {name}",
        "lock": "the lock",
        "newcomer": f"a newcomer named {name}" if name else "a newcomer",
        "world": f"connection to {name}",
        "more": f"{name} more",
    }[other["kind"]]


def _title_of_thread(name: str) -> str:
    if name == "MainThread":
        return "main thread"
    return f"thread {name!r}" if name else "unnamed thread"


_SHOWN = 4
"""Threads and callbacks that a sentence names; of more, it gives their number."""


def _all(names: Iterable[object]) -> str:
    return listed(names, _SHOWN, "more")


def listed(names: Iterable[object], shown: int, rest: str, word: str = "and") -> str:
    """``A``, ``A and B``, ``A, B and C``, ``0–7``; of more: ``A, B and 20 others``.

    ``rest``: the word for the names that are only counted.
    """
    texts = ranges(names)
    if len(texts) > shown + 1:
        texts = [*texts[:shown], f"{len(texts) - shown} {rest}"]
    if len(texts) < 2:
        return "".join(texts)
    return f"{', '.join(texts[:-1])} {word} {texts[-1]}"

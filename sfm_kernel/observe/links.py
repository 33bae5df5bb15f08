"""Sites, and the connections between them: which are in trouble, and what their silences cost.

A process tells of its direct lines to other sites in its segment (``native/src/net/report.rs``);
gateways tell the directory server of theirs (``native/src/gateway/status.rs``). Neither is believed
to be well-formed: a gateway has less than the world's key, and a segment may be damaged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

LATELY = 60.0
"""Seconds for which an idle restart is told of."""
WORTH_TELLING = 1e-3
"""Seconds that it has to have cost."""
WRONG = 2.0
"""Seconds by which a clock has to be wrong to be told of: an answer may be late by less."""
EMULATED = "emulated: shows routing, delay and rate, not congestion control"

_MOST = 64
"""Lines that are read of one process or gateway."""
_MOST_NOTES, _LONGEST_NOTE = 8, 300


def sites_of(
    processes: Iterable[Mapping[str, Any]],
    gateways: Iterable[Mapping[str, Any]],
    clocks: Mapping[str, float],
) -> list[dict[str, Any]]:
    """A world's sites by name: who is there, their gateways, and what somebody should know of them.

    Args:
        processes: as the snapshot has them.
        gateways: as in ``links_of``.
        clocks: what to add to each process's clock, where it is not this machine's, by its uid.
    """
    found: dict[str, dict[str, Any]] = {}

    def site(name: str) -> dict[str, Any]:
        empty = {"name": name, "processes": [], "gateways": [], "sentence": ""}
        return found.setdefault(name, empty)

    wrong: dict[str, float] = {}
    for one in processes:
        name = one["site"]
        if name is not None and one["alive"]:
            site(name)["processes"].append(one["name"])
            wrong[name] = max(wrong.get(name, 0.0), clocks.get(one["uid"], 0.0), key=abs)
    for name, behind in wrong.items():
        if abs(behind) >= WRONG:
            by = f"{abs(behind):.1f} s {'behind' if behind > 0 else 'ahead of'}"
            site(name)["sentence"] = (
                f"a clock at {name} is {by} this machine's: times from there are corrected by that"
            )
    notes: dict[str, list[str]] = {}
    for one in gateways:
        about = {"name": _text(one.get("name")), "address": _text(one.get("address"))}
        name = _text(one.get("site"))
        site(name)["gateways"].append(about)
        own = [f"gateway {about['name']}: {note}" for note in _notes(one)]
        notes.setdefault(name, []).extend(own)
    for there in found.values():
        said = [there["sentence"], *notes.get(there["name"], ())]
        if notes and not there["gateways"]:
            said.append(
                f"{there['name']} has no gateway: messages between it and other sites go directly"
            )
        there["sentence"] = ". ".join(filter(None, said))
    return [found[name] for name in sorted(found)]


def links_of(
    lines: Mapping[str, Sequence[Any]],
    processes: Iterable[Mapping[str, Any]],
    gateways: Iterable[Mapping[str, Any]],
    clocks: Mapping[str, float],
) -> list[dict[str, Any]]:
    """The connections between sites, of each pair and way as one; by name.

    Args:
        lines: what each process tells of its own, by its uid.
        processes: as the snapshot has them.
        gateways: what is known of them, with "report" where they have told something.
        clocks: as in ``sites_of``.
    """
    there = {one["uid"]: one["site"] for one in processes}
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for one in processes:
        told = lines.get(one["uid"], ()) if one["alive"] else ()
        for line in _direct(told, there, clocks.get(one["uid"], 0.0)):
            if one["site"] is not None and line["to"] != one["site"]:
                found.setdefault((one["site"], line["to"], "direct"), []).append(line)
    for gateway in gateways:
        site = _text(gateway.get("site"))
        for line in _between_gateways(gateway):
            if line["to"] != site:
                found.setdefault((site, line["to"], "gateway"), []).append(line)
    # Who gets packets out of order says so by duplicate acknowledgements: the other end's count.
    disorder = {key: _sum(one["out_of_order"] for one in ones) for key, ones in found.items()}
    return [
        _link(key, ones, disorder.get((key[1], key[0], key[2])))
        for key, ones in sorted(found.items())
    ]


def over(links: Iterable[Mapping[str, Any]], one: Any, other: Any) -> Iterator[str]:
    """The sentences about links in trouble between two sites."""
    for link in links:
        if {link["from"], link["to"]} == {one, other} and link["trouble"]:
            yield link["sentence"]


def _direct(told: Any, there: Mapping[str, str | None], clock: float) -> Iterator[dict[str, Any]]:
    """A process's lines, each to another site; ``clock``: to be added to its times."""
    for one in _dicts(told):
        if to := there.get(_text(one.get("peer"))):
            rto = _number(one.get("rto"))
            yield _line(one, clock) | {
                "to": to,
                "count": int(_number(one.get("count")) or 0),
                "rate": _number(one.get("rate")),
                "rto": rto,
                "emulated": False,
                "warm": _text(one.get("warm")),
                "silent_s": _age(one.get("silent_since"), clock),
                "unreached": "",
            }


def _between_gateways(gateway: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A gateway's connections to those of other sites."""
    report = gateway.get("report")
    if not isinstance(report, Mapping):
        return
    played = report.get("emulation")
    emulated = isinstance(played, Mapping)
    path: Mapping[str, Any] = played if isinstance(played, Mapping) else {}
    told_at, age = _number(report.get("time")), _number(report.get("age")) or 0.0
    clock = 0.0 if told_at is None else time.time() - age - told_at
    delay, limit = _number(path.get("delay_s")) or 0.0, _number(path.get("bytes_per_s"))
    for peer in _dicts(report.get("gateways")):
        to = _text(peer.get("site"))
        connections = _dicts(peer.get("connections"))
        missed = _number(peer.get("unreachable_s"))
        if not connections and missed is not None and peer.get("listed") is True and to:
            why = _text(peer.get("trouble")) or "no answer"
            nothing = _line({}, clock) | {"to": to, "count": 0, "rate": None, "rto": None}
            yield nothing | {"warm": "", "silent_s": missed, "emulated": emulated, "unreached": why}
        for one in connections if to else ():
            told = one.get("tcp")
            tcp: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
            is_silent = one.get("silent") is True
            asked, given = _text(one.get("algorithm_asked")), _text(one.get("algorithm"))
            about = {
                # Each gateway plays one direction, of which TCP knows nothing.
                "rtt_s": 2 * delay + (_number(tcp.get("rtt_s")) or 0.0) if tcp else None,
                "cwnd": tcp.get("snd_cwnd"),
                "retransmissions": tcp.get("total_retrans"),
                "out_of_order": tcp.get("rcv_ooopack"),
                "refused": asked if asked != given else "",
            }
            yield _line({**one, **about}, clock) | {
                "to": to,
                "count": 1,
                "rate": min(_number(tcp.get("delivery_rate")) or 0.0, limit or math.inf),
                "rto": _number(tcp.get("total_rto")),
                "emulated": emulated,
                "warm": "bbr" if given.startswith("bbr") else "heartbeat",
                "silent_s": _number(one.get("heard_s")) if is_silent else None,
                "unreached": "",
            }


def _notes(gateway: Mapping[str, Any]) -> Iterator[str]:
    """What a gateway says that somebody should know, besides what its connections show."""
    report = gateway.get("report")
    told = report.get("notes") if isinstance(report, Mapping) else ()
    for one in told[:_MOST_NOTES] if isinstance(told, (list, tuple)) else ():
        if isinstance(one, str):
            yield "".join(filter(str.isprintable, one[:_LONGEST_NOTE]))


def _line(one: Mapping[str, Any], clock: float) -> dict[str, Any]:
    """What both tell alike."""
    told = one.get("last_restart")
    last: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    return {
        "algorithm": _text(one.get("algorithm")),
        "refused": _text(one.get("refused")),
        "rtt_s": _number(one.get("rtt_s")),
        "cwnd": _number(one.get("cwnd")),
        "retransmissions": _number(one.get("retransmissions")),
        "out_of_order": _number(one.get("out_of_order")),
        "idle_restarts": int(_number(one.get("idle_restarts")) or 0),
        "timeouts": int(_number(one.get("timeouts_lately")) or 0),
        "lately_s": _number(one.get("lately_s")) or 0.0,
        "restarted_s": _age(last.get("at"), clock),
        "silence_s": _number(last.get("silence_s")) or 0.0,
        "from_cwnd": int(_number(last.get("from")) or 0),
        "to_cwnd": int(_number(last.get("to")) or 0),
        "cost_s": _number(last.get("cost_s")) or 0.0,
    }


def _link(
    key: tuple[str, str, str], lines: Sequence[dict[str, Any]], dup_acks: float | None
) -> dict[str, Any]:
    """The lines between two sites, as the schema has it."""
    used = [one for one in lines if one["count"]] or lines
    silent = max((one["silent_s"] for one in lines if one["silent_s"] is not None), default=None)
    sentences = list(_sentences(key, lines))
    emulated = any(one["emulated"] for one in lines)
    return {
        "from": key[0],
        "to": key[1],
        "via": key[2],
        "count": sum(one["count"] for one in lines),
        "algorithm": ", ".join(sorted({one["algorithm"] for one in used} - {""})),
        "warm": ", ".join(sorted({one["warm"] for one in used} - {""})),
        "rtt_s": min((one["rtt_s"] for one in used if one["rtt_s"] is not None), default=None),
        "rate": _sum(one["rate"] for one in used),
        "cwnd": _sum(one["cwnd"] for one in used),
        "rto": _sum(one["rto"] for one in used),
        "retransmissions": _sum(one["retransmissions"] for one in used),
        "dup_acks": dup_acks,
        "idle_restarts": sum(one["idle_restarts"] for one in used),
        "silent_s": silent,
        "emulated": emulated,
        "trouble": bool(sentences),
        "sentence": ". ".join(sentences + ([EMULATED] if emulated else [])),
    }


def _sentences(key: tuple[str, str, str], lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What costs time on these lines."""
    start, to, via = key
    what = f"the connection {start} → {to}"
    missed = [one for one in lines if one["silent_s"] is not None]
    if missed:
        worst = max(missed, key=lambda one: float(one["silent_s"]))
        seconds = f"for {worst['silent_s']:.0f} s"
        if worst["unreached"]:
            yield (
                f"the gateway of {start} has not reached that of {to} {seconds} "
                f"({worst['unreached']}): is its address open to {start}, and its key this world's?"
            )
        else:
            yield (
                f"{what} has had no answer {seconds}; what was sent is kept, and goes when there "
                f"is one"
            )
    timeouts = sum(one["timeouts"] for one in lines)
    if timeouts:
        seconds = max(one["lately_s"] for one in lines)
        plural = "timeout" if timeouts == 1 else "timeouts"
        yield f"{what} had {timeouts} {plural} in the last {seconds:.0f} s: packets are lost"
    restarts = [
        one
        for one in lines
        if one["cost_s"] >= WORTH_TELLING and (one["restarted_s"] or 0.0) < LATELY
    ]
    if restarts:
        one = max(restarts, key=lambda one: float(one["cost_s"]))
        cure = "a gateway" if via == "direct" else "a heartbeat or BBR"
        yield (
            f"{what} was silent for {one['silence_s']:.1f} s and restarted from {one['to_cwnd']} "
            f"segments instead of {one['from_cwnd']}: +{1e3 * one['cost_s']:.0f} ms; {cure} would "
            f"have kept it warm"
        )
    refused = sorted({one["refused"] for one in lines} - {""})
    if refused:
        given = next(one["algorithm"] for one in lines if one["refused"])
        yield f"{what} was to use {', '.join(refused)}, and the kernel gives it {given}"


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, (list, tuple)):
        return []
    return [one for one in value[:_MOST] if isinstance(one, Mapping)]


def _text(value: Any) -> str:
    return value[:100] if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
        return None
    return value if math.isfinite(value) else None


def _age(at: Any, clock: float) -> float | None:
    """Seconds since a time of another machine's clock, to which ``clock`` is to be added."""
    told = _number(at)
    return None if told is None else max(0.0, time.time() - clock - told)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) if known else None

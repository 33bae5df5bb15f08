"""Sites, and the connections between them: their troubles, and the cost of their silences.

A process publishes its direct connections to other sites in its segment
(``native/src/net/report.rs``); a gateway reports its connections to the directory server
(``native/src/gateway/status.rs``). Both may be malformed: a gateway has less than the world's key,
and a segment may be damaged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

LATELY = 60.0
"""Seconds for which an idle restart is reported."""
WORTH_REPORTING = 1e-3
"""The least cost of an idle restart that is reported, in seconds."""
WRONG = 2.0
"""The least error of a clock that is reported, in seconds: an answer may be late by less."""
EMULATED = "emulated: shows routing, delay and rate, not congestion control"

_MOST = 64
"""Connections of one process or gateway that are read."""
_MOST_NOTES, _LONGEST_NOTE = 8, 300


def sites_of(
    processes: Iterable[Mapping[str, Any]],
    gateways: Iterable[Mapping[str, Any]],
    clocks: Mapping[str, float],
) -> list[dict[str, Any]]:
    """A world's sites by name: their processes, gateways, and a sentence of remarks.

    Args:
        processes: as the snapshot has them.
        gateways: as in ``links_of``.
        clocks: seconds to add to the clock of each process on another machine, by its uid.
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
        remarks = [f"gateway {about['name']}: {note}" for note in _notes(one)]
        notes.setdefault(name, []).extend(remarks)
    for known in found.values():
        said = [known["sentence"], *notes.get(known["name"], ())]
        if notes and not known["gateways"]:
            said.append(
                f"{known['name']} has no gateway: messages between it and other sites go directly"
            )
        known["sentence"] = ". ".join(filter(None, said))
    return [found[name] for name in sorted(found)]


def links_of(
    connections: Mapping[str, Sequence[Any]],
    processes: Iterable[Mapping[str, Any]],
    gateways: Iterable[Mapping[str, Any]],
    clocks: Mapping[str, float],
) -> list[dict[str, Any]]:
    """The links between sites, by name: one for each pair of sites, direct and through gateways.

    Args:
        connections: the connections that each process has published, by its uid.
        processes: as the snapshot has them.
        gateways: as the directory server knows them, with their "report" if they have sent one.
        clocks: as in ``sites_of``.
    """
    sites = {one["uid"]: one["site"] for one in processes}
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for one in processes:
        published = connections.get(one["uid"], ()) if one["alive"] else ()
        for connection in _direct(published, sites, clocks.get(one["uid"], 0.0)):
            if one["site"] is not None and connection["to"] != one["site"]:
                key = (one["site"], connection["to"], "direct")
                found.setdefault(key, []).append(connection)
    for gateway in gateways:
        site = _text(gateway.get("site"))
        for connection in _between_gateways(gateway):
            if connection["to"] != site:
                found.setdefault((site, connection["to"], "gateway"), []).append(connection)
    # A receiver of packets out of order sends duplicate acknowledgements: the other end's count.
    disorder = {key: _sum(one["out_of_order"] for one in some) for key, some in found.items()}
    return [
        _link(key, some, disorder.get((key[1], key[0], key[2])))
        for key, some in sorted(found.items())
    ]


def over(links: Iterable[Mapping[str, Any]], one: Any, other: Any) -> Iterator[str]:
    """The sentences about links in trouble between two sites."""
    for link in links:
        if {link["from"], link["to"]} == {one, other} and link["trouble"]:
            yield link["sentence"]


def _direct(
    published: Any, sites: Mapping[str, str | None], clock: float
) -> Iterator[dict[str, Any]]:
    """A process's connections to other sites; ``clock``: seconds to add to its times."""
    for one in _dicts(published):
        if to := sites.get(_text(one.get("peer"))):
            rto = _number(one.get("rto"))
            yield _connection(one, clock) | {
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
    """A gateway's connections to the gateways of other sites."""
    report = gateway.get("report")
    if not isinstance(report, Mapping):
        return
    played = report.get("emulation")
    emulated = isinstance(played, Mapping)
    path: Mapping[str, Any] = played if isinstance(played, Mapping) else {}
    reported_at, age = _number(report.get("time")), _number(report.get("age")) or 0.0
    clock = 0.0 if reported_at is None else time.time() - age - reported_at
    delay, limit = _number(path.get("delay_s")) or 0.0, _number(path.get("bytes_per_s"))
    for peer in _dicts(report.get("gateways")):
        to = _text(peer.get("site"))
        connections = _dicts(peer.get("connections"))
        missed = _number(peer.get("unreachable_s"))
        if not connections and missed is not None and peer.get("listed") is True and to:
            why = _text(peer.get("trouble")) or "no answer"
            nothing = _connection({}, clock) | {"to": to, "count": 0, "rate": None, "rto": None}
            yield nothing | {"warm": "", "silent_s": missed, "emulated": emulated, "unreached": why}
        for one in connections if to else ():
            found = one.get("tcp")
            tcp: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
            is_silent = one.get("silent") is True
            asked, given = _text(one.get("algorithm_asked")), _text(one.get("algorithm"))
            about = {
                # Each gateway emulates one direction, and TCP does not see that delay.
                "rtt_s": 2 * delay + (_number(tcp.get("rtt_s")) or 0.0) if tcp else None,
                "cwnd": tcp.get("snd_cwnd"),
                "retransmissions": tcp.get("total_retrans"),
                "out_of_order": tcp.get("rcv_ooopack"),
                "refused": asked if asked != given else "",
            }
            yield _connection({**one, **about}, clock) | {
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
    """The remarks in a gateway's report."""
    report = gateway.get("report")
    notes = report.get("notes") if isinstance(report, Mapping) else ()
    for one in notes[:_MOST_NOTES] if isinstance(notes, (list, tuple)) else ():
        if isinstance(one, str):
            yield "".join(filter(str.isprintable, one[:_LONGEST_NOTE]))


def _connection(one: Mapping[str, Any], clock: float) -> dict[str, Any]:
    """The fields of a connection that processes and gateways report alike."""
    found = one.get("last_restart")
    last: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
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
    key: tuple[str, str, str], connections: Sequence[dict[str, Any]], dup_acks: float | None
) -> dict[str, Any]:
    """The connections between two sites as one "link" of ``schema.json``."""
    used = [one for one in connections if one["count"]] or connections
    silences = (one["silent_s"] for one in connections if one["silent_s"] is not None)
    silent = max(silences, default=None)
    sentences = list(_sentences(key, connections))
    emulated = any(one["emulated"] for one in connections)
    return {
        "from": key[0],
        "to": key[1],
        "via": key[2],
        "count": sum(one["count"] for one in connections),
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


def _sentences(
    key: tuple[str, str, str], connections: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Sentences about the troubles of these connections that cost time."""
    start, to, via = key
    what = f"the connection {start} → {to}"
    missed = [one for one in connections if one["silent_s"] is not None]
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
                f"{what} has had no answer {seconds}; what was sent is kept, and arrives once the "
                f"connection works again"
            )
    timeouts = sum(one["timeouts"] for one in connections)
    if timeouts:
        seconds = max(one["lately_s"] for one in connections)
        plural = "timeout" if timeouts == 1 else "timeouts"
        yield f"{what} had {timeouts} {plural} in the last {seconds:.0f} s: packets are lost"
    restarts = [
        one
        for one in connections
        if one["cost_s"] >= WORTH_REPORTING and (one["restarted_s"] or 0.0) < LATELY
    ]
    if restarts:
        one = max(restarts, key=lambda one: float(one["cost_s"]))
        cure = "a gateway" if via == "direct" else "a heartbeat or BBR"
        yield (
            f"{what} was silent for {one['silence_s']:.1f} s and restarted from {one['to_cwnd']} "
            f"segments instead of {one['from_cwnd']}: +{1e3 * one['cost_s']:.0f} ms; {cure} would "
            f"have kept it warm"
        )
    refused = sorted({one["refused"] for one in connections} - {""})
    if refused:
        given = next(one["algorithm"] for one in connections if one["refused"])
        yield f"{what} was to use {', '.join(refused)}, but the kernel gives it {given}"


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
    """Seconds since a time of another machine's clock; ``clock``: seconds to add to that time."""
    since = _number(at)
    return None if since is None else max(0.0, time.time() - clock - since)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return sum(known) if known else None

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
    for process in processes:
        name = process["site"]
        if name is not None and process["alive"]:
            site(name)["processes"].append(process["name"])
            wrong[name] = max(wrong.get(name, 0.0), clocks.get(process["uid"], 0.0), key=abs)
    for name, behind in wrong.items():
        if abs(behind) >= WRONG:
            by = f"{abs(behind):.1f} s {'behind' if behind > 0 else 'ahead of'}"
            site(name)["sentence"] = (
                f"a clock at {name} is {by} this machine's: times from there are corrected by that"
            )
    notes: dict[str, list[str]] = {}
    for gateway in gateways:
        about = {"name": _text(gateway.get("name")), "address": _text(gateway.get("address"))}
        name = _text(gateway.get("site"))
        site(name)["gateways"].append(about)
        remarks = [f"gateway {about['name']}: {note}" for note in _notes(gateway)]
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
    sites = {process["uid"]: process["site"] for process in processes}
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for process in processes:
        published = connections.get(process["uid"], ()) if process["alive"] else ()
        for connection in _direct(published, sites, clocks.get(process["uid"], 0.0)):
            if process["site"] is not None and connection["to"] != process["site"]:
                key = (process["site"], connection["to"], "direct")
                found.setdefault(key, []).append(connection)
    for gateway in gateways:
        site = _text(gateway.get("site"))
        for connection in _between_gateways(gateway):
            if connection["to"] != site:
                found.setdefault((site, connection["to"], "gateway"), []).append(connection)
    # A receiver of packets out of order sends duplicate acknowledgements: the other end's count.
    disorder = {
        (to, start, via): _sum(connection["out_of_order"] for connection in connections_back)
        for (start, to, via), connections_back in found.items()
    }
    return [_link(key, found[key], disorder.get(key)) for key in sorted(found)]


def over(links: Iterable[Mapping[str, Any]], site: Any, other_site: Any) -> Iterator[str]:
    """The sentences about links in trouble between two sites."""
    for link in links:
        if {link["from"], link["to"]} == {site, other_site} and link["trouble"]:
            yield link["sentence"]


def _direct(
    published: Any, sites: Mapping[str, str | None], clock: float
) -> Iterator[dict[str, Any]]:
    """A process's connections to other sites; ``clock``: seconds to add to its times."""
    for connection in _dicts(published):
        if to := sites.get(_text(connection.get("peer"))):
            rto = _number(connection.get("rto"))
            yield _connection(connection, clock) | {
                "to": to,
                "count": int(_number(connection.get("count")) or 0),
                "rate": _number(connection.get("rate")),
                "rto": rto,
                "emulated": False,
                "warm": _text(connection.get("warm")),
                "silent_s": _age(connection.get("silent_since"), clock),
                "unreached": "",
            }


def _between_gateways(gateway: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """A gateway's connections to the gateways of other sites."""
    report = _mapping(gateway.get("report"))
    emulated = isinstance(report.get("emulation"), Mapping)
    path = _mapping(report.get("emulation"))
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
        for connection in connections if to else ():
            tcp = _mapping(connection.get("tcp"))
            is_silent = connection.get("silent") is True
            asked, given = (
                _text(connection.get("algorithm_asked")),
                _text(connection.get("algorithm")),
            )
            about = {
                # Each gateway emulates one direction, and TCP does not see that delay.
                "rtt_s": 2 * delay + (_number(tcp.get("rtt_s")) or 0.0) if tcp else None,
                "cwnd": tcp.get("snd_cwnd"),
                "retransmissions": tcp.get("total_retrans"),
                "out_of_order": tcp.get("rcv_ooopack"),
                "refused": asked if asked != given else "",
            }
            yield _connection({**connection, **about}, clock) | {
                "to": to,
                "count": 1,
                "rate": min(_number(tcp.get("delivery_rate")) or 0.0, limit or math.inf),
                "rto": _number(tcp.get("total_rto")),
                "emulated": emulated,
                "warm": "bbr" if given.startswith("bbr") else "heartbeat",
                "silent_s": _number(connection.get("heard_s")) if is_silent else None,
                "unreached": "",
            }


def _notes(gateway: Mapping[str, Any]) -> Iterator[str]:
    """The remarks in a gateway's report."""
    notes = _mapping(gateway.get("report")).get("notes")
    for note in notes[:_MOST_NOTES] if isinstance(notes, (list, tuple)) else ():
        if isinstance(note, str):
            yield "".join(filter(str.isprintable, note[:_LONGEST_NOTE]))


def _connection(reported: Mapping[str, Any], clock: float) -> dict[str, Any]:
    """The fields of a connection that processes and gateways report alike."""
    last = _mapping(reported.get("last_restart"))
    return {
        "algorithm": _text(reported.get("algorithm")),
        "refused": _text(reported.get("refused")),
        "rtt_s": _number(reported.get("rtt_s")),
        "cwnd": _number(reported.get("cwnd")),
        "retransmissions": _number(reported.get("retransmissions")),
        "out_of_order": _number(reported.get("out_of_order")),
        "idle_restarts": int(_number(reported.get("idle_restarts")) or 0),
        "timeouts": int(_number(reported.get("timeouts_lately")) or 0),
        "lately_s": _number(reported.get("lately_s")) or 0.0,
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
    used = [connection for connection in connections if connection["count"]] or connections
    silences = [connection["silent_s"] for connection in connections]
    trips = [connection["rtt_s"] for connection in used]
    sentences = list(_sentences(key, connections))
    emulated = any(connection["emulated"] for connection in connections)
    return {
        "from": key[0],
        "to": key[1],
        "via": key[2],
        "count": sum(connection["count"] for connection in connections),
        "algorithm": ", ".join(sorted({connection["algorithm"] for connection in used} - {""})),
        "warm": ", ".join(sorted({connection["warm"] for connection in used} - {""})),
        "rtt_s": min((trip for trip in trips if trip is not None), default=None),
        "rate": _sum(connection["rate"] for connection in used),
        "cwnd": _sum(connection["cwnd"] for connection in used),
        "rto": _sum(connection["rto"] for connection in used),
        "retransmissions": _sum(connection["retransmissions"] for connection in used),
        "dup_acks": dup_acks,
        "idle_restarts": sum(connection["idle_restarts"] for connection in used),
        "silent_s": max((silence for silence in silences if silence is not None), default=None),
        "emulated": emulated,
        "trouble": bool(sentences),
        "sentence": ". ".join(sentences + ([EMULATED] if emulated else [])),
    }


def _sentences(
    key: tuple[str, str, str], connections: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Sentences about the troubles of these connections that cost time."""
    start, to, via = key
    link = f"the connection {start} → {to}"
    missed = [connection for connection in connections if connection["silent_s"] is not None]
    if missed:
        worst = max(missed, key=lambda connection: float(connection["silent_s"]))
        seconds = f"for {worst['silent_s']:.0f} s"
        if worst["unreached"]:
            yield (
                f"the gateway of {start} has not reached that of {to} {seconds} "
                f"({worst['unreached']}): is its address open to {start}, and its key this world's?"
            )
        else:
            yield (
                f"{link} has had no answer {seconds}; what was sent is kept, and arrives once the "
                f"connection works again"
            )
    timeouts = sum(connection["timeouts"] for connection in connections)
    if timeouts:
        seconds = max(connection["lately_s"] for connection in connections)
        plural = "timeout" if timeouts == 1 else "timeouts"
        yield f"{link} had {timeouts} {plural} in the last {seconds:.0f} s: packets are lost"
    restarts = [
        connection
        for connection in connections
        if connection["cost_s"] >= WORTH_REPORTING and (connection["restarted_s"] or 0.0) < LATELY
    ]
    if restarts:
        worst = max(restarts, key=lambda restart: float(restart["cost_s"]))
        cure = "a gateway" if via == "direct" else "a heartbeat or BBR"
        yield (
            f"{link} was silent for {worst['silence_s']:.1f} s and restarted from "
            f"{worst['to_cwnd']} segments instead of {worst['from_cwnd']}: "
            f"+{1e3 * worst['cost_s']:.0f} ms; {cure} would have kept it warm"
        )
    refused = sorted({connection["refused"] for connection in connections} - {""})
    if refused:
        given = next(connection["algorithm"] for connection in connections if connection["refused"])
        yield f"{link} was to use {', '.join(refused)}, but the kernel gives it {given}"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _dicts(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, (list, tuple)):
        return []
    return [item for item in value[:_MOST] if isinstance(item, Mapping)]


def _text(value: Any) -> str:
    return value[:100] if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e18:
        return None
    return value if math.isfinite(value) else None


def _age(moment: Any, clock: float) -> float | None:
    """Seconds since a time of another machine's clock; ``clock``: seconds to add to that time."""
    since = _number(moment)
    return None if since is None else max(0.0, time.time() - clock - since)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [number for number in values if number is not None]
    return sum(known) if known else None

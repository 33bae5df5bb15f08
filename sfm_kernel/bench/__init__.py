"""Benchmarks: one a file, each a generator of rows.

A row is a dict of plain values that describes one measurement. Because every benchmark yields
rows as it measures, one run feeds a printed table (``table``), a pandas DataFrame (``frame``), a
JSON file and a live plot (``sfm_kernel.plots``). ``python -m sfm_kernel.bench`` lists them.
"""

from sfm_kernel.bench.machine import machine, usable_cores
from sfm_kernel.bench.rows import Row, frame, table

BENCHMARKS = (
    "cpi",
    "pingpong",
    "queue",
    "peers",
    "dot",
    "chunks",
    "reductions",
    "speedes",
    "collectives",
    "farm",
    "mpi",
    "c",
    "sites",
    "targets",
)
"""What ``python -m sfm_kernel.bench NAME`` runs: modules of this package of the same name …"""

NAMED_OTHERWISE = {"queue": "deep_queue"}
"""… but where Python has a module of that name, which would be hidden by ours."""

__all__ = ["BENCHMARKS", "Row", "frame", "machine", "table", "usable_cores"]

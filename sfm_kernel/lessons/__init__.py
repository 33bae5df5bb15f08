"""What notebooks teach with: programs that measure, and exercises with their checks.

cpi, pingpong, dot, chunks, reductions, speedes, c, sites
          programs that notebooks run, each a generator of rows; their plots are beside them
mpi       the plot of notebook 07
ranks     mpi4py's side of pingpong, in ranks of an MPI
measure   the basis of these programs: engines that serve them, rows, the machine's facts
examine   tries a student's attempt: %sfm check
checks    the requirements of the notebooks' exercises, a file for each notebook
students  notebooks without solutions, and with them

A row is a dict of plain values that describes one measurement. Because a program yields rows as it
measures, one run feeds a printed table (``table``), a pandas DataFrame (``frame``), a JSON file and
a live plot (``sfm_kernel.plots``). ``python -m sfm_kernel.lessons`` lists the programs that can
also be run without a notebook.
"""

from __future__ import annotations

from sfm_kernel.lessons.examine.check import Check, CheckFailed, same
from sfm_kernel.lessons.measure.machine import machine, usable_cores
from sfm_kernel.lessons.measure.rows import Row, frame, table

__all__ = ["Check", "CheckFailed", "Row", "frame", "machine", "same", "table", "usable_cores"]

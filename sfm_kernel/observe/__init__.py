"""Observation of processes from outside, without their help.

    snapshot        what each process does now, and what is in its inbox
    explain         the diagnosis: why a world does not go on
    timeline        the events of the last run, message by message
    deadlocks       proves a deadlock, and ends its calls
    drawings        what a notebook's cell shows of these, without scripts
    record          all of it as one HTML file, for readers without Jupyter
    events          the traces that the timeline is made of
    code_locations  lines of programs
    ends            how cells and processes have ended
    crashes         signals and lines of C programs that crashed
    links           sites, and the connections between them
    states          the fields of a segment, and the checks of them
    schema.json     the one source of all these shapes

A world is given by its folder in shared memory (``Endpoint.folder``) or by an endpoint in it.
"""

from sfm_kernel._native import Observer
from sfm_kernel.observe.deadlocks import DeadlockMonitor
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.record import record
from sfm_kernel.observe.snapshot import snapshot
from sfm_kernel.observe.timeline import timeline

__all__ = ["DeadlockMonitor", "Observer", "explain", "record", "snapshot", "timeline"]

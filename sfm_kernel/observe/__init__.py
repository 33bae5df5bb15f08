"""Seeing what processes do, from outside and without their help.

    snapshot    what each process does now, and what is in its inbox
    explain     why a world does not go on
    timeline    what happened, message by message
    watch       proof of a deadlock, and its end
    record      all of it as one file, for who has no Jupyter
    events      the traces that the timeline is made of
    places      lines of programs
    states      what a segment says, and whether that makes sense
    schema.json the shape of it all, the one source of it

A world is given by its folder in shared memory (``Endpoint.folder``) or by an endpoint in it.
"""

from sfm_kernel._native import Observer
from sfm_kernel.observe.deadlocks import DeadlockMonitor
from sfm_kernel.observe.explain import explain
from sfm_kernel.observe.record import record
from sfm_kernel.observe.snapshot import snapshot
from sfm_kernel.observe.timeline import timeline

__all__ = ["DeadlockMonitor", "Observer", "explain", "record", "snapshot", "timeline"]

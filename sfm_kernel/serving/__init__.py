"""Processes that serve others: they answer requests, in a context of their own.

``farm``, ``remote`` and ``mapreduce`` are built on it. An *owner* attaches to processes with a
``Service``: each process makes an object of it, and that object takes what the owner sends over the
``Attachment``, on the main thread of the serving process. A process serves until its owners have
released it, or have died.

A program serves when it calls ``serve(sfm)``. An engine serves between two cells, without a call:
the notebook's part of this package registers how engines are asked to serve (``by_request``), and
they serve in slices on their event loop (``between_cells``), so that cells still run.

    owner      attaches to other processes
    process    serves owners
    local      starts serving processes for one owner
    asking     questions to one process, and their answers
    references objects to which other processes have references, and the operations on them
    offers     objects that a process offers by name
    callee     a process that makes calls of functions
    calls      calls of functions, and their results
    caller     gives calls to processes, and repeats the calls of those that have died
    functions  how functions are sent
    values     how values and errors are sent
"""

from sfm_kernel.serving.asking import Answerer, Asker, Question
from sfm_kernel.serving.callee import CallData, Callee, CallIds
from sfm_kernel.serving.caller import Caller
from sfm_kernel.serving.calls import Call, Calls
from sfm_kernel.serving.functions import name_of
from sfm_kernel.serving.local import LocalProcesses
from sfm_kernel.serving.owner import (
    Attachment,
    Service,
    bar,
    by_request,
    only_endpoint,
    workers,
)
from sfm_kernel.serving.process import between_cells, serve, users_code
from sfm_kernel.serving.values import Failure, bad_argument, pack, unpack

__all__ = [
    "Answerer",
    "Asker",
    "Attachment",
    "Call",
    "CallData",
    "CallIds",
    "Callee",
    "Caller",
    "Calls",
    "Failure",
    "LocalProcesses",
    "Question",
    "Service",
    "bad_argument",
    "bar",
    "between_cells",
    "by_request",
    "name_of",
    "only_endpoint",
    "pack",
    "serve",
    "unpack",
    "users_code",
    "workers",
]

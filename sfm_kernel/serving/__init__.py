"""Processes that serve: they answer what others ask, in a space of messages of its own.

``farm``, ``remote`` and ``mapreduce`` stand on it. An *owner* attaches to processes with a
``Service``, of which each of them makes an object; what the owner sends over the ``Attachment`` is
taken by that object, on the main thread of the process that serves. A process serves until its
owners have released it, or have died.

A program serves where it says so: ``serve(sfm)``. An engine does between two cells, with nothing to
type: the notebook's part of this package tells how engines are asked to (``by_request``), and they
serve in slices on their event loop (``between_cells``), so that cells go on being run.

    owner      who attaches to others
    process    a process that serves
    local      processes that do, started for one owner
    asking     questions to one process, and their answers
    references what others refer to in a process, and what they do with it
    offers     what a process offers by name
    callee     a process that makes calls of functions
    calls      such calls, and what they give
    caller     who holds which, and what becomes of those of the dead
    functions  functions on their way
    values     values and errors on their way
"""

from sfm_kernel.serving.asking import Answerer, Asker, Question
from sfm_kernel.serving.callee import Callee, Group, Part
from sfm_kernel.serving.caller import Caller
from sfm_kernel.serving.calls import Call, Calls
from sfm_kernel.serving.functions import Functions, Namespace, Which, name_of
from sfm_kernel.serving.local import LocalProcesses
from sfm_kernel.serving.owner import (
    CONTEXT,
    Attachment,
    Service,
    bar,
    by_request,
    in_notebook,
    only_endpoint,
    workers,
)
from sfm_kernel.serving.process import between_cells, serve, users_code
from sfm_kernel.serving.values import Failure, bad_argument, pack, pack_results, unpack

__all__ = [
    "CONTEXT",
    "Answerer",
    "Asker",
    "Attachment",
    "Call",
    "Callee",
    "Caller",
    "Calls",
    "Failure",
    "Functions",
    "Group",
    "LocalProcesses",
    "Namespace",
    "Part",
    "Question",
    "Service",
    "Which",
    "bad_argument",
    "bar",
    "between_cells",
    "by_request",
    "in_notebook",
    "name_of",
    "only_endpoint",
    "pack",
    "pack_results",
    "serve",
    "unpack",
    "users_code",
    "workers",
]

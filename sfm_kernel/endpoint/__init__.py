"""The endpoint: a process's addressable end, with ``send`` and ``recv``.

endpoint    Endpoint: the calls that users make
peers       the members of the world, and the routes to them
callbacks   functions that the network thread calls
messaging   send and recv as far as they are in Python; contexts
calls       calls as texts
seen        facts about calls and code, for observers
bystanders  the threads, tasks and functions that could go on while a call is blocked
sleeping    threads and event loops that wait for a lock
main_thread the line that the main thread is in while it is in no call
variables   whether the program's variables change, for observers
loops       loops of the program's code
ending      the end of the process
"""

from sfm_kernel._native import BUFFERING
from sfm_kernel.endpoint.callbacks import Callback
from sfm_kernel.endpoint.endpoint import Endpoint
from sfm_kernel.endpoint.messaging import UNBOUNDED, Context
from sfm_kernel.endpoint.seen import caller, facts

__all__ = [
    "BUFFERING",
    "UNBOUNDED",
    "Callback",
    "Context",
    "Endpoint",
    "caller",
    "facts",
]

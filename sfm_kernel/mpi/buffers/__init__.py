"""What a call sends and receives: from the specification that a program gives to memory.

    Elements   ``count`` elements of a datatype in memory: one buffer of a call.
    Blocks     several Elements in one piece of memory, one for each process: a sequence; its
               ``whole`` is all of them as one Elements, if they follow one another, else None.
    buffer     MPI.buffer. BOTTOM, IN_PLACE and BUFFER_AUTOMATIC are in ``special``.
    address    where the memory of any object begins (Get_address).

Point to point and files
    ``for_send(spec, parts=1)``, ``for_recv(spec, parts=1)`` give Elements. With ``parts`` > 1 the
    Elements are those of one partition (the inferred count is divided; a count that is given is
    that of one partition). A caller whose peer is PROC_NULL does not parse the specification: it
    uses ``nothing()``, which has no elements.

Collectives (``calls``): one function for each kind of call. Each takes what the program gave, and
    ``here``: anything with ``rank``, ``size`` and ``remote`` (None, or the members of the remote
    group of an intercommunicator), which the state of a communicator has. They return
    ``(send, receive)``; a side that this process has no part in is None, and what the program gave
    there is not looked at.

    ==========================  =====================================  ========  =========
    function                    arguments                              send      receive
    ==========================  =====================================  ========  =========
    ``bcast``                   spec, root, here                       Elements: one for both ways
    ``gather``                  send, receive, root, here, vector=     Elements  Blocks
    ``scatter``                 send, receive, root, here, vector=     Blocks    Elements
    ``allgather``               send, receive, here, vector=           Elements  Blocks
    ``alltoall``                send, receive, here, vector=           Blocks    Blocks
    ``alltoallw``               send, receive, here                    Blocks    Blocks
    ``neighbor_allgather``      send, receive, sources, vector=        Elements  Blocks
    ``neighbor_alltoall``       send, receive, sources, targets,       Blocks    Blocks
                                vector=
    ``neighbor_alltoallw``      send, receive, sources, targets        Blocks    Blocks
    ``reduce``                  send, receive, root, here              Elements  Elements
    ``allreduce``, ``scan``     send, receive, here                    Elements  Elements
    ``reduce_scatter_block``    send, receive, here                    Blocks    Elements
    ``reduce_scatter``          send, receive, counts, here, ask       Blocks    Elements
    ==========================  =====================================  ========  =========

    ``vector=True`` is the form with counts and displacements (Gatherv …). ``root`` is what the
    program gave: a rank, or ROOT or PROC_NULL on an intercommunicator; ``sources`` and ``targets``
    are numbers of neighbours. ``exscan`` parses as ``scan``. ``ask`` is called with the own receive
    count where ``reduce_scatter`` was given no counts, and returns those of all members.

In place (IN_PLACE, or None in its stead, or the same memory in a reduction): the same object is on
    both sides. ``gather``, ``allgather``: ``send is receive[here.rank]``; ``scatter``:
    ``receive is send[here.rank]``; ``alltoall``, ``alltoallw``, ``reduce``, ``allreduce``,
    ``scan``: ``send is receive``. So ``source is target`` says that there is nothing to copy. In
    both ``reduce_scatter``, ``receive`` lies at the start of ``send.whole``, whatever the rank:
    write it when all blocks were read.

What does not fit raises as mpi4py does: ValueError (counts, displacements, the number of items),
TypeError (no buffer), KeyError (unknown type code), BufferError (read-only, not contiguous, foreign
byte order, memory of a GPU), and ``MPI.Exception`` with ERR_TYPE for a datatype that is null or not
committed, or with ERR_BUFFER when elements that are touched lie outside the memory.
"""

from __future__ import annotations

from sfm_kernel.mpi.buffers.blocks import Blocks
from sfm_kernel.mpi.buffers.buffer import buffer, memory
from sfm_kernel.mpi.buffers.elements import Elements
from sfm_kernel.mpi.buffers.exporters import address
from sfm_kernel.mpi.buffers.special import BOTTOM, BUFFER_AUTOMATIC, IN_PLACE
from sfm_kernel.mpi.buffers.specs import for_recv, for_send, nothing

__all__ = [
    "BOTTOM",
    "BUFFER_AUTOMATIC",
    "IN_PLACE",
    "Blocks",
    "Elements",
    "address",
    "buffer",
    "for_recv",
    "for_send",
    "memory",
    "nothing",
]

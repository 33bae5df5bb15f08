"""Datatypes: what the elements of messages are, and where they lie in memory.

Bottom up:

basics          Basic: what data consist of, each with its size here and in external32
signature       Signature: which basic types, in order
external32      packed data to the form that all machines share, and back
pieces          where the bytes lie, compactly; copies them to and from packed data
layout          Layout: a signature and its pieces, with sizes and bounds; made of layouts
state           TypeState: a layout with a name, attributes, and how it was made
arguments, creation, named
                from the arguments of MPI's calls to states
constructors, packing, datatype
                Datatype: the calls
addresses, predefined
                the functions and constants of MPI
"""

from sfm_kernel.mpi.datatypes.addresses import Aint_add, Aint_diff, Get_address
from sfm_kernel.mpi.datatypes.datatype import Datatype
from sfm_kernel.mpi.datatypes.predefined import by_code

__all__ = ["Aint_add", "Aint_diff", "Datatype", "Get_address", "by_code"]

"""SpeedesComm: the communication library of the SPEEDES simulator, for Python.

    >>> import sfm_kernel
    >>> from sfm_kernel.speedes import start_up
    >>> def work(sfm):
    ...     with start_up(sfm) as comm:
    ...         comm.broadcast(7, b"hello")
    ...         comm.barrier_sync()
    ...         return comm.global_max(comm.get_node_id())
    >>> sfm_kernel.run(work, n=2)
    [1, 1]

A method of ``SpeedesComm`` has the name of the original call, in Python's spelling. Calls that C++
distinguishes by argument types are one method (sums of an int and of a float), or several methods
with names of their own (send, multicast, broadcast). The paper counts 25 calls: 1 to start, 2 for
the state, 11 for synchronisation, 11 for messages. It lists 24, only 10 of them for messages, and
does not name the missing one. These are the 24:

start_up              void SpComm_StartUp(int localNodes, int totalNodes, int groupID, char *infile)
get_num_nodes         int SpComm_GetNumNodes()
get_node_id           int SpComm_GetNodeId()
barrier_sync          void SpComm_BarrierSync()
global_min            int SpComm_GlobalMin(int ival)
global_max            int SpComm_GlobalMax(int ival)
global_sum            int SpComm_GlobalSum(int ival)
global_min            double SpComm_GlobalMin(double dval)
global_max            double SpComm_GlobalMax(double dval)
global_sum            double SpComm_GlobalSum(double dval)
global_min            SpSimTime SpComm_GlobalMin(SpSimTime simTime)
global_max            SpSimTime SpComm_GlobalMax(SpSimTime simTime)
enter_fuzzy_barrier   void SpComm_EnterFuzzyBarrier()
exit_fuzzy_barrier    int SpComm_ExitFuzzyBarrier()
send                  void SpComm_Send(int dest, int type, int nbytes, void *buff)
multicast             void SpComm_Send(SpDestination *dest, int type, int nbytes, void *buff)
broadcast             void SpComm_Send(int type, int nbytes, void *buff)
receive               void SpComm_Receive(void)
receive               void *SpComm_Receive(int type, int &nbytes)
get_pending_message   void *SpComm_GetPendingMessage(int type, int &nbytes)
coordinated_send      void SpComm_CoordinatedSend(int dest, int nbytes, void *buff)
coordinated_multicast void SpComm_CoordinatedSend(SpDestination *dest, int nbytes, void *buff)
coordinated_broadcast void SpComm_CoordinatedSend(int nbytes, void *buff)
coordinated_receive   void *SpComm_CoordinatedReceive(int &nbytes)

This library adds ``global_sum`` of SimTimes. In the paper it exists only within the library,
between machines (``SpComm_Net_Sum``, section 3.4).

The paper's classes: ``SpDestination`` is ``Destination``, ``SpSimTime`` is ``SimTime``, ``NET_INT``
and ``NET_DOUBLE`` are NumPy dtypes.

startup       start_up, the input file
comm          SpeedesComm
reductions    minima, maxima and sums
fuzzy         the fuzzy barrier
coordinated   coordinated messages: cycles, and the detection of their end
waves         sums over all nodes for which no call waits
post          sends messages, and takes in those that arrive
atomic        steps that must not be left incomplete
members       sends to members only, never to a process that has taken a dead member's name
blocks        shared memory that is written once and read by many
contents      the data of a message
machines      the nodes of each machine, and the tree
simtime, destination, nettypes   values

Source: Van Iwaarden, Steinman, Blank, "A Combined Shared Memory and TCP/IP Implementation of the
SPEEDES Communications Library".
"""

from sfm_kernel.speedes.comm import SpeedesComm
from sfm_kernel.speedes.contents import Received
from sfm_kernel.speedes.destination import Destination
from sfm_kernel.speedes.nettypes import NET_DOUBLE, NET_INT, net_array, net_struct
from sfm_kernel.speedes.simtime import SimTime
from sfm_kernel.speedes.startup import start_up

__all__ = [
    "NET_DOUBLE",
    "NET_INT",
    "Destination",
    "Received",
    "SimTime",
    "SpeedesComm",
    "net_array",
    "net_struct",
    "start_up",
]

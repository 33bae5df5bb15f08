"""Communicators: groups of processes, and what their members do together.

groups                Group
comm                  Comm, Intracomm; COMM_WORLD, COMM_SELF, COMM_NULL
management            what a communicator is: size, name, attributes; and its end
creation              communicators that are made from others
pointtopoint          messages between two members; repeated: started again and again
collectives           calls of all members, and the files in which they are
topology              grids and graphs: who is whose neighbour
topology_comms        Cartcomm, Graphcomm, Distgraphcomm
topology_creation     how they are made
neighbours            collectives of neighbours
intercomm             Intercomm: two groups
"""
